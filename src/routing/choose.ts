import { hash } from 'node:crypto'
import type { Route, Target } from '../config/types.ts'
import { candidateId } from './candidate.ts'
import type { CandidateHealth, Health } from './health.ts'

export interface ChoiceOptions {
  readonly health: Health
  /** Random number from 0 to 1. */
  readonly random: () => number
  /** The model as the client sent it. */
  readonly model: string | null
  /** Requests with the same value go to the same target; null = no affinity. */
  readonly affinity: string | null
}

/**
 * Orders targets by affinity or, without affinity, by the route's strategy. Targets with an open circuit come last. Of those, the target
 * whose circuit allows a probe soonest comes first, so that it is tried first when all targets are unhealthy.
 */
export function chooseOrder(route: Pick<Route, 'targets' | 'strategy'>, options: ChoiceOptions): Target[] {
  const [only] = route.targets
  if (route.targets.length === 1) return [only as Target]
  const { health, model, affinity } = options
  const id = (target: Target) => candidateId(target, model)
  const preferred = affinity === null ? byStrategy(route, options) : byAffinity(route.targets, affinity, id)
  const healthy = preferred.filter(target => health.allows(id(target)))
  const unhealthy = preferred.filter(target => !healthy.includes(target))
  const opensIn = (target: Target) => health.condition(id(target)).opensIn
  unhealthy.sort((a, b) => (opensIn(a) === opensIn(b) ? 0 : opensIn(a) - opensIn(b)))
  return [...healthy, ...unhealthy]
}

function byStrategy({ targets, strategy }: Pick<Route, 'targets' | 'strategy'>, options: ChoiceOptions): Target[] {
  const condition = (target: Target) => options.health.condition(candidateId(target, options.model))
  switch (strategy) {
    case 'ordered': return [...targets]
    case 'weighted': return shuffled(targets, options.random)
    case 'least_busy':
      // Shuffle first: sorting is stable, so that equally busy targets stay in random order.
      return shuffled(targets, options.random).sort((a, b) => condition(a).inFlight / a.weight - condition(b).inFlight / b.weight)
    case 'fastest': return fastest(targets, condition, options.random)
  }
}

/**
 * A random order by weight: the sort key of each target is an exponentially distributed random number with the rate `weight`.
 * Source: Efraimidis and Spirakis, "Weighted random sampling with a reservoir", 2006.
 */
function shuffled(targets: readonly Target[], random: () => number): Target[] {
  return targets.map(target => ({ target, key: target.weight > 0 ? -Math.log(1 - random()) / target.weight : Infinity }))
    .toSorted((a, b) => (a.key === b.key ? 0 : a.key - b.key))
    .map(({ target }) => target)
}

/**
 * The better of two random targets comes first: the one with the lower product of first-byte time and running requests. The other targets
 * follow by that product.
 * Source: M. Mitzenmacher, "The power of two choices in randomized load balancing", 2001.
 */
function fastest(targets: readonly Target[], condition: (target: Target) => CandidateHealth, random: () => number): Target[] {
  const score = (target: Target) => {
    const { expectedMs, inFlight } = condition(target)
    // A target without a measurement gets the best score, so that it is measured.
    return (expectedMs ?? 0) * (inFlight + 1)
  }
  const a = Math.floor(random() * targets.length)
  const b = (a + 1 + Math.floor(random() * (targets.length - 1))) % targets.length
  const first = targets[score(targets[a] as Target) <= score(targets[b] as Target) ? a : b] as Target
  const others = targets.filter(target => target !== first).toSorted((x, y) => score(x) - score(y))
  return [first, ...others]
}

/**
 * Weighted rendezvous hashing: if a target is added or removed, only the requests of that target move.
 * Source: Thaler and Ravishankar, "Using name-based mappings to increase hit rates", 1998; Schindelhauer and Schomaker, 2005.
 */
function byAffinity(targets: readonly Target[], affinity: string, id: (target: Target) => string): Target[] {
  return targets
    .map(target => {
      const digest = hash('sha256', `${affinity}\n${id(target)}`, 'buffer')
      const uniform = (digest.readUIntBE(0, 6) + 1) / (2 ** 48 + 1)
      return { target, key: -Math.log(uniform) / Math.max(target.weight, Number.MIN_VALUE) }
    })
    .toSorted((a, b) => a.key - b.key)
    .map(({ target }) => target)
}
