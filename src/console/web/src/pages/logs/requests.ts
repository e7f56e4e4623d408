import { useInfiniteQuery } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import type { Row } from '../../../../api/logs.ts'
import { send } from '../../api.ts'
import type { QueryOf, ResponseOf } from '../../api.ts'
import type { TimeRange } from '../../range.ts'
import type { LogFilter } from './filter.ts'

type Page = ResponseOf<'GET /logs'> & { readonly range: { from: string; to: string } }

/** Where an older page begins, in the time that the first one was asked for. */
interface Place {
  readonly before: string
  readonly range: Page['range']
}

const PAGE = 50
/** Of one look at the tail. */
const MOST = 200
/** Milliseconds between two looks at what ended since. */
const LIVE_EVERY = 1000
/** As many rows of the live tail are kept. */
export const MAX_LIVE_ROWS = 500

/** Requests page by page, the newest first. */
export function useRequests(filter: LogFilter, range: TimeRange) {
  return useInfiniteQuery({
    queryKey: ['GET /logs', filter, range.id],
    initialPageParam: null as Place | null,
    queryFn: async ({ pageParam, signal }): Promise<Page> => {
      const at = pageParam?.range ?? range.at(Date.now())
      const query: QueryOf<'GET /logs'> = { ...filter, ...at, limit: PAGE, ...pageParam
        && { before: pageParam.before } }
      return { ...await send('GET /logs', { query }, { signal }), range: at }
    },
    getNextPageParam: ({ next, range: at }: Page): Place | null =>
      (next === null ? null : { before: next, range: at }),
    refetchOnWindowFocus: false,
  })
}

/** Why the live tail stands still; null = it runs. */
export type Pause = 'hidden' | 'scrolled' | null

export interface Tail {
  /** What ended since the page was read, the newest first. */
  readonly rows: readonly Row[]
  readonly pause: Pause
  /** The last look failed, and why; another follows. */
  readonly error: Error | null
}

/**
 * What ends from now on.
 *
 * @param since - the cursor of the first page; undefined = it is not there yet
 */
export function useTail(isOn: boolean, filter: LogFilter, since: string | null | undefined): Tail {
  const question = JSON.stringify(filter)
  // Another question, or the page read anew, has another tail.
  const id = `${since} ${question}`
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
    const look = async () => {
      const { last } = cursor.current
      const query = { ...JSON.parse(question) as LogFilter, ...last === null ? { limit: PAGE }
        : { limit: MOST, after: last } }
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
      timer = setTimeout(() => void look(), LIVE_EVERY)
    }
    void look()
    return () => {
      clearTimeout(timer)
      abort.abort()
    }
  }, [runs, id, question, since])
  return { rows: found.id === id ? found.rows : NONE, pause: isOn ? pause : null, error: isOn ? error : null }
}

const NONE: readonly Row[] = []

/** @returns what tells a request from every other: an id can come twice */
export function identityOf({ request_id, started_at }: Row): string {
  return `${started_at} ${request_id}`
}

/** Both without what is in them twice, the newest first. */
export function mergeRows(one: readonly Row[], other: readonly Row[]): Row[] {
  const found = new Map<string, Row>()
  for (const row of [...one, ...other]) if (!found.has(identityOf(row))) found.set(identityOf(row), row)
  return [...found.values()].sort((a, b) =>
    (a.started_at < b.started_at ? 1 : a.started_at > b.started_at ? -1 : 0))
}

/** Whoever scrolled down reads, and whoever has another tab open does not look. */
function usePause(): Pause {
  const [pause, setPause] = useState<Pause>(null)
  useEffect(() => {
    const look =
      () => { setPause(document.hidden ? 'hidden' : window.scrollY > window.innerHeight / 2 ? 'scrolled'
      : null) }
    look()
    document.addEventListener('visibilitychange', look)
    window.addEventListener('scroll', look, { passive: true })
    return () => {
      document.removeEventListener('visibilitychange', look)
      window.removeEventListener('scroll', look)
    }
  }, [])
  return pause
}
