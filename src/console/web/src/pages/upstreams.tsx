import { useApiQuery } from '../api-hooks.ts'
import { Page } from '../components/page/page.tsx'
import { RangePicker } from '../components/range-picker.tsx'
import { QueryView } from '../components/page/states.tsx'
import { upstreamHref } from '../links.ts'
import { useRange } from '../range.ts'
import { Upstreams } from './panel/upstreams.tsx'

const EVERY = 10_000

/** The list of all upstreams. A row opens the page of its upstream. */
export default function UpstreamsPage() {
  const [range, choose] = useRange('24h')
  const upstreams = useApiQuery('GET /upstreams', {}, { range, every: EVERY })
  return (
    <Page title="Upstreams" about={range.label} actions={<RangePicker range={range} choose={choose} />}>
      <QueryView of={upstreams} height={240}>
        {data => <Upstreams upstreams={data.upstreams} href={name => upstreamHref(name, range)} />}
      </QueryView>
    </Page>
  )
}
