/** Counts of requests. Each request is first in flight, and later completed or aborted. */
export interface Stats {
  requests: number
  in_flight: number
  /** Requests that the simulator ended, completely or as their behaviours require. */
  completed: number
  /** Requests whose client disconnected before the end. */
  aborted: number
}

export interface RequestLine {
  readonly method: string
  readonly path: string
  readonly model: string
}

export interface ExchangeCounter {
  readonly stats: Readonly<Stats>
  /** Counts a request. @returns a function that must be called once when the request has ended */
  begin(): (request: RequestLine, outcome: 'completed' | 'aborted', status: number) => void
}

/**
 * Counts requests, and reports how they ended.
 *
 * @param onAborted called for each request whose client disconnected
 * @param log called for each request
 */
export function countExchanges(
  onAborted: (request: RequestLine) => void,
  log?: { info(details: object, message: string): void },
): ExchangeCounter {
  const stats: Stats = { requests: 0, in_flight: 0, completed: 0, aborted: 0 }
  return {
    stats,
    begin: () => {
      stats.requests++
      stats.in_flight++
      const began = performance.now()
      return (request, outcome, status) => {
        stats.in_flight--
        stats[outcome]++
        log?.info({ ...request, status, outcome, ms: Math.round(performance.now() - began) }, 'simulated')
        if (outcome === 'aborted') onAborted(request)
      }
    },
  }
}
