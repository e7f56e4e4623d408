import type { Clock, Timer } from '../base/clock.ts'
import { Slots } from '../base/slots.ts'
import type { Limits } from '../config/types.ts'
import { LeaseConnection } from './lease-connection.ts'
import type { LeaseService, OutstandingLease } from './lease-connection.ts'
import type { LocalLimiter } from './limiter.ts'
import type { LimiterReplies } from './messages.ts'
import type { Admission, AdmissionRequest, LimitedKey } from './types.ts'

/** Limits as one text, to tell whether those of two processes are the same. */
function textOf(limits: Limits | null): string {
  return JSON.stringify(limits, (_name, value: unknown) => (value instanceof Map ? [...value] : value))
}

/** ms that a request waits for leases to be returned: a worker may hang. */
const RECALL_TIMEOUT_MS = 1000

/** The leases of one key, while there are any. */
interface KeyLeases {
  readonly leases: Slots<OutstandingLease>
  /** Retries of the requests that would be refused. */
  readonly waiting: (() => void)[]
  /** Set while a request waits. */
  recallTimeout: Timer | null
}

/** Keeps the limits of all workers, and gives workers quota leases. */
export class LeaseServer implements LeaseService {
  readonly #limiter: LocalLimiter
  readonly #clock: Pick<Clock, 'setTimeout'>
  /** One object for the same limits of the same key, whichever worker names them. */
  readonly #keys = new Map<string, { readonly text: string; readonly key: LimitedKey }>()
  /** By the names of keys. */
  readonly #leasesByKey = new Map<string, KeyLeases>()
  #defaults: string | null = null

  /** @param limiter new, without defaults: the workers send them */
  constructor(limiter: LocalLimiter, clock: Pick<Clock, 'setTimeout'>) {
    this.#limiter = limiter
    this.#clock = clock
  }

  /**
   * Connects one worker, from its start to its end.
   * @param send takes replies to the worker
   */
  connect(send: (replies: LimiterReplies) => void): LeaseConnection {
    return new LeaseConnection(this, this.#limiter, send)
  }

  internKey(name: string, limits: Limits | null): LimitedKey {
    const text = textOf(limits)
    const known = this.#keys.get(name)
    if (known?.text === text) return known.key
    const key = { name, limits }
    this.#keys.set(name, { text, key })
    return key
  }

  setDefaults(limits: Limits | null): void {
    const text = textOf(limits)
    if (text === this.#defaults) return
    this.#defaults = text
    this.#limiter.reconfigure(limits)
  }

  /** No request is refused quota that is leased and unused: leases are recalled first, then the limiter is asked again. */
  admit(request: AdmissionRequest, decide: (admission: Admission) => void): void {
    const admission = this.#limiter.admit(request)
    const keyLeases = this.#leasesByKey.get(request.key.name)
    // Where waiting cannot help, no lease is in the way either.
    if (admission.ok || keyLeases === undefined || admission.refusal.retryAfterMs === null) {
      decide(admission)
      return
    }
    keyLeases.waiting.push(() => this.admit(request, decide))
    for (const { recall } of keyLeases.leases) recall()
    // A lease that is not returned by then stays reserved, but no request waits for it.
    keyLeases.recallTimeout ??= this.#clock.setTimeout(() => {
      for (const { markReturned } of keyLeases.leases) markReturned()
    }, RECALL_TIMEOUT_MS)
  }

  lease(request: AdmissionRequest, maxRequests: number, recall: () => void): OutstandingLease | null {
    const { name } = request.key
    const keyLeases = this.#leasesByKey.get(name) ?? { leases: new Slots(), waiting: [], recallTimeout: null }
    const lease = keyLeases.waiting.length > 0 ? null : this.#limiter.lease(request, maxRequests)
    if (lease === null) return null
    this.#leasesByKey.set(name, keyLeases)
    const outstanding: OutstandingLease = {
      lease,
      recall,
      markReturned: () => {
        // Given up already: its slot may hold another lease.
        if (keyLeases.leases.at(slot) !== outstanding) return
        keyLeases.leases.delete(slot)
        if (keyLeases.leases.size > 0) return
        keyLeases.recallTimeout?.cancel()
        this.#leasesByKey.delete(name)
        for (const retry of keyLeases.waiting) retry()
      },
    }
    const slot = keyLeases.leases.add(outstanding)
    return outstanding
  }
}
