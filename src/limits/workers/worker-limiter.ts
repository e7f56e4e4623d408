import type { Clock } from '../../base/clock.ts'
import { Slots } from '../../base/slots.ts'
import type { Limits } from '../../config/key-types.ts'
import { KeyModelState } from './key-model-state.ts'
import type { LimiterReplies, GrantedLease, AdmissionReply, LimiterRequest } from './lease-messages.ts'
import { LeaseOutbox } from './lease-outbox.ts'
import type { Ticket, WaitTerms } from '../queue/admission-queue.ts'
import { UNLIMITED } from '../reservation.ts'
import { idOf, isUnlimited } from '../types.ts'
import type { Admission, AdmissionRequest, Estimate, RateLimitStates, LimitedKey, Limiter, ActualUsage, Spend } from '../types.ts'
import { WorkerLease, WorkerReservation, type ReservationOwner } from './worker-lease.ts'

/** At this number of states, all states are dropped. */
const MAX_KEY_STATES = 10_000

const NO_SPEND: ReadonlyMap<string, bigint> = new Map()
const NO_RATE_LIMITS: RateLimitStates = Object.freeze({ requests: null, tokens: null })

export type WorkerLimiterClock = Pick<Clock, 'monotonic' | 'setTimeout'>

interface WaitingAdmission {
  readonly state: WorkerKeyState
  readonly ref: number
  readonly model: string | null
  readonly estimate: Estimate
  readonly isPart: boolean
  readonly resolve: (admission: Admission) => void
}

type PendingAdmission = WaitingAdmission & { readonly isLeaseRequested: boolean }
type WorkerKeyState = KeyModelState<WaitingAdmission>

/**
 * The limiter of a worker. It asks the lease server, which counts for all workers, to admit each request, except requests with a quota
 * lease and requests of keys without limits. Far below the limits, most requests have a lease.
 */
export class WorkerLimiter implements Limiter, ReservationOwner {
  readonly #outbox: LeaseOutbox
  readonly #budgetSpend: () => ReadonlyMap<string, bigint>
  readonly #clock: WorkerLimiterClock
  #defaults: Limits | null
  #refs = 0
  /** The known keys by `idOf`. A key keeps its `ref` when its limits change. */
  readonly #keys = new Map<string, { key: LimitedKey; ref: number }>()
  readonly #keyStates = new Map<string, WorkerKeyState>()
  /** The requests at the lease server, by id, until they are refused or settled. */
  readonly #open = new Slots<PendingAdmission | WorkerReservation>()
  readonly #leaseStates: (WorkerKeyState | null)[] = []

  /**
   * @param send sends messages to the lease server, whose replies go to `receive`
   * @param budgetSpend the spend that the lease server has counted; absent = this worker does not know the spend
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
      // Tell the lease server that the key has no limits any more.
      const known = this.#keys.get(idOf(key))
      if (known && !isUnlimited(known.key, null)) this.#ref(key)
      return UNLIMITED
    }
    const ref = this.#ref(key)
    const state = this.#keyState(key, model)
    // A lease admits only whole requests, not parts.
    const reservation = isPart ? null : state.admit(estimate, this.#clock.monotonic())
    if (reservation !== null) return { ok: true, reservation }
    const { promise, resolve } = Promise.withResolvers<Admission>()
    const waiting = { state, ref, model, estimate, isPart, resolve }
    if (isPart || !state.waitForLease(waiting)) this.#requestAdmission(waiting)
    return promise
  }

  wait({ key, model, estimate }: AdmissionRequest, terms: WaitTerms, done: (admission: Admission) => void): Ticket {
    const ref = this.#ref(key)
    const state = this.#keyState(key, model)
    let isDone = false
    const resolve = (admission: Admission): void => {
      isDone = true
      done(admission)
    }
    const id = this.#open.add({ state, ref, model, estimate, isPart: false, isLeaseRequested: false, resolve })
    const { tokens, pico } = estimate
    this.#outbox.post({ kind: 'wait', id, ref, model, tokens, pico, terms })
    // The lease server refuses a request that leaves, which frees its id.
    return {
      leave: () => {
        if (!isDone) this.#outbox.post({ kind: 'leave', id })
      },
    }
  }

  receive({ replies, recalledLeases }: LimiterReplies): void {
    for (const reply of replies) this.#handleReply(reply)
    for (const leaseId of recalledLeases) {
      const state = this.#leaseStates[leaseId] ?? null
      if (state !== null) this.#endLease(state)
    }
  }

  /** The states from the lease server's last reply, minus later admissions with a lease, plus the renewal since then. */
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
    if (rateLimits !== null) state.updateRateLimitStates(rateLimits, this.#clock.monotonic())
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
    if (this.#keyStates.size >= MAX_KEY_STATES) {
      for (const state of this.#keyStates.values()) this.#endLease(state)
      this.#keyStates.clear()
    }
    const state = new KeyModelState<WaitingAdmission>(key, NO_RATE_LIMITS, this.#clock.monotonic())
    this.#keyStates.set(name, state)
    return state
  }

  /** Replaces the state after the key's limits have changed. Ends the lease for the old limits, and keeps the rate-limit states. */
  #resetKeyState(name: string, state: WorkerKeyState, key: LimitedKey): WorkerKeyState {
    this.#endLease(state)
    const now = this.#clock.monotonic()
    const renewed = new KeyModelState<WaitingAdmission>(key, state.rateLimitStates(now), now)
    this.#keyStates.set(name, renewed)
    return renewed
  }
}

/** Compares by identity: the same objects mean that no limit has changed. */
function hasSameLimits(one: LimitedKey, other: LimitedKey): boolean {
  return one.limits === other.limits && one.groups === other.groups
}

function nameOf(key: LimitedKey, model: string | null): string {
  return `${key.name}\n${model ?? ''}`
}
