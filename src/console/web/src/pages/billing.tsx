import { SegmentedControl } from '@mantine/core'
import { useLocation, useSearchParams } from 'wouter'
import { addressOf } from '../api.ts'
import type { ResponseOf } from '../api.ts'
import { useApiQuery } from '../api-hooks.ts'
import { Budgets } from './billing/budgets.tsx'
import { UsageSources } from './billing/usage-sources.tsx'
import { Filters } from './billing/filters.tsx'
import type { Filter } from './billing/filters.tsx'
import { GroupTable } from './billing/group-table.tsx'
import { GROUPS } from './billing/names.ts'
import type { Group } from './billing/names.ts'
import { SpendChart } from './billing/spend-chart.tsx'
import { CsvLink } from '../components/csv-link.tsx'
import { Figure, Figures } from '../components/figure.tsx'
import { Page, Stack } from '../components/page.tsx'
import { RangePicker } from '../components/range-picker.tsx'
import { QueryView } from '../components/states.tsx'
import { count, countShort, money, moneyShort } from '../format.ts'
import { logsHref, filterFor } from '../links.ts'
import type { LogFilter } from '../links.ts'
import { customRange, useRange, wholeDays } from '../range.ts'
import type { Preset } from '../range.ts'
import { useUser } from '../session.ts'
import classes from './billing/billing.module.css'

type Billing = ResponseOf<'GET /billing'>

const PRESETS: readonly Preset[] = ['month', 'last-month', '7d', '30d']
const DAY = 86_400_000

/** Spend by key, model or upstream. Bars and rows link to their requests. */
export default function BillingPage() {
  const { role } = useUser()
  const [range, choose] = useRange('month')
  const [search, setSearch] = useSearchParams()
  const [, navigate] = useLocation()
  const by = groupOf(search.get('by'), role === 'key')
  const filter = filterOf(search, role === 'key')
  const billing = useApiQuery(
    'GET /billing', { query: { by, ...filter } }, { range: wholeDays(range), every: 60_000 },
  )
  const set = (name: string, value: string | null) => {
    setSearch(before => {
      const next = new URLSearchParams(before)
      if (value === null) next.delete(name)
      else next.set(name, value)
      return next
    })
  }
  const hrefOfDay = (day: string, more: LogFilter = {}) => {
    const from = `${day}T00:00:00.000Z`
    return logsHref(customRange(from, new Date(Date.parse(from) + DAY).toISOString()), { ...filter, ...more })
  }
  return (
    <Page title="Billing" about={`${range.label}, whole UTC days`}
      actions={
        <>
          {role !== 'key' && (
            <SegmentedControl size="sm" aria-label="Spend by" value={by} data={[...GROUPS]}
              onChange={value => { set('by', value) }} />
          )}
          <RangePicker range={range} choose={choose} presets={PRESETS} days />
          <CsvLink href={
            billing.data && addressOf('GET /billing.csv', { query: csvQuery(billing.data, filter) })
          } />
        </>
      }>
      <Filters filter={filter} remove={kind => { set(kind, null) }} />
      <QueryView of={billing} height={520}>
        {data => (
          <Stack>
            <BillingFigures total={data.total} />
            <div className={classes.split}>
              <SpendChart billing={data} hrefOfDay={hrefOfDay}
                open={(day, name) => {
                  navigate(hrefOfDay(day, name === undefined ? {} : filterFor(data.by, name)))
                }} />
              <UsageSources total={data.total} />
            </div>
            <GroupTable billing={data}
              href={name => logsHref(
                customRange(data.from, data.to), { ...filter, ...filterFor(data.by, name) },
              )} />
          </Stack>
        )}
      </QueryView>
      <Budgets about="Current period of each budget, regardless of the time range above" />
    </Page>
  )
}

function BillingFigures({ total }: { readonly total: Billing['total'] }) {
  return (
    <Figures columns={4}>
      <Figure label="Spend" value={moneyShort(total.cost_usd)}
        note={<span>exact: {money(total.cost_usd)}</span>} />
      <Figure label="Requests" value={countShort(total.requests)} exact={count(total.requests)}
        note={<span>{count(total.errors)} failed</span>} />
      <Figure label="Input tokens" value={countShort(total.input_tokens)} exact={count(total.input_tokens)}
        note={<span>{countShort(total.cached_input_tokens)} cached</span>} />
      <Figure label="Output tokens" value={countShort(total.output_tokens)} exact={count(total.output_tokens)}
        note={<span>{countShort(total.reasoning_tokens)} reasoning</span>} />
    </Figures>
  )
}

/** The query of the CSV file with the same data. */
function csvQuery({ from, to, by }: Billing, filter: Filter) {
  return { from, to, by, ...filter }
}

function groupOf(text: string | null, isOwn: boolean): Group {
  return isOwn ? 'model' : GROUPS.find(({ value }) => value === text)?.value ?? 'key'
}

function filterOf(search: URLSearchParams, isOwn: boolean): Filter {
  const filter: Filter = {}
  for (const { value } of GROUPS) {
    const name = search.get(value)
    if (name !== null && (value === 'model' || !isOwn)) filter[value] = name
  }
  return filter
}
