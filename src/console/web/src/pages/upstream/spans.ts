import type { UpstreamDetails } from '../../../../api/upstream.ts'

type Change = UpstreamDetails['changes'][number]

/** The periods in which one circuit was open, in ms since 1970. */
export interface Lane {
  readonly id: string
  readonly model: string | null
  readonly worker: number
  /** true if the circuit is open at the end of the timeline. */
  readonly isOpen: boolean
  readonly open: readonly { readonly from: number; readonly to: number }[]
}

/** @param changes - the oldest first. @param from, to - bounds of the timeline, ms since 1970 */
export function lanesOf(changes: readonly Change[], from: number, to: number): Lane[] {
  const circuits = Map.groupBy(changes, ({ model, worker }) => JSON.stringify([model, worker]))
  return [...circuits].flatMap(([id, own]) => {
    const [first] = own
    if (!first) return []
    const open = own.flatMap(({ state, at }, n) => {
      if (state !== 'open') return []
      const end = own[n + 1]
      // Limit the start, because the clock of the browser may be behind the clock of the gateway.
      const span = { from: Math.max(from, Math.min(to, Date.parse(at))), to: Math.min(to, end ? Date.parse(end.at) : to) }
      return span.from < span.to || !end ? [span] : []
    })
    return open.length === 0 ? [] : [{ id, model: first.model, worker: first.worker, isOpen: own.at(-1)?.state === 'open', open }]
  })
}
