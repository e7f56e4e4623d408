import { Anchor } from '@mantine/core'
import { Link, useLocation } from 'wouter'
import { Page, Section } from '../components/page/page.tsx'
import { Empty } from '../components/page/states.tsx'

/** Shown if the URL has no page, or if the user's role may not see the page. */
export function NotFoundPage() {
  const [path] = useLocation()
  return (
    <Page title="Page not found">
      <Section title="No such page">
        <Empty title={`There is no page at /console${path}`}>
          The address may be mistyped, or your role cannot see the page.{' '}
          <Anchor component={Link} href="/">Go to the panel</Anchor>
        </Empty>
      </Section>
    </Page>
  )
}
