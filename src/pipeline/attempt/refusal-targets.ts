import type { Affinity, Route, Target } from '../../config/types.ts'
import type { Exchange } from '../../context/exchange.ts'
import type { Gateway } from '../../context/gateway.ts'
import type { RefusalReason } from '../../protocols/shared/refusal.ts'
import { chooseOrder } from '../../routing/choose.ts'

/**
 * The route's targets, in the order in which this exchange is to try them.
 *
 * @param route with at least one target
 * @returns all of them
 */
export function candidates(
  gateway: Gateway, exchange: Exchange, route: Pick<Route, 'targets' | 'strategy' | 'affinity'>,
): readonly Target[] {
  if (route.targets.length === 1) return route.targets
  return chooseOrder(route, {
    health: gateway.health,
    random: Math.random,
    model: exchange.model,
    affinity: route.affinity && affinityOf(exchange, route.affinity),
  })
}

/** No other target, whatever an upstream refuses the request for. */
export const NO_REFUSAL_TARGETS: Map<RefusalReason, Target> = new Map()

/** Where the route sends requests that an upstream refuses for what they are. */
export function refusalTargets({ on }: Pick<Route, 'on'>): Map<RefusalReason, Target> {
  if (on.contextLength === null && on.contentFilter === null) return NO_REFUSAL_TARGETS
  const targets = new Map<RefusalReason, Target>()
  if (on.contextLength) targets.set('context_length', on.contextLength)
  if (on.contentFilter) targets.set('content_filter', on.contentFilter)
  return targets
}

/**
 * Those of the candidates that may be asked before the request has its answer, and where its route
 * sends what they refuse.
 *
 * @param order at least one
 * @returns the first of them, and then the others
 */
export function reachableCandidates(
  { retries, resume, on }: Pick<Route, 'retries' | 'resume' | 'on'>, order: readonly Target[],
): readonly Target[] {
  // Where an answer is to be continued, those are passed over that cannot.
  const isAnyAsked = order.length <= retries + 1 || (resume === 'continue' && retries > 0)
  const asked = isAnyAsked ? order : order.slice(0, retries + 1)
  const others = refusalTargets({ on })
  return others.size === 0 ? asked : [...asked, ...others.values()]
}

/** What the exchange has in common with those that go to the same target; null = nothing. */
function affinityOf({ identity, req }: Exchange, affinity: Affinity): string | null {
  if (affinity.by === 'key') return identity.key?.name ?? null
  const value = req.headers[affinity.name]
  return value === undefined || value === '' ? null : String(value)
}
