/** Every request is in flight first, and then either completed or aborted. */
export interface Stats {
  requests: number
  in_flight: number
  /** Answered to the end, or ended otherwise as its behaviours asked. */
  completed: number
  /** The client left first. */
  aborted: number
}

export interface RequestLine {
  readonly method: string
  readonly path: string
  readonly model: string
}

export interface ExchangeCounter {
  readonly stats: Readonly<Stats>
  /** A request began; the function that is returned says once how it ended. */
  begin(): (request: RequestLine, outcome: 'completed' | 'aborted', status: number) => void
}

/**
 * Counts requests and tells of their ends.
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
