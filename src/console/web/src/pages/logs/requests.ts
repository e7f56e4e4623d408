import { useInfiniteQuery } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import type { Row } from '../../../../api/logs.ts'
import { send, type QueryOf, type ResponseOf } from '../../api.ts'
import type { TimeRange } from '../../range.ts'
import type { LogFilter, Sort } from './filter.ts'

type Page = ResponseOf<'GET /logs'> & { readonly range: { from: string; to: string } }

/** The start of an older page. The time range is that of the first page. */
interface PageCursor {
  readonly before: string
  readonly range: Page['range']
}

const PAGE = 50
/** Maximum number of rows in one response for the tail. */
const TAIL_PAGE = 200
/** ms between two refreshes of the live tail. */
const LIVE_EVERY = 1000
/** Maximum number of rows in the live tail. */
export const MAX_LIVE_ROWS = 500

/** Reads requests page by page. @param sort - null = the newest first */
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

/** Why the live tail is paused; null = it is not paused. */
export type Pause = 'hidden' | 'scrolled' | null

export interface Tail {
  /** Requests that ended since the page was loaded, the newest first. */
  readonly rows: readonly Row[]
  readonly pause: Pause
  /** The error of the last refresh. The tail continues to refresh. */
  readonly error: Error | null
}

/**
 * The live tail: requests that end after the page was loaded.
 *
 * @param since - cursor of the first page; undefined = the page is loading
 */
export function useTail(isOn: boolean, filter: LogFilter, since: string | null | undefined): Tail {
  const filterJson = JSON.stringify(filter)
  // A new tail starts if the filter changes, or the page is read again.
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

/** @returns a unique key of a request, because several requests can have the same request ID */
export function identityOf({ request_id, started_at }: Row): string {
  return `${started_at} ${request_id}`
}

/** Merges both lists without duplicates, the newest first. */
export function mergeRows(one: readonly Row[], other: readonly Row[]): Row[] {
  const found = new Map<string, Row>()
  for (const row of [...one, ...other]) if (!found.has(identityOf(row))) found.set(identityOf(row), row)
  return [...found.values()].sort((a, b) =>
    (a.started_at < b.started_at ? 1 : a.started_at > b.started_at ? -1 : 0))
}

/** Pauses the tail while the page is scrolled down, or the tab is in the background. */
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
