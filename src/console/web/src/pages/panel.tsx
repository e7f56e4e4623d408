import { Link, useLocation } from 'wouter'
import { useApiQuery } from '../api-hooks.ts'
import { Columns, Page, Stack } from '../components/page/page.tsx'
import { RangePicker, ZoomOut } from '../components/range-picker.tsx'
import { QueryView, LoadError } from '../components/page/states.tsx'
import { logsHref, filterFor, upstreamHref } from '../links.ts'
import { Alerts } from './panel/alerts.tsx'
import { TrafficCharts } from './panel/charts.tsx'
import { PanelFigures } from './panel/figures.tsx'
import { RunningRequests } from './panel/running.tsx'
import { TopList } from './panel/top.tsx'
import { Upstreams } from './panel/upstreams.tsx'
import classes from './panel/panel.module.css'
import { customRange, searchOf, useRange } from '../range.ts'
import { useUser } from '../session.ts'

const EVERY = 10_000
const LIVE_EVERY = 2_000

/** Alerts, running requests, and the figures of the selected time range. */
export default function Panel() {
  const { role, has_users } = useUser()
  const [range, choose] = useRange('24h')
  const [, navigate] = useLocation()
  const isReader = role !== 'key'
  const live = useApiQuery('GET /live', {}, { every: LIVE_EVERY })
  const panel = useApiQuery('GET /panel', {}, { range, every: EVERY })
  const upstreams = useApiQuery('GET /upstreams', {}, { range, every: EVERY, enabled: isReader })
  // For old ranges, the API extends the period to whole hours or days: show the extended period.
  const covered = range.preset === 'custom' && panel.data !== undefined && !panel.isPlaceholderData
    ? customRange(panel.data.now.from, panel.data.now.to).label : range.label
  return (
    <Page title="Panel" about={<>
      {range.label}, compared with the previous period{covered !== range.label && `. Data covers ${covered}`}
    </>}
      actions={<><ZoomOut range={range} choose={choose} /><RangePicker range={range} choose={choose} /></>}>
      {live.data
        ? <Alerts alerts={live.data.concerns} />
        : live.isError && <LoadError error={live.error} />}
      <QueryView of={panel} height={420}>
        {data => (
          <Stack>
            <PanelFigures panel={data} />
            <TrafficCharts panel={data} open={(from, to, failed) => {
              navigate(logsHref(customRange(from, to), failed ? { end: 'failed' } : {}))
            }} zoom={(from, to) => { choose(customRange(from, to)) }}
              hrefOf={(from, to) => `/?${new URLSearchParams({ from, to })}`} />
          </Stack>
        )}
      </QueryView>
      {isReader && (
        <QueryView of={upstreams} height={180}>
          {data => (
            <Upstreams upstreams={data.upstreams} href={name => upstreamHref(name, range)} />
          )}
        </QueryView>
      )}
      <QueryView of={live} height={160}>
        {data => <RunningRequests live={data} isLive={!live.isError} />}
      </QueryView>
      {panel.data && (
        <Columns least={26}>
          {isReader && (
            <TopList title="Top keys" kind="key" rows={panel.data.top_keys}
              spend={panel.data.now.figures.cost_usd}
              actions={
                <span className={classes.links}>
                  <Link href={`/billing?${new URLSearchParams({ ...searchOf(range), by: 'key,model' })}`}>By key and model</Link>
                  {has_users && <Link href={`/billing?${new URLSearchParams({ ...searchOf(range), by: 'user' })}`}>By user</Link>}
                  <Link href="/statement">Statements</Link>
                  <Link href="/keys">Keys<span className="unseen"> of all clients</span></Link>
                </span>
              }
              href={key => logsHref(range, filterFor('key', key))} />
          )}
          <TopList title="Top models" kind="model" rows={panel.data.top_models}
            spend={panel.data.now.figures.cost_usd}
            href={model => logsHref(range, filterFor('model', model))} />
        </Columns>
      )}
    </Page>
  )
}
