import { Button } from '@mantine/core'
import { IconListDetails } from '@tabler/icons-react'
import { Link, useLocation, useParams } from 'wouter'
import type { UpstreamDetails } from '../../../api/upstream.ts'
import { useApiQuery } from '../api-hooks.ts'
import { StatusBadge } from '../components/badges.tsx'
import { Figure, Figures } from '../components/charts/figure.tsx'
import { Notice } from '../components/page/notice.tsx'
import { Columns, Page, Stack } from '../components/page/page.tsx'
import { RangePicker, ZoomOut } from '../components/range-picker.tsx'
import { QueryView } from '../components/page/states.tsx'
import { Time } from '../components/time.tsx'
import { count, counted, duration, percent } from '../format.ts'
import { logsHref } from '../links.ts'
import { customRange, useRange } from '../range.ts'
import { useNow } from '../use-now.ts'
import { HEALTH } from './panel/upstreams.tsx'
import { AttemptTable, FailoverTable } from './upstream/attempts.tsx'
import { LatencyChart, OutcomeChart } from './upstream/charts.tsx'
import { CircuitTimeline } from './upstream/circuit-timeline.tsx'
import { CircuitChanges, OpenCircuits } from './upstream/circuits.tsx'
import { Credentials } from './upstream/credentials.tsx'
import { UpstreamLimits } from './upstream/limits.tsx'

const EVERY = 10_000

/** The page of one upstream: limits, credentials, circuits, and how requests ended. */
export default function UpstreamPage() {
  const { name = '' } = useParams<{ name: string }>()
  const [range, choose] = useRange('24h')
  const [, navigate] = useLocation()
  const now = useNow(EVERY)
  const upstream = useApiQuery('GET /upstreams/:name', { params: { name } }, { range, every: EVERY })
  const of = { upstream: name }
  return (
    <Page title={name} about={<>Upstream. {range.label}. <Link href="/upstreams">All upstreams</Link></>}
      actions={<>
        <Button component={Link} href={logsHref(range, of)} variant="default"
          leftSection={<IconListDetails size={16} stroke={1.6} aria-hidden />}>Requests</Button>
        <ZoomOut range={range} choose={choose} />
        <RangePicker range={range} choose={choose} />
      </>}>
      <QueryView of={upstream} height={420}>
        {data => (
          <Stack>
            <Now details={data} />
            <UpstreamLimits limits={data.limits} />
            <Credentials credentials={data.credentials} />
            <OpenCircuits circuits={data.circuits} />
            <CircuitTimeline changes={data.changes} range={range.at(now)} />
            {data.report && (
              <>
                <Columns least={24}>
                  <OutcomeChart report={data.report}
                    open={(from, to, failed) => { navigate(logsHref(customRange(from, to), { ...of, ...failed && { end: 'failed' } })) }}
                    zoom={(from, to) => { choose(customRange(from, to)) }} />
                  <LatencyChart report={data.report} zoom={(from, to) => { choose(customRange(from, to)) }} />
                </Columns>
                <Columns least={20}>
                  <AttemptTable attempts={data.report.attempts} />
                  <FailoverTable title="Failovers to other upstreams" rows={data.report.failovers_to} />
                  <FailoverTable title="Failovers from other upstreams" rows={data.report.failovers_from} />
                </Columns>
              </>
            )}
            <CircuitChanges changes={data.changes} />
          </Stack>
        )}
      </QueryView>
    </Page>
  )
}

/** The health, the failure of the credential, and how all requests ended. */
function Now({ details: { upstream, credential_failure, report } }: { readonly details: UpstreamDetails }) {
  const { tone, text } = HEALTH[upstream.health]
  const share = (part: number | undefined) => {
    if (!report || report.outcomes.requests === 0) return '–'
    return percent((part ?? 0) / report.outcomes.requests)
  }
  const part = (label: string, value: number | undefined) => (
    <Figure label={label} value={share(value)} {...value !== undefined && { note: <span>{counted(value, 'request')}</span> }} />
  )
  return (
    <>
      {credential_failure && (
        <Notice tone="bad" title="Requests failed because of the credential">
          credentials: {credential_failure.reason}, <Time at={credential_failure.at} form="relative" />. Check its <code>auth</code> in
          gateway.yaml.
        </Notice>
      )}
      <Figures columns={6}>
        <Figure label="Health now" value={<StatusBadge tone={tone}>{text}</StatusBadge>}
          note={<span>{count(upstream.in_flight)} running</span>} />
        {part('Provider failures', report?.outcomes.provider_failures)}
        {part('Client errors', report?.outcomes.client_errors)}
        {part('Refused by the gateway', report?.outcomes.gateway_refusals)}
        <Figure label="First byte, median" value={duration(report?.first_byte.p50_ms ?? null)}
          note={<span>p95 {duration(report?.first_byte.p95_ms ?? null)}, p99 {duration(report?.first_byte.p99_ms ?? null)}</span>} />
        <Figure label="Duration, median" value={duration(report?.duration.p50_ms ?? null)}
          note={<span>p95 {duration(report?.duration.p95_ms ?? null)}, p99 {duration(report?.duration.p99_ms ?? null)}</span>} />
      </Figures>
      {report?.complete === false && (
        <Notice tone="accent">This time range has too many requests. The figures cover only the newest ones.</Notice>
      )}
    </>
  )
}
