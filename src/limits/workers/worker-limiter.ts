import type { Clock } from '../../base/clock.ts'
import { Slots } from '../../base/slots.ts'
import type { Limits } from '../../config/key-types.ts'
import { KeyModelState } from './key-model-state.ts'
import type { LimiterReplies, GrantedLease, AdmissionReply, LimiterRequest } from './lease-messages.ts'
import { LeaseOutbox } from './lease-outbox.ts'
import { UNLIMITED } from '../reservation.ts'
import { idOf, isUnlimited } from '../types.ts'
import type { Admission, AdmissionRequest, Estimate, RateLimitStates, LimitedKey, Limiter, ActualUsage, Spend } from '../types.ts'
import { WorkerLease, WorkerReservation } from './worker-lease.ts'
import type { ReservationOwner } from './worker-lease.ts'

/** Number of states, by key and model, above which all are dropped. */
const MAX_KEY_STATES = 10_000

const NO_SPEND: ReadonlyMap<string, bigint> = new Map()
const NO_RATE_LIMITS: RateLimitStates = Object.freeze({ requests: null, tokens: null })

export type WorkerLimiterClock = Pick<Clock, 'monotonic' | 'setTimeout'>

/** A request that is not admitted yet. */
interface WaitingAdmission {
  readonly state: WorkerKeyState
  readonly ref: number
  readonly model: string | null
  readonly estimate: Estimate
  readonly isPart: boolean
  readonly resolve: (admission: Admission) => void
}

/** A request that the lease server is asked to admit. */
interface PendingAdmission extends WaitingAdmission {
  readonly isLeaseRequested: boolean
}

type WorkerKeyState = KeyModelState<WaitingAdmission>

/**
 * The limiter of a worker. The lease server keeps the limits of all workers and is
 * asked to admit. Keys without limits are admitted here, at once, and so are requests
 * for which there is a quota lease: of many requests far from their limits, few ask.
 */
export class WorkerLimiter implements Limiter, ReservationOwner {
  readonly #outbox: LeaseOutbox
  readonly #budgetSpend: () => ReadonlyMap<string, bigint>
  readonly #clock: WorkerLimiterClock
  #defaults: Limits | null
  #refs = 0
  /** By name. A key keeps its reference when its limits change. */
  readonly #keys = new Map<string, { key: LimitedKey; ref: number }>()
  readonly #keyStates = new Map<string, WorkerKeyState>()
  /** Pending admissions and reservations by id, until they are refused or settled. */
  readonly #open = new Slots<PendingAdmission | WorkerReservation>()
  /** By lease id. */
  readonly #leaseStates: (WorkerKeyState | null)[] = []

  /**
   * @param defaults hold for every key, field by field, where it sets none of its own
   * @param send takes requests to the lease server; its replies go to `receive`
   * @param budgetSpend what the lease server counted; absent = another process has it
   */
  constructor(
    defaults: Limits | null, clock: WorkerLimiterClock, send: (requests: readonly LimiterRequest[]) => void,
    budgetSpend: () => ReadonlyMap<string, bigint> = () => NO_SPEND,
  ) {
    this.#budgetSpend = budgetSpend
    this.#outbox = new LeaseOutbox(send)
    this.#clock = clock
    this.#defaults = defaults
    this.#outbox.post({ kind: 'defaults', limits: defaults })
  }

