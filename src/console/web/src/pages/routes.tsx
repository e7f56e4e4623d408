import { TextInput } from '@mantine/core'
import { IconSearch } from '@tabler/icons-react'
import { useMemo, useState } from 'react'
import { useSearchParams } from 'wouter'
import { useApiQuery } from '../api-hooks.ts'
import { Page, Section } from '../components/page/page.tsx'
import { QueryView, Empty } from '../components/page/states.tsx'
import { Explain, questionOf, useExplanation } from './routes/explain.tsx'
import { RouteTable, routeText } from './routes/table.tsx'

/** ms between two refreshes of the circuits. */
const REFRESH = 5000

/** The routes, and a form that explains to which target a request would go. */
export default function RoutesPage() {
  const routes = useApiQuery('GET /routes', {}, { every: REFRESH })
  const [search] = useSearchParams()
  const address = search.toString()
  const question = useMemo(() => questionOf(new URLSearchParams(address)), [address])
  const explanation = useExplanation(question)
  const matched = explanation.data?.steps.find(({ takes }) => takes)?.index
  const [text, setText] = useState('')
  const filter = text.trim().toLowerCase()
  return (
    <Page title="Routes" about="A request uses the first route that matches.">
      <Explain key={address} question={question} explanation={explanation} />
      <Section title="Route table"
        about="In the order of gateway.yaml, with the current circuit of each target." flush actions={
        <TextInput size="sm" aria-label="Filter routes" placeholder="Path, model or upstream" value={text}
          leftSection={<IconSearch size={16} stroke={1.6} aria-hidden />}
          onChange={event => { setText(event.currentTarget.value) }} />
      }>
        <QueryView of={routes} height={320}>
          {({ file, routes: all }) => {
            const shown = all.filter(route => routeText(route).includes(filter))
            return shown.length === 0
              ? <Empty title={all.length === 0 ? 'No routes' : 'No matching routes'}>
                  {all.length === 0
                    ? 'Without routes, all requests are refused. Add routes in gateway.yaml.'
                    : null}
                </Empty>
              : <RouteTable file={file} routes={shown} {...matched !== undefined && { matched }} />
          }}
        </QueryView>
      </Section>
    </Page>
  )
}
