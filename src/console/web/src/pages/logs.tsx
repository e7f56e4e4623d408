import { Button, Switch } from '@mantine/core'
import { useCallback, useEffect, useMemo } from 'react'
import { useSearchParams } from 'wouter'
import { addressOf } from '../api.ts'
import { CsvLink } from '../components/csv-link.tsx'
import { Page, Section } from '../components/page.tsx'
import { RangePicker } from '../components/range-picker.tsx'
import { Empty, Failure, Loading } from '../components/states.tsx'
import { count } from '../format.ts'
import { useNow } from '../now.ts'
import { isOpenEnded, presetRange, useRange } from '../range.ts'
import { useUser } from '../session.ts'
import { changeFilter, filterOf } from './logs/filter.ts'
import { Filters, ShowAll } from './logs/filters.tsx'
import classes from './logs/logs.module.css'
import { MAX_LIVE_ROWS, identityOf, mergeRows, useRequests, useTail } from './logs/requests.ts'
import type { Tail } from './logs/requests.ts'
import { RequestTable } from './logs/table.tsx'

/** Every request, and how to find one. */
export default function LogsPage() {
  const forKey = useUser().role === 'key'
  const [search, setSearch] = useSearchParams()
  const [range, chooseRange] = useRange('24h')
  const text = search.toString()
  const filter = useMemo(() => {
    const search = new URLSearchParams(text)
    // Holders of a key see their own requests, and no upstreams: there is nothing to choose.
    if (forKey) {
      for (const name of ['key', 'upstream']) search.delete(name)
      if (search.get('without') !== 'model') search.delete('without')
    }
    return filterOf(search)
  }, [text, forKey])
  const change = useCallback((change: Record<string, string | null>) => {
    setSearch(before => changeFilter(before, change), { replace: true })
  }, [setSearch])
  const now = useNow(60_000)
  const canBeLive = isOpenEnded(range)
  const isLive = search.get('live') === '1' && canBeLive

  const requests = useRequests(filter, range)
  const read = useMemo(() => requests.data?.pages.flatMap(({ rows }) => rows), [requests.data])
  const tail = useTail(isLive, filter, requests.isFetching ? undefined : requests.data?.pages[0]?.last)
  const rows = useMemo(() => mergeRows(tail.rows, read ?? []), [tail.rows, read])
  const { refetch } = requests
  useEffect(() => {
    // What the tail keeps no more would be missing between it and what was read.
    if (tail.rows.length >= MAX_LIVE_ROWS) void refetch()
  }, [tail.rows.length, refetch])
  const fresh = useMemo(() => new Set(tail.rows.map(identityOf)), [tail.rows])
  const csv = addressOf('GET /logs.csv', { query: { ...filter, ...range.at(now) } })
  return (
    <Page title="Logs"
      about={forKey ? 'Every request with your key, the newest first.' : 'Every request, the newest first.'}
      actions={<>
        <Switch label="Live" size="sm" checked={isLive} disabled={!canBeLive}
          onChange={event => { change({ live: event.currentTarget.checked ? '1' : null }) }} />
        <RangePicker range={range} choose={chooseRange} />
        <CsvLink href={csv} />
      </>}>
      <Filters filter={filter} change={change} forKey={forKey} />
      <Section title="Requests" flush actions={<>
        {isLive && <LiveState tail={tail} />}
        <ShowAll filter={filter} change={change} />
      </>}>
        {requests.isError && read === undefined
          ? <Failure error={requests.error} retry={() => { void requests.refetch() }} />
          : read === undefined ? <Loading height={480} />
          : rows.length === 0
            ? <Empty title={isLive ? 'Nothing yet' : 'No request fits'}>
                {isLive ? 'Whatever ends from now on appears here.'
                : <>Nothing in the chosen time{Object.keys(filter).length > 0
                  ? ' with these filters' : ''}: {range.label.toLowerCase()}.</>}
                {range.id !== '30d' && !isLive && (
                  <Button variant="default" size="xs" display="block" mt="sm" mx="auto"
                    onClick={() => { chooseRange(presetRange('30d')) }}>
                    Look at the last 30 days
                  </Button>
                )}
              </Empty>
            : <RequestTable rows={rows} fresh={fresh} forKey={forKey} list={`/logs?${text}`} />}
        {rows.length > 0 && (
          <div className={classes.more}>
            {requests.hasNextPage
              ? <Button variant="default" size="sm" loading={requests.isFetchingNextPage}
                  onClick={() => { void requests.fetchNextPage() }}>
                  Load older
                </Button>
              : null}
            <span>
              {count(rows.length)} {rows.length === 1 ? 'request' : 'requests'}
              {requests.hasNextPage ? ' shown' : ': all of this time'}
            </span>
          </div>
        )}
      </Section>
    </Page>
  )
}

const PAUSES = { hidden: 'Paused while nobody looks',
  scrolled: 'Paused while you read; scroll up to go on' } as const

function LiveState({ tail: { rows, pause, error } }: { readonly tail: Tail }) {
  const isRunning = pause === null && error === null
  return (
    <output className={`${classes.live} dim`}>
      <span className={classes.dot} data-on={isRunning || undefined} aria-hidden />
      {error !== null ? error.message : pause !== null ? PAUSES[pause] : `Live, ${count(rows.length)} new`}
    </output>
  )
}
