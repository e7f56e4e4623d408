import {
  MutationCache, QueryCache, QueryClient,
  keepPreviousData, notifyManager, useMutation, useQuery, useQueryClient,
} from '@tanstack/react-query'
import type { QueryState, UseMutationResult, UseQueryResult } from '@tanstack/react-query'
import { useCallback, useEffect, useSyncExternalStore } from 'react'
import { ApiError, send } from './api.ts'
import type { OperationInput, OperationName, ResponseOf } from './api.ts'
import type { TimeRange } from './range.ts'

export type Session = ResponseOf<'GET /session'>

export const SESSION = ['GET /session'] as const

/** Where the tabs of a browser hear that somebody has logged in or out. */
const TABS = 'gateway_console'

/** Answers as they were last told; when the session is over, every page gives way to the login. */
export function createQueryClient(): QueryClient {
  const onError = (error: Error) => {
    if (error instanceof ApiError && error.status === 401) endSession(client)
  }
  const client = new QueryClient({
    queryCache: new QueryCache({ onError }),
    mutationCache: new MutationCache({ onError }),
    defaultOptions: {
      queries: {
        staleTime: 5_000,
        retry: (count, error) => count < 2 && error instanceof ApiError
          && (error.status === 0 || error.status >= 500),
      },
    },
  })
  return client
}

export interface ApiQueryOptions {
  /** A chosen time: it is worked out anew at each asking, so that `the last hour` moves on. */
  readonly range?: TimeRange
  /** Asked again that often, in ms, for as long as the page is looked at. */
  readonly every?: number
  readonly enabled?: boolean
}

/**
 * Asks for data and keeps it: `const panel = useAsk('GET /panel', {}, { range, every: 10_000 })`.
 * While a new question is under way, the answer to the last one stays (`isPlaceholderData`).
 */
export function useApiQuery<N extends OperationName>(name: N, ask: OperationInput<N>, options: ApiQueryOptions = {}):
UseQueryResult<ResponseOf<N>, Error> {
  const { range, every, enabled } = options
  return useQuery({
    queryKey: [name, ask, range?.id ?? null],
    queryFn: ({ signal }) => {
      const { query } = ask as { query?: Record<string, unknown> }
      const asked = range
        ? { ...(ask as object), query: { ...query, ...range.at(Date.now()) } } as OperationInput<N>
        : ask
      return send(name, asked, { signal, live: every !== undefined })
    },
    placeholderData: keepPreviousData,
    ...every !== undefined && { refetchInterval: every },
    ...enabled !== undefined && { enabled },
  })
}

/** An answer of the page that was read, and could not be read anew; the first of them, if there are any. */
export function useFailedRefetch(): QueryState<unknown, Error> | undefined {
  const cache = useQueryClient().getQueryCache()
  const subscribe = useCallback(
    (onChange: () => void) => cache.subscribe(notifyManager.batchCalls(onChange)), [cache],
  )
  return useSyncExternalStore(subscribe, () => cache.findAll({
    type: 'active', predicate: ({ state }) => state.status === 'error' && state.data !== undefined,
  })[0]?.state)
}

/** Nobody is logged in any more: the login takes the place of the page. */
export function endSession(client: QueryClient): void {
  client.setQueryData<Session>(SESSION, session => session && { ...session, user: null, csrf: null })
}

/** What was read for one user is not for the next. */
export function clearCachedResponses(client: QueryClient): void {
  client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== SESSION[0] })
}

/**
 * Who is logged in. It is asked for once: logging in and out tell it themselves, in whichever
 * of the browser's tabs, and so does every 401.
 */
export function useSession(): UseQueryResult<Session, Error> {
  const client = useQueryClient()
  useEffect(() => {
    const tabs = new BroadcastChannel(TABS)
    tabs.addEventListener('message', () => void client.invalidateQueries({ queryKey: SESSION }))
    return () => { tabs.close() }
  }, [client])
  return useQuery({
    queryKey: SESSION,
    queryFn: async ({ signal }) => {
      const session = await send(SESSION[0], {}, { signal })
      const before = client.getQueryData<Session>(SESSION)?.user
      if (before && (before.name !== session.user?.name || before.role !== session.user.role)) {
        clearCachedResponses(client)
      }
      return session
    },
    staleTime: Infinity,
  })
}

/** The other tabs have the same cookie: what it is worth has changed for all of them. */
export function notifyOtherTabs(): void {
  const tabs = new BroadcastChannel(TABS)
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- it is of one origin
  tabs.postMessage(null)
  tabs.close()
}

/**
 * For what changes something: `const make = useAct('POST /keys', ['GET /keys']); make.mutate({ body })`.
 * @param stale - the operations whose answers it changes; they are asked again
 */
export function useApiMutation<N extends OperationName>(name: N, stale: readonly OperationName[] = []):
UseMutationResult<ResponseOf<N>, Error, OperationInput<N>> {
  const client = useQueryClient()
  return useMutation({
    mutationFn: (ask: OperationInput<N>) =>
      send(name, ask, { csrf: client.getQueryData<Session>(SESSION)?.csrf ?? null }),
    onSuccess: () => Promise.all(stale.map(operation => client.invalidateQueries({ queryKey: [operation] }))),
  })
}
