import { Select } from '@mantine/core'
import { useLocation, useSearchParams } from 'wouter'
import { addressOf, type ResponseOf } from '../api.ts'
import { useApiQuery } from '../api-hooks.ts'
import { Budgets } from './billing/budgets.tsx'
import { UsageSources } from './billing/usage-sources.tsx'
import { Filters, type Filter } from './billing/filters.tsx'
import { GroupTable, PAGE_SIZE } from './billing/group-table.tsx'
import { groupsFor } from './billing/names.ts'
import { SpendChart } from './billing/spend-chart.tsx'
import { pageQueryOf, parametersOf, tableStateOf } from './billing/table-state.ts'
import { CsvLink } from '../components/csv-link.tsx'
import { Figure, Figures } from '../components/charts/figure.tsx'
import { Page, Stack } from '../components/page/page.tsx'
import { RangePicker } from '../components/range-picker.tsx'
import { QueryView } from '../components/page/states.tsx'
import { costText, count, countShort, counted, moneyShort } from '../format.ts'
import { attributedTerm, filterForGroup, logsHref, type LogFilter } from '../links.ts'
import { customRange, useRange, wholeDays, type Preset, type TimeRange } from '../range.ts'
import { useUser, type User } from '../session.ts'
import classes from './billing/billing.module.css'

type Billing = ResponseOf<'GET /billing'>
type Names = Billing['groups'][number]['names']

const PRESETS: readonly Preset[] = ['month', 'last-month', '7d', '30d']
const DAY = 86_400_000

/** The spend by one or two of key, model, upstream, owner, protocol, status, user and tags. Bars and rows are links to the requests in them. */
export default function BillingPage() {
  const user = useUser()
  const { role } = user
  const [range, choose] = useRange('month')
  const [search, setSearch] = useSearchParams()
  const [, navigate] = useLocation()
  const by = groupsOf(search.get('by'), user)
  const filter = filterOf(search, role === 'key')
  const state = tableStateOf(search)
  const billing = useApiQuery(
    'GET /billing', { query: { by: by.join(), ...filter, ...pageQueryOf(state, PAGE_SIZE) } },
    { range: wholeDays(range), every: 60_000 },
  )
  const set = (values: Readonly<Record<string, string | null>>) => {
    setSearch(before => {
      const next = new URLSearchParams(before)
      for (const [name, value] of Object.entries(values)) {
        if (value === null) next.delete(name)
        else next.set(name, value)
      }
      return next
    })
  }
  const group = (names: readonly (string | null | undefined)[]) => {
    const chosen = [...new Set(names)].filter(name => typeof name === 'string' && name !== '')
    set({ by: chosen.join(), sort: null, order: null, offset: null })
  }
  const hrefOfDay = (day: string, names?: Names) => {
    return logsOfGroup(customRange(dayStart(day), dayEnd(day)), filter, by, names)
  }
  return (
    <Page title="Billing" about={`${range.label}, whole UTC days`}
      actions={
        <>
          <Select aria-label="Group by" size="sm" w={120} value={by[0] ?? null} data={[...groupsFor(user)]}
            onChange={value => { group([value, by[1]]) }} />
          <Select aria-label="Then by" size="sm" w={140} value={by[1] ?? ''}
            data={[
              { value: '', label: 'only' },
              ...groupsFor(user).filter(({ value }) => value !== by[0])
                .map(({ value, label }) => ({ value, label: `and ${label.toLowerCase()}` })),
            ]}
            onChange={value => { group([by[0], value]) }} />
          <RangePicker range={range} choose={choose} presets={PRESETS} days />
          <CsvLink href={
            billing.data && addressOf('GET /billing.csv', { query: csvQuery(billing.data, filter) })
          } />
        </>
      }>
      <Filters filter={filter} remove={kind => { set({ [kind]: null, offset: null }) }} />
      <QueryView of={billing} height={520}>
        {data => (
          <Stack>
            <BillingFigures total={data.total} />
            <div className={classes.split}>
              <SpendChart billing={data} hrefOfDay={hrefOfDay}
                zoom={(first, last) => { choose(customRange(dayStart(first), dayEnd(last))) }}
                open={(day, names) => {
                  const href = hrefOfDay(day, names)
                  if (href !== null) navigate(href)
                }} />
              <UsageSources total={data.total} />
            </div>
            <GroupTable billing={data} state={state} change={changed => { set(parametersOf({ ...state, ...changed })) }}
              href={names => hrefOfGroup(data, filter, names)} />
          </Stack>
        )}
      </QueryView>
      <Budgets about="Current period of each budget, regardless of the time range above" />
    </Page>
  )
}

