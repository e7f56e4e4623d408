import { useInfiniteQuery } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import type { Row } from '../../../../api/logs.ts'
import { send, type QueryOf, type ResponseOf } from '../../api.ts'
import type { TimeRange } from '../../range.ts'
import type { LogFilter, Sort } from './filter.ts'

type Page = ResponseOf<'GET /logs'> & { readonly range: { from: string; to: string } }

/** Start of an older page, in the time range of the first page. */
interface PageCursor {
  readonly before: string
  readonly range: Page['range']
}

const PAGE = 50
/** Maximum number of rows of one tail request. */
const TAIL_PAGE = 200
/** Refresh interval of the live tail, ms. */
const LIVE_EVERY = 1000
/** Maximum number of rows in the live tail. */
export const MAX_LIVE_ROWS = 500

/** Requests, page by page. @param sort - null: the newest first */
export function useRequests(filter: LogFilter, range: TimeRange, sort: Sort | null) {
  return useInfiniteQuery({
    queryKey: ['GET /logs', filter, range.id, sort],
    initialPageParam: null as PageCursor | null,
    queryFn: async ({ pageParam, signal }): Promise<Page> => {
      const at = pageParam?.range ?? range.at(Date.now())
      const query: QueryOf<'GET /logs'> = { ...filter, ...at, limit: PAGE,
        ...sort !== null && { sort }, ...pageParam && { before: pageParam.before } }
      return { ...await send('GET /logs', { query }, { signal }), range: at }
    },
    getNextPageParam: ({ next, range: at }: Page): PageCursor | null =>
      (next === null ? null : { before: next, range: at }),
    refetchOnWindowFocus: false,
  })
}

/** Why the live tail is paused; null if it runs. */
export type Pause = 'hidden' | 'scrolled' | null

export interface Tail {
  /** Requests that ended since the page was loaded, newest first. */
  readonly rows: readonly Row[]
  readonly pause: Pause
  /** Why the last refresh failed; the next one follows. */
  readonly error: Error | null
}

/**
 * The live tail: requests that end from now on.
 *
 * @param since - cursor of the first page; undefined while it loads
 */
export function useTail(isOn: boolean, filter: LogFilter, since: string | null | undefined): Tail {
  const filterJson = JSON.stringify(filter)
  // Another filter or a reloaded page starts a new tail.
  const id = `${since} ${filterJson}`
  const [found, setFound] = useState<{ id: string; rows: readonly Row[] }>({ id, rows: [] })
  const [error, setError] = useState<Error | null>(null)
  const cursor = useRef({ id, last: since ?? null })
  const pause = usePause()
  const runs = isOn && pause === null && since !== undefined
  useEffect(() => {
    if (!runs) return
    if (cursor.current.id !== id) cursor.current = { id, last: since }
    const abort = new AbortController()
    let timer: ReturnType<typeof setTimeout>
    const refresh = async () => {
      const { last } = cursor.current
      const query = { ...JSON.parse(filterJson) as LogFilter, ...last === null ? { limit: PAGE }
        : { limit: TAIL_PAGE, after: last } }
      try {
        const { rows, last: reached } =
          await send('GET /logs', { query }, { live: true, signal: abort.signal })
        cursor.current = { id, last: reached ?? last }
        setError(null)
        if (rows.length > 0) {
          setFound(before =>
            ({ id, rows: mergeRows(rows, before.id === id ? before.rows : []).slice(0, MAX_LIVE_ROWS) }))
        }
      } catch (reason) {
        if (abort.signal.aborted) return
        setError(reason instanceof Error ? reason : new Error(String(reason)))
      }
      timer = setTimeout(() => void refresh(), LIVE_EVERY)
    }
    void refresh()
    return () => {
      clearTimeout(timer)
      abort.abort()
    }
  }, [runs, id, filterJson, since])
  return { rows: found.id === id ? found.rows : NONE, pause: isOn ? pause : null, error: isOn ? error : null }
}

const NONE: readonly Row[] = []

/** @returns a unique key of a request: a request ID alone can occur twice */
export function identityOf({ request_id, started_at }: Row): string {
  return `${started_at} ${request_id}`
}

/** Both lists without duplicates, newest first. */
export function mergeRows(one: readonly Row[], other: readonly Row[]): Row[] {
  const found = new Map<string, Row>()
  for (const row of [...one, ...other]) if (!found.has(identityOf(row))) found.set(identityOf(row), row)
  return [...found.values()].sort((a, b) =>
    (a.started_at < b.started_at ? 1 : a.started_at > b.started_at ? -1 : 0))
}

/** The tail pauses while the page is scrolled down or the tab is in the background. */
function usePause(): Pause {
  const [pause, setPause] = useState<Pause>(null)
  useEffect(() => {
    const update = () => {
      setPause(document.hidden ? 'hidden' : window.scrollY > window.innerHeight / 2 ? 'scrolled' : null)
    }
    update()
    document.addEventListener('visibilitychange', update)
    window.addEventListener('scroll', update, { passive: true })
    return () => {
      document.removeEventListener('visibilitychange', update)
      window.removeEventListener('scroll', update)
    }
  }, [])
  return pause
}
