import type { Clock, Timer } from '../../base/clock.ts'
import type { Limits } from '../../config/key-types.ts'
import { AdmissionQueue, type LimitQueue, type Ticket, type WaitTerms } from '../queue/admission-queue.ts'
import { LeaseConnection, type LeaseService, type OutstandingLease } from './lease-connection.ts'
import type { LimiterReplies } from './lease-messages.ts'
import type { LocalLimiter } from '../limiter.ts'
import { idOf, type Admission, type AdmissionRequest, type LimitedKey, type LimitRefusal, type Reservation } from '../types.ts'

function textOf(limits: Limits | null): string {
  return JSON.stringify(limits, (_name, value: unknown) => (value instanceof Map ? [...value] : value))
}

/** Maximum ms that a request waits for returned leases. Limited, because a worker can hang. */
const RECALL_TIMEOUT_MS = 1000

/** The leases that use the limits of one key or of one group. */
interface OwnerLeases {
  readonly leases: Set<OutstandingLease>
  /** Callbacks that retry the requests which wait for returned leases. */
  readonly waiting: (() => void)[]
  recallTimeout: Timer | null
}

/** Counts the limits for all workers, and gives quota leases to workers. */
export class LeaseServer implements LeaseService {
  readonly #limiter: LocalLimiter
  readonly #clock: Pick<Clock, 'setTimeout'>
  /** The last limits of each key, so that equal limits from different workers become one object. */
  readonly #keys = new Map<string, { readonly text: string; readonly key: LimitedKey }>()
  readonly #leases = new Map<string, OwnerLeases>()
  readonly #queue: AdmissionQueue<AdmissionRequest, Reservation>
  #defaults: string | null = null

  /** @param limiter a new limiter without defaults, because the workers send the defaults */
  constructor(limiter: LocalLimiter, clock: Pick<Clock, 'monotonic' | 'setTimeout'>) {
    this.#limiter = limiter
    this.#clock = clock
    this.#queue = new AdmissionQueue<AdmissionRequest, Reservation>({
      decide: (request, turn, done) => this.admit(request, done, turn),
      setQueue: (request, scope, queue) => limiter.setQueue(request, scope, queue),
      asksAgain: false,
    }, clock)
  }

  connect(send: (replies: LimiterReplies) => void): LeaseConnection {
    return new LeaseConnection(this, this.#limiter, send)
  }

  internKey({ name, limits, groups = [], isGroup }: LimitedKey): LimitedKey {
    const above = groups.map(group => this.internKey(group))
    const id = idOf({ name, isGroup })
    const text = JSON.stringify([textOf(limits), ...above.map(group => [group.name, textOf(group.limits)])])
    const known = this.#keys.get(id)
    if (known?.text === text) return known.key
    const key: LimitedKey = { name, limits, groups: above, isGroup }
    this.#keys.set(id, { text, key })
    return key
  }

  setDefaults(limits: Limits | null): void {
    const text = textOf(limits)
    if (text === this.#defaults) return
    this.#defaults = text
    this.#limiter.reconfigure(limits)
  }

  /** Before a refusal, recalls the leases that use the limit. When they are returned, the limiter decides again. */
  admit(request: AdmissionRequest, decide: (admission: Admission) => void, turn: LimitQueue | null = null): void {
    const admission = this.#limiter.admit(request, turn)
    // If waiting cannot help, leases are not the cause of the refusal.
    const refusal = admission.ok || admission.refusal.retryAfterMs === null ? null : admission.refusal
    const owner = refusal && this.#leases.get(ownerOf(refusal.scope))
    if (!owner) return decide(admission)
    owner.waiting.push(() => this.admit(request, decide, turn))
    for (const { recall } of owner.leases) recall()
    // After the timeout, the leases stay reserved, but requests no longer wait for their return.
    owner.recallTimeout ??= this.#clock.setTimeout(() => {
      for (const { markReturned } of owner.leases) markReturned()
    }, RECALL_TIMEOUT_MS)
  }

  wait(request: AdmissionRequest, terms: WaitTerms, decide: (admission: Admission) => void): Ticket {
    return this.#queue.wait(request, terms, decide)
  }

  lease(request: AdmissionRequest, maxRequests: number, recall: () => void): OutstandingLease | null {
    const { key } = request
    const ids = [key, ...key.groups ?? []].map(idOf)
    if (ids.some(id => (this.#leases.get(id)?.waiting.length ?? 0) > 0)) return null
    const lease = this.#limiter.lease(request, maxRequests)
    if (lease === null) return null
    const outstanding: OutstandingLease = {
      lease,
      recall,
      markReturned: () => {
        const ready = ids.flatMap(id => this.#remove(id, outstanding))
        for (const retry of ready) retry()
      },
    }
    for (const id of ids) {
      const owner = this.#leases.get(id) ?? { leases: new Set(), waiting: [], recallTimeout: null }
      owner.leases.add(outstanding)
      this.#leases.set(id, owner)
    }
    return outstanding
  }

  /** @returns the waiting retries if this was the owner's last lease */
  #remove(id: string, outstanding: OutstandingLease): readonly (() => void)[] {
    const owner = this.#leases.get(id)
    // If the timeout has removed the lease already, the owner's current leases are later ones.
    if (!owner?.leases.delete(outstanding) || owner.leases.size > 0) return []
    owner.recallTimeout?.cancel()
    this.#leases.delete(id)
    return owner.waiting
  }
}

function ownerOf({ key, group }: LimitRefusal['scope']): string {
  return group === null ? key : idOf({ name: group, isGroup: true })
}