function dayStart(day: string): string {
  return `${day}T00:00:00.000Z`
}

function dayEnd(day: string): string {
  return new Date(Date.parse(dayStart(day)) + DAY).toISOString()
}

function BillingFigures({ total }: { readonly total: Billing['total'] }) {
  return (
    <Figures columns={4}>
      <Figure label="Spend" value={costText(total, moneyShort)}
        note={total.unpriced_requests > 0
          ? <span>cost unknown for {counted(total.unpriced_requests, 'request')}</span>
          : <span>exact: {costText(total)}</span>} />
      <Figure label="Requests" value={countShort(total.requests)} exact={count(total.requests)}
        note={<span>{count(total.errors)} failed</span>} />
      <Figure label="Input tokens" value={countShort(total.input_tokens)} exact={count(total.input_tokens)}
        note={<span>{countShort(total.cached_input_tokens)} cached</span>} />
      <Figure label="Output tokens" value={countShort(total.output_tokens)} exact={count(total.output_tokens)}
        note={<span>{countShort(total.reasoning_tokens)} reasoning</span>} />
    </Figures>
  )
}

/** The query for the CSV file that contains the same data as the page. */
function csvQuery({ from, to, by }: Billing, filter: Filter) {
  return { from, to, by, ...filter }
}

/** Link to the requests of a group. For an owner, the link leads to the owner's keys. null = the Logs page cannot filter by the group. */
function hrefOfGroup({ by, from, to }: Billing, filter: Filter, names: Names): string | null {
  const range = customRange(from, to)
  if (by === 'owner' && names[0] !== null) {
    return `/billing?${new URLSearchParams({ ...range.at(0), ...filter, owner: names[0] ?? '', by: 'key,model' })}`
  }
  return logsOfGroup(range, filter, by.split(','), names)
}

/** @param names - names of the group; undefined = all groups */
function logsOfGroup(range: TimeRange, filter: Filter, by: readonly string[], names: Names | undefined): string | null {
  const group: LogFilter | null = names === undefined ? {} : filterForGroup(by, names)
  const { owner, user, tag, ...logged } = filter
  if (group === null || (owner !== undefined && group.key === undefined)) return null
  const query = [
    ...group.q === undefined ? [] : [group.q],
    ...user === undefined ? [] : [attributedTerm('user', user)],
    ...tag === undefined ? [] : [attributedTerm(`tag:${tag.slice(0, tag.indexOf('='))}`, tag.slice(tag.indexOf('=') + 1))],
  ]
  return logsHref(range, { ...logged, ...group, ...query.length > 0 && { q: query.join(' ') } })
}

/** The dimensions from the URL by which the user may group: one or two. */
function groupsOf(text: string | null, user: User): string[] {
  const allowed = new Set<string>(groupsFor(user).map(({ value }) => value))
  const chosen = [...new Set(text?.split(',') ?? [])].filter(name => allowed.has(name)).slice(0, 2)
  return chosen.length > 0 ? chosen : [user.role === 'key' ? 'model' : 'key']
}

const FILTERS = ['key', 'model', 'upstream', 'owner', 'user', 'tag'] as const
const OF_KEY_HOLDERS: ReadonlySet<string> = new Set(['model', 'user', 'tag'])

function filterOf(search: URLSearchParams, isOwn: boolean): Filter {
  const filter: Filter = {}
  for (const kind of FILTERS) {
    const name = search.get(kind)
    if (name !== null && (!isOwn || OF_KEY_HOLDERS.has(kind))) filter[kind] = name
  }
  return filter
}
