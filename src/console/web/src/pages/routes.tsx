import { TextInput } from '@mantine/core'
import { IconSearch } from '@tabler/icons-react'
import { useMemo, useState } from 'react'
import { useSearchParams } from 'wouter'
import { useApiQuery } from '../ask.ts'
import { Page, Section } from '../components/page.tsx'
import { QueryView, Empty } from '../components/states.tsx'
import { Explain, questionOf, useExplanation } from './routes/explain.tsx'
import { RouteTable, routeText } from './routes/table.tsx'

/** How often the circuits are looked at, ms. */
const REFRESH = 5000

/** The route table as the gateway sees it, and where a request would go. */
export default function RoutesPage() {
  const routes = useApiQuery('GET /routes', {}, { every: REFRESH })
  const [search] = useSearchParams()
  const address = search.toString()
  const question = useMemo(() => questionOf(new URLSearchParams(address)), [address])
  const explanation = useExplanation(question)
  const taken = explanation.data?.steps.find(({ takes }) => takes)?.index
  const [text, setText] = useState('')
  const wanted = text.trim().toLowerCase()
  return (
    <Page title="Routes" about="The first route that a request fits takes it.">
      <Explain key={address} question={question} explanation={explanation} />
      <Section title="Route table"
        about="In the order of gateway.yaml, with each target’s circuit as it is now." flush actions={
        <TextInput size="sm" aria-label="Filter routes" placeholder="Path, model or upstream" value={text}
          leftSection={<IconSearch size={16} stroke={1.6} aria-hidden />}
          onChange={event => { setText(event.currentTarget.value) }} />
      }>
        <QueryView of={routes} height={320}>
          {({ file, routes: all }) => {
            const shown = all.filter(route => routeText(route).includes(wanted))
            return shown.length === 0
              ? <Empty title={all.length === 0 ? 'There is no route' : 'No route has that'}>
                  {all.length === 0
                    ? 'Without routes every request is refused. Add some under routes in gateway.yaml.'
                    : null}
                </Empty>
              : <RouteTable file={file} routes={shown} {...taken !== undefined && { matched: taken }} />
          }}
        </QueryView>
      </Section>
    </Page>
  )
}
