import {
  MutationCache, QueryCache, QueryClient,
  keepPreviousData, notifyManager, useMutation, useQuery, useQueryClient,
} from '@tanstack/react-query'
import type { QueryState, UseMutationResult, UseQueryResult } from '@tanstack/react-query'
import { useCallback, useEffect, useSyncExternalStore } from 'react'
import { ApiError, send, type OperationInput, type OperationName, type ResponseOf } from './api.ts'
import type { TimeRange } from './range.ts'

export type Session = ResponseOf<'GET /session'>

export const SESSION = ['GET /session'] as const

/** Name of the broadcast channel between the tabs of the browser. All tabs learn of a login or logout in one tab. */
const TABS = 'gateway_console'

/** Creates the cache of responses. A response with 401 ends the session, so that the login page is shown. */
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
  /** The time range of the query. It is evaluated at each request, so that the range `Last hour` moves forward. */
  readonly range?: TimeRange
  /** ms between two refreshes while the tab is visible; absent = no refresh. */
  readonly every?: number
  readonly enabled?: boolean
}

/**
 * Reads data: `const panel = useApiQuery('GET /panel', {}, { range, every: 10_000 })`. While a request with other parameters runs, the data
 * is the previous response (`isPlaceholderData`).
 */
export function useApiQuery<N extends OperationName>(
  name: N, input: OperationInput<N>, options: ApiQueryOptions = {},
): UseQueryResult<ResponseOf<N>, Error> {
  const { range, every, enabled } = options
  return useQuery({
    queryKey: [name, input, range?.id ?? null],
    queryFn: ({ signal }) => {
      const { query } = input as { query?: Record<string, unknown> }
      const withRange = range
        ? { ...(input as object), query: { ...query, ...range.at(Date.now()) } } as OperationInput<N>
        : input
      return send(name, withRange, { signal, live: every !== undefined })
    },
    placeholderData: keepPreviousData,
    ...every !== undefined && { refetchInterval: every },
    ...enabled !== undefined && { enabled },
  })
}

/** The first query of the page whose refresh failed; undefined = none. The page still shows the query's old data. */
export function useFailedRefetch(): QueryState<unknown, Error> | undefined {
  const cache = useQueryClient().getQueryCache()
  const subscribe = useCallback(
    (onChange: () => void) => cache.subscribe(notifyManager.batchCalls(onChange)), [cache],
  )
  return useSyncExternalStore(subscribe, () => cache.findAll({
    type: 'active', predicate: ({ state }) => state.status === 'error' && state.data !== undefined,
  })[0]?.state)
}

/** Marks the user as logged out, so that the login page is shown. */
export function endSession(client: QueryClient): void {
  client.setQueryData<Session>(SESSION, session => session && { ...session, user: null, csrf: null })
}

/** Removes the cached responses, so that the next user does not see them. */
export function clearCachedResponses(client: QueryClient): void {
  client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== SESSION[0] })
}

/** The session. It is read once. After that, a login or logout in any tab, and every response with 401, updates it. */
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

/** Tells all other tabs that the session changed, because all tabs share the session cookie. */
export function notifyOtherTabs(): void {
  const tabs = new BroadcastChannel(TABS)
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel has no target origin
  tabs.postMessage(null)
  tabs.close()
}

/**
 * Changes data: `const create = useApiMutation('POST /keys', ['GET /keys']); create.mutate({ body })`.
 * @param stale - the operations whose responses change; the responses are read again
 */
export function useApiMutation<N extends OperationName>(name: N, stale: readonly OperationName[] = []):
UseMutationResult<ResponseOf<N>, Error, OperationInput<N>> {
  const client = useQueryClient()
  return useMutation({
    mutationFn: (input: OperationInput<N>) =>
      send(name, input, { csrf: client.getQueryData<Session>(SESSION)?.csrf ?? null }),
    onSuccess: () => Promise.all(stale.map(operation => client.invalidateQueries({ queryKey: [operation] }))),
  })
}
