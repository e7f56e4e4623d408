import { Button, Switch } from '@mantine/core'
import { useCallback, useEffect, useMemo } from 'react'
import { useSearchParams } from 'wouter'
import { ApiError, addressOf } from '../api.ts'
import { CsvLink } from '../components/csv-link.tsx'
import { Page, Section } from '../components/page/page.tsx'
import { RangePicker } from '../components/range-picker.tsx'
import { Empty, LoadError, Loading } from '../components/page/states.tsx'
import { count, counted } from '../format.ts'
import { useNow } from '../use-now.ts'
import { isOpenEnded, presetRange, useRange } from '../range.ts'
import { useUser } from '../session.ts'
import { filterOf, changeFilter, sortOf } from './logs/filter.ts'
import { Filters, ClearFilters } from './logs/filters.tsx'
import classes from './logs/logs.module.css'
import { MAX_LIVE_ROWS, identityOf, mergeRows, useRequests, useTail, type Tail } from './logs/requests.ts'
import { RequestTable } from './logs/table.tsx'

/** The list of requests with filters. The live tail adds requests when they end. */
export default function LogsPage() {
  const forKey = useUser().role === 'key'
  const [search, setSearch] = useSearchParams()
  const [range, chooseRange] = useRange('24h')
  const text = search.toString()
  const filter = useMemo(() => {
    const search = new URLSearchParams(text)
    // Ignore filters by key and upstream for key holders, because they see only their own requests and no upstreams.
    if (forKey) {
      for (const name of ['key', 'upstream']) search.delete(name)
      if (search.get('without') !== 'model') search.delete('without')
    }
    return filterOf(search)
  }, [text, forKey])
  const change = useCallback((changes: Record<string, string | null>) => {
    setSearch(before => changeFilter(before, changes), { replace: true })
  }, [setSearch])
  const now = useNow(60_000)
  const sort = sortOf(search)
  const canBeLive = isOpenEnded(range) && sort === null
  const isLive = search.get('live') === '1' && canBeLive

  const requests = useRequests(filter, range, sort)
  const loaded = useMemo(() => requests.data?.pages.flatMap(({ rows }) => rows), [requests.data])
  const tail = useTail(isLive, filter, requests.isFetching ? undefined : requests.data?.pages[0]?.last)
  const rows = useMemo(
    () => (sort === null ? mergeRows(tail.rows, loaded ?? []) : loaded ?? []), [tail.rows, loaded, sort],
  )
  const { refetch } = requests
  useEffect(() => {
    // A full tail drops its oldest rows: read the page of requests again, so that no request is missing between page and tail.
    if (tail.rows.length >= MAX_LIVE_ROWS) void refetch()
  }, [tail.rows.length, refetch])
  const fresh = useMemo(() => new Set(tail.rows.map(identityOf)), [tail.rows])
  const csv = addressOf('GET /logs.csv', { query: { ...filter, ...range.at(now) } })
  return (
    <Page title="Logs"
      about={`All requests${forKey ? ' with your key' : ''}${sort === null ? ', newest first' : ''}.`}
      actions={<>
        <Switch label="Live" size="sm" checked={isLive} disabled={!canBeLive}
          onChange={event => { change({ live: event.currentTarget.checked ? '1' : null }) }} />
        <RangePicker range={range} choose={chooseRange} />
        <CsvLink href={csv} />
      </>}>
      <Filters filter={filter} change={change} forKey={forKey} error={requests.error} />
      <Section title="Requests" flush actions={<>
        {isLive && <LiveState tail={tail} />}
        <ClearFilters filter={filter} change={change} />
      </>}>
        {requests.isError && loaded === undefined
          ? requests.error instanceof ApiError && requests.error.field === 'q'
            ? <Empty title="The query cannot be read">Correct it above.</Empty>
            : <LoadError error={requests.error} retry={() => { void requests.refetch() }} />
          : loaded === undefined ? <Loading height={480} />
          : rows.length === 0
            ? <Empty title={isLive ? 'No requests yet' : 'No matching requests'}>
                {isLive ? 'New requests appear here when they end.'
                : <>Time range: {range.label.toLowerCase()}{Object.keys(filter).length > 0
                  ? ', with filters' : ''}.</>}
                {range.id !== '30d' && !isLive && (
                  <Button variant="default" size="xs" display="block" mt="sm" mx="auto"
                    onClick={() => { chooseRange(presetRange('30d')) }}>
                    Show the last 30 days
                  </Button>
                )}
              </Empty>
            : <RequestTable rows={rows} fresh={fresh} forKey={forKey} list={`/logs?${text}`}
                sort={sort} choose={sort => { change({ sort }) }} />}
        {rows.length > 0 && (
          <div className={classes.more}>
            {requests.hasNextPage
              ? <Button variant="default" size="sm" loading={requests.isFetchingNextPage}
                  onClick={() => { void requests.fetchNextPage() }}>
                  {sort === null ? 'Load older' : 'Load more'}
                </Button>
              : null}
            <span>
              {counted(rows.length, 'request')} {requests.hasNextPage ? 'shown' : 'in this time range'}
            </span>
          </div>
        )}
      </Section>
    </Page>
  )
}

const PAUSES = {
  hidden: 'Paused: tab in the background', scrolled: 'Paused: scroll up to resume',
} as const

function LiveState({ tail: { rows, pause, error } }: { readonly tail: Tail }) {
  const isRunning = pause === null && error === null
  return (
    <output className={`${classes.live} dim`}>
      <span className={classes.dot} data-on={isRunning || undefined} aria-hidden />
      {error !== null ? error.message : pause !== null ? PAUSES[pause] : `Live: ${count(rows.length)} new`}
    </output>
  )
}
