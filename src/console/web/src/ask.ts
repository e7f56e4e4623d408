import { MutationCache, QueryCache, QueryClient, keepPreviousData, useMutation, useQuery, useQueryClient }
  from '@tanstack/react-query'
import type { UseMutationResult, UseQueryResult } from '@tanstack/react-query'
import { ApiError, send } from './api.ts'
import type { Ask, OperationName, ResponseOf } from './api.ts'
import type { TimeRange } from './range.ts'

export type Session = ResponseOf<'GET /session'>

export const SESSION = ['GET /session'] as const

/** Answers as they were last told; when the session is over, every page gives way to the login. */
export function createQueryClient(): QueryClient {
  const onError = (error: Error) => {
    if (error instanceof ApiError && error.status === 401) {
      client.setQueryData<Session>(SESSION, session => session && { ...session, user: null, csrf: null })
    }
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

export interface AskOptions {
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
export function useAsk<N extends OperationName>(name: N, ask: Ask<N>, options: AskOptions = {}):
UseQueryResult<ResponseOf<N>, Error> {
  const { range, every, enabled } = options
  return useQuery({
    queryKey: [name, ask, range?.id ?? null],
    queryFn: ({ signal }) => {
      const { query } = ask as { query?: Record<string, unknown> }
      const asked = range
        ? { ...(ask as object), query: { ...query, ...range.at(Date.now()) } } as Ask<N>
        : ask
      return send(name, asked, { signal, live: every !== undefined })
    },
    placeholderData: keepPreviousData,
    ...every !== undefined && { refetchInterval: every },
    ...enabled !== undefined && { enabled },
  })
}

/** Who is logged in. It is asked for once: logging in and out tell it themselves, and so does every 401. */
export function useSession(): UseQueryResult<Session, Error> {
  return useQuery({
    queryKey: SESSION,
    queryFn: ({ signal }) => send(SESSION[0], {}, { signal }),
    staleTime: Infinity,
  })
}

/**
 * For what changes something: `const make = useAct('POST /keys', ['GET /keys']); make.mutate({ body })`.
 * @param stale - the operations whose answers it changes; they are asked again
 */
export function useAct<N extends OperationName>(name: N, stale: readonly OperationName[] = []):
UseMutationResult<ResponseOf<N>, Error, Ask<N>> {
  const client = useQueryClient()
  return useMutation({
    mutationFn: (ask: Ask<N>) =>
      send(name, ask, { csrf: client.getQueryData<Session>(SESSION)?.csrf ?? null }),
    onSuccess: () => Promise.all(stale.map(operation => client.invalidateQueries({ queryKey: [operation] }))),
  })
}
