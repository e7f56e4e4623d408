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

/** Milliseconds that somebody waits at most for loans to be repaid: a worker may hang. */
const RECALL_TIMEOUT_MS = 1000

/** The loans of one key, while there are any. */
interface KeyLeases {
  readonly leases: Slots<OutstandingLease>
  /** Those who would be refused, each to be asked for once more. */
  readonly waiting: (() => void)[]
  /** Set while somebody waits. */
  recallTimeout: Timer | null
}

/** Where the limits of all workers are kept. */
export class LeaseServer implements LeaseService {
  readonly #limiter: LocalLimiter
  readonly #clock: Pick<Clock, 'setTimeout'>
  /** One object for the same limits of the same key, whichever worker names them. */
  readonly #keys = new Map<string, { readonly text: string; readonly key: LimitedKey }>()
  /** By the names of keys. */
  readonly #leasesByKey = new Map<string, KeyLeases>()
  #defaults: string | null = null

  /** @param limiter new, without defaults: the workers tell them */
  constructor(limiter: LocalLimiter, clock: Pick<Clock, 'setTimeout'>) {
    this.#limiter = limiter
    this.#clock = clock
  }

  /**
   * For one worker, from its start to its end.
   *
   * @param send takes what the worker is told
   */
  connect(send: (answers: LimiterReplies) => void): LeaseConnection {
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

  /** Nobody is refused what is lent and unused: it is called in first, and the limiter asked once more. */
  admit(ask: AdmissionRequest, decide: (admission: Admission) => void): void {
    const admission = this.#limiter.admit(ask)
    const lending = this.#leasesByKey.get(ask.key.name)
    // Where waiting cannot help, no loan stands in the way either.
    if (admission.ok || lending === undefined || admission.refusal.retryAfterMs === null) {
      decide(admission)
      return
    }
    lending.waiting.push(() => this.admit(ask, decide))
    for (const { recall: callIn } of lending.leases) callIn()
    // What has not come back by then stays set aside until it does, but nobody waits for it.
    lending.recallTimeout ??= this.#clock.setTimeout(() => {
      for (const { markReturned: returned } of lending.leases) returned()
    }, RECALL_TIMEOUT_MS)
  }

  lease(ask: AdmissionRequest, most: number, callIn: () => void): OutstandingLease | null {
    const { name } = ask.key
    const lending = this.#leasesByKey.get(name) ?? { leases: new Slots(), waiting: [], recallTimeout: null }
    const loan = lending.waiting.length > 0 ? null : this.#limiter.lease(ask, most)
    if (loan === null) return null
    this.#leasesByKey.set(name, lending)
    const out: OutstandingLease = {
      lease: loan,
      recall: callIn,
      markReturned: () => {
        // Given up already: its place may be another's.
        if (lending.leases.at(place) !== out) return
        lending.leases.delete(place)
        if (lending.leases.size > 0) return
        lending.recallTimeout?.cancel()
        this.#leasesByKey.delete(name)
        for (const again of lending.waiting) again()
      },
    }
    const place = lending.leases.add(out)
    return out
  }
}
