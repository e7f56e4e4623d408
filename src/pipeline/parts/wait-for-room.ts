import type { Route } from '../../config/types.ts'
import { WAITING_REASONS, type Ticket, type WaitTerms } from '../../limits/queue/admission-queue.ts'
import { DEFAULT_PRIORITY } from '../../limits/queue/fair-queue.ts'
import type { Admission, AdmissionRequest, LimitRefusal, Reservation } from '../../limits/types.ts'
import type { Exchange, QueueScope, Writes } from '../exchange/exchange.ts'
import { ANONYMOUS_KEY } from './accounts.ts'
import type { Gateway } from './gateway.ts'

/** The tag with which a request can lower its own priority. */
const PRIORITY_TAG = 'priority'
/** Names of upstreams among the groups of the limiter begin with this. */
const UPSTREAM_PREFIX = 'upstream\t'

export interface RefusedRequest {
  readonly request: AdmissionRequest
  readonly refusal: LimitRefusal
}

/** @returns true = the request may wait for room instead of being refused */
export function canWait(gateway: Gateway, { queue }: Route, refusal: LimitRefusal): boolean {
  return (refusal.queue ?? queue ?? null) !== null && WAITING_REASONS.has(refusal.which) && refusal.retryAfterMs !== null && !gateway.draining
}

/**
 * Waits until one of the requests is admitted. A client that disconnects leaves the queue at once (`exchange.stop`).
 * @param refused requests of which one is needed, such as one for each target; at least one
 * @returns the first admission with the index of its request, or the last refusal
 */
export async function waitForRoom(
  gateway: Gateway, exchange: Writes<'waiting' | 'queueWaits'>, refused: readonly RefusedRequest[],
): Promise<{ readonly reservation: Reservation, readonly at: number } | LimitRefusal> {
  const { clock, accounts: { limiter } } = gateway
  const since = clock.monotonic()
  const terms = termsOf(gateway, exchange)
  const { promise, resolve } = Promise.withResolvers<{ readonly reservation: Reservation, readonly at: number } | LimitRefusal>()
  const tickets: Ticket[] = []
  const leave = (): void => {
    for (const ticket of tickets) ticket.leave()
  }
  let open = refused.length
  let isDecided = false
  const decided = (admission: Admission, at: number): void => {
    open -= 1
    if (admission.ok && !isDecided) {
      isDecided = true
      resolve({ reservation: admission.reservation, at })
      leave()
    } else if (admission.ok) {
      admission.reservation.release()
    } else if (open === 0 && !isDecided) {
      isDecided = true
      resolve(admission.refusal)
    }
  }
  const scope = scopeOf((refused[0] as RefusedRequest).refusal)
  exchange.waiting = { scope, which: (refused[0] as RefusedRequest).refusal.which, priority: terms.priority, since, leave }
  gateway.log.debug({ ...exchange.logIds, limit: exchange.waiting.which, scope, priority: terms.priority }, 'waits for room')
  for (const [at, { request }] of refused.entries()) tickets.push(limiter.wait(request, terms, admission => decided(admission, at)))
  if (isDecided) leave()
  try {
    const result = await promise
    exchange.queueWaits = [...exchange.queueWaits, { scope, ms: clock.monotonic() - since, isRefused: 'which' in result && exchange.stopped === null }]
    return result
  } finally {
    exchange.waiting = null
  }
}

export function queuedMs({ queueWaits }: Exchange): number {
  return queueWaits.reduce((sum, { ms }) => sum + ms, 0)
}

function termsOf({ config }: Gateway, { identity, attributed, plan }: Exchange): WaitTerms {
  const { name, limits, groups = [] } = identity.limited ?? { ...ANONYMOUS_KEY, groups: [] }
  const group = groups.find(each => typeof each.limits?.priority === 'number')
  const priority = limits?.priority ?? group?.limits?.priority ?? config.limits?.priority ?? DEFAULT_PRIORITY
  return { name, priority: lowered(priority, attributed?.tags?.[PRIORITY_TAG]), queue: plan?.route.queue ?? null }
}

/** A client may give way to others, but not pass them. */
function lowered(priority: number, tag: string | undefined): number {
  return tag !== undefined && /^[0-9]$/.test(tag) ? Math.min(priority, Number(tag)) : priority
}

function scopeOf({ scope: { group } }: LimitRefusal): QueueScope {
  if (group === null) return 'key'
  return group.startsWith(UPSTREAM_PREFIX) ? 'upstream' : 'group'
}