  admit({ key, model, estimate, isPart = false }: AdmissionRequest): Admission | Promise<Admission> {
    if (isUnlimited(key, this.#defaults)) {
      // The lease server must learn that the key has no limits now.
      const known = this.#keys.get(idOf(key))
      if (known && !isUnlimited(known.key, null)) this.#ref(key)
      return UNLIMITED
    }
    const ref = this.#ref(key)
    const state = this.#keyState(key, model)
    // A lease admits only whole requests.
    const reservation = isPart ? null : state.admit(estimate, this.#clock.monotonic())
    if (reservation !== null) return { ok: true, reservation }
    const { promise, resolve } = Promise.withResolvers<Admission>()
    const waiting = { state, ref, model, estimate, isPart, resolve }
    if (isPart || !state.waitForLease(waiting)) this.#requestAdmission(waiting)
    return promise
  }

  receive({ replies, recalledLeases }: LimiterReplies): void {
    for (const reply of replies) this.#handleReply(reply)
    for (const leaseId of recalledLeases) {
      const state = this.#leaseStates[leaseId] ?? null
      if (state !== null) this.#endLease(state)
    }
  }

  /** As of this key's last reply and the time since, less what was admitted on a lease that the reply does not count. */
  rateLimitStates(key: LimitedKey, model: string | null): RateLimitStates {
    return isUnlimited(key, this.#defaults) ? NO_RATE_LIMITS : this.#keyStates.get(nameOf(key, model))?.rateLimitStates(this.#clock.monotonic()) ?? NO_RATE_LIMITS
  }

  budgetSpend(): ReadonlyMap<string, bigint> {
    return this.#budgetSpend()
  }

  restoreSpend(spent: Iterable<Spend>): void {
    const rows = Array.from(spent, ({ key, ...rest }) => ({ ...rest, ref: this.#ref(key) }))
    if (rows.length > 0) this.#outbox.post({ kind: 'restore', rows })
  }

  reconfigure(defaults: Limits | null): void {
    for (const [name, state] of this.#keyStates) this.#resetKeyState(name, state, state.key)
    this.#defaults = defaults
    this.#outbox.post({ kind: 'defaults', limits: defaults })
  }

  concurrencyReleased(id: number): void {
    this.#outbox.post({ kind: 'release-concurrency', id })
  }

  settled(id: number, outcome: ActualUsage): void {
    this.#open.delete(id)
    this.#outbox.postSettlement(id, outcome)
  }

  #requestAdmission(waiting: WaitingAdmission): void {
    const { state, ref, model, estimate: { tokens, pico }, isPart } = waiting
    const leaseRequests = isPart ? 0 : state.startLimiterRequest(this.#clock.monotonic())
    const id = this.#open.add({ ...waiting, isLeaseRequested: leaseRequests > 0 })
    this.#outbox.post({ kind: 'admit', id, ref, model, tokens, pico, leaseRequests, ...isPart && { isPart } })
  }

  #handleReply({ id, refusal, rateLimitStates: rateLimits, lease }: AdmissionReply): void {
    const pending = this.#open.at(id)
    if (pending === null || pending instanceof WorkerReservation) return
    const { state, estimate, isPart, isLeaseRequested, resolve } = pending
    state.updateRateLimitStates(rateLimits, this.#clock.monotonic())
    if (lease !== null) this.#startLease(state, lease)
    if (refusal === null) {
      const reservation = new WorkerReservation(estimate, !isPart)
      reservation.assignOwner(this, id)
      this.#open.replace(id, reservation)
      resolve({ ok: true, reservation })
    } else {
      this.#open.delete(id)
      resolve({ ok: false, refusal })
    }
    if (isLeaseRequested) for (const waiting of state.leaseReplied(lease !== null)) this.#admitOrRequest(waiting)
  }

  #admitOrRequest(waiting: WaitingAdmission): void {
    const { state, estimate, resolve } = waiting
    const reservation = state.admit(estimate, this.#clock.monotonic())
    if (reservation === null) this.#requestAdmission(waiting)
    else resolve({ ok: true, reservation })
  }

  #startLease(state: WorkerKeyState, granted: GrantedLease): void {
    this.#endLease(state)
    const lease = new WorkerLease(granted, this.#clock.monotonic())
    state.lease = lease
    this.#leaseStates[granted.leaseId] = state
    this.#clock.setTimeout(() => {
      if (state.lease === lease) this.#endLease(state)
    }, granted.lifetimeMs)
  }

  #endLease(state: WorkerKeyState): void {
    const { lease } = state
    if (lease === null) return
    state.leaseEnded(lease)
    this.#leaseStates[lease.leaseId] = null
    this.#outbox.post(lease.close(this, reservation => this.#open.add(reservation)))
  }

  #clearKeyStates(): void {
    for (const state of this.#keyStates.values()) this.#endLease(state)
    this.#keyStates.clear()
  }

  #ref(key: LimitedKey): number {
    const id = idOf(key)
    const known = this.#keys.get(id)
    if (known && hasSameLimits(known.key, key)) return known.ref
    const { name, limits, groups, isGroup, members } = key
    const ref = known?.ref ?? ++this.#refs
    this.#keys.set(id, { key, ref })
    const above = groups?.map(group => ({ name: group.name, limits: group.limits, isGroup: group.isGroup, members: group.members }))
    this.#outbox.post({ kind: 'key', ref, name, limits, groups: above, isGroup, members })
    return ref
  }

  #keyState(key: LimitedKey, model: string | null): WorkerKeyState {
    const name = nameOf(key, model)
    const known = this.#keyStates.get(name)
    if (known && hasSameLimits(known.key, key)) return known
    if (known !== undefined) return this.#resetKeyState(name, known, key)
    if (this.#keyStates.size >= MAX_KEY_STATES) this.#clearKeyStates()
    const state = new KeyModelState<WaitingAdmission>(key, NO_RATE_LIMITS, this.#clock.monotonic())
    this.#keyStates.set(name, state)
    return state
  }

  /** Leases of other limits end. The rate-limit states stay. */
  #resetKeyState(name: string, state: WorkerKeyState, key: LimitedKey): WorkerKeyState {
    this.#endLease(state)
    const now = this.#clock.monotonic()
    const renewed = new KeyModelState<WaitingAdmission>(key, state.rateLimitStates(now), now)
    this.#keyStates.set(name, renewed)
    return renewed
  }
}

/** True if both keys have the same limit objects: no limit has changed. */
function hasSameLimits(one: LimitedKey, other: LimitedKey): boolean {
  return one.limits === other.limits && one.groups === other.groups
}

function nameOf(key: LimitedKey, model: string | null): string {
  return `${key.name}\n${model ?? ''}`
}
