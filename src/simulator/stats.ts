/** Every request is in flight first, and then either completed or aborted. */
export interface Stats {
  requests: number
  in_flight: number
  /** Ended by the simulator: completely, or as its behaviours requested. */
  completed: number
  /** The client disconnected first. */
  aborted: number
}

export interface RequestLine {
  readonly method: string
  readonly path: string
  readonly model: string
}

export interface ExchangeCounter {
  readonly stats: Readonly<Stats>
  /** Counts a request; call the returned function once with how it ended. */
  begin(): (request: RequestLine, outcome: 'completed' | 'aborted', status: number) => void
}

/**
 * Counts requests, and reports how they ended.
 *
 * @param onAborted hears of each request whose client left
 * @param log hears of each request
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
