import type { Clock, Timer } from '../../base/clock.ts'
import { nextTurn } from '../../base/next-turn.ts'
import type { QueueLimits } from '../../config/key-types.ts'
import { FairQueue, type Place } from './fair-queue.ts'
import type { LimitReason, LimitRefusal } from './limit-refusal.ts'
import { WaitDeadlines, type DeadlineEntry } from './wait-deadlines.ts'

/** How a request waits if a limit has no room for it. */
export interface WaitTerms {
  /** Requests with different names take turns. */
  readonly name: string
  /** 0 to 9; 9 is served first. */
  readonly priority: number
  /** For limits without a queue of their own; null = the request waits only for limits with a queue. */
  readonly queue: QueueLimits | null
}

export type Decision<R> = { readonly ok: true, readonly reservation: R } | { readonly ok: false, readonly refusal: LimitRefusal }

/** The requests that wait for one limit, as the limit sees them. */
export interface LimitQueue {
  /** Why the first request waits. */
  readonly which: LimitReason
  /** Milliseconds, at least 1. */
  readonly waitMs: number
  /** Call this when the limit may have room again. */
  freed(): void
}

export interface QueueBackend<Request, R extends { release(): void }> {
  /** @param turn the queue whose turn it is: other requests of its limit have to wait, this one not */
  decide(request: Request, turn: LimitQueue | null, done: (decision: Decision<R>) => void): void
  /** Makes other requests wait at the limit, and reports when it may have room; null = nothing waits any more. */
  setQueue(request: Request, scope: LimitRefusal['scope'], queue: LimitQueue | null): void
  /** true = nothing reports a running request that ends elsewhere, so that the queue asks again after retry-after */
  readonly asksAgain: boolean
}

export interface Ticket {
  /** The request leaves the queue at once, and is refused. Does nothing after the decision. */
  leave(): void
}

type QueueClock = Pick<Clock, 'monotonic' | 'setTimeout'>

/** Requests for which waiting can help: a spent budget never waits. */
export const WAITING_REASONS: ReadonlySet<LimitReason> = new Set(['requests', 'tokens', 'concurrent'])
/** Decisions of one queue in one turn of the event loop. */
const MAX_DECISIONS = 32

class Waiter<Request, R> implements Ticket {
  readonly request: Request
  readonly terms: WaitTerms
  readonly #done: (decision: Decision<R>) => void
  isDone = false
  queue: ScopeQueue<Request, R> | null = null
  place: Place<Waiter<Request, R>> | null = null
  deadline: DeadlineEntry<Waiter<Request, R>> | null = null
  refusal: LimitRefusal | null = null
  readonly #leave: (waiter: Waiter<Request, R>) => void

  constructor(request: Request, terms: WaitTerms, done: (decision: Decision<R>) => void, leave: (waiter: Waiter<Request, R>) => void) {
    this.request = request
    this.terms = terms
    this.#done = done
    this.#leave = leave
  }

  leave(): void {
    this.#leave(this)
  }

  decided(decision: Decision<R>): void {
    this.isDone = true
    this.#done(decision)
  }
}

class ScopeQueue<Request, R> implements LimitQueue {
  readonly id: string
  readonly scope: LimitRefusal['scope']
  /** A request of the limit's holder, by which the backend finds the limit. */
  readonly request: Request
  readonly waiters = new FairQueue<Waiter<Request, R>>()
  which: LimitReason = 'concurrent'
  waitMs = 1
  isServing = false
  isFreed = false
  timer: Timer | null = null
  readonly #serve: () => void

  constructor(id: string, scope: LimitRefusal['scope'], request: Request, serve: (queue: ScopeQueue<Request, R>) => Promise<void>) {
    this.id = id
    this.scope = scope
    this.request = request
    this.#serve = () => void serve(this)
  }

  freed(): void {
    if (this.isFreed) return
    this.isFreed = true
    // Later, because a request that ends frees several limits one after the other.
    if (!this.isServing) queueMicrotask(this.#serve)
  }
}

/**
 * Requests that wait for limits. A request waits at the limit that has refused it. When that limit may have room, the first request is
 * decided again; another limit can refuse it then, so that it goes on waiting there. While requests wait at a limit, later requests cannot
 * pass them.
 */
export class AdmissionQueue<Request, R extends { release(): void }> {
  readonly #backend: QueueBackend<Request, R>
  readonly #clock: QueueClock
  readonly #queues = new Map<string, ScopeQueue<Request, R>>()
  readonly #deadlines: WaitDeadlines<Waiter<Request, R>>

  constructor(backend: QueueBackend<Request, R>, clock: QueueClock) {
    this.#backend = backend
    this.#clock = clock
    this.#deadlines = new WaitDeadlines(clock, waiter => {
      waiter.deadline = null
      this.#refuse(waiter)
    })
  }

  /** The number of waiting requests at all limits. */
  get size(): number {
    return this.#queues.values().reduce((sum, { waiters }) => sum + waiters.size, 0)
  }

  /** @param done called once: when the request is admitted, or refused because the queue is full, its wait has ended or it has left */
  wait(request: Request, terms: WaitTerms, done: (decision: Decision<R>) => void): Ticket {
    const waiter = new Waiter<Request, R>(request, terms, done, left => this.#left(left))
    this.#backend.decide(request, null, decision => {
      if (waiter.isDone) {
        if (decision.ok) decision.reservation.release()
      } else if (decision.ok) {
        waiter.decided(decision)
      } else {
        this.#enter(waiter, decision.refusal)
      }
    })
    return waiter
  }

  #enter(waiter: Waiter<Request, R>, refusal: LimitRefusal): void {
    waiter.refusal = refusal
    const limits = refusal.queue ?? waiter.terms.queue
    if (limits === null || !WAITING_REASONS.has(refusal.which) || refusal.retryAfterMs === null) return this.#refuse(waiter)
    const queue = this.#queueOf(waiter.request, refusal.scope)
    const { waiters } = queue
    const { priority, name } = waiter.terms
    if (waiters.size >= limits.size) {
      const victim = waiters.victim(priority, name)
      if (victim === null) {
        this.#closeIfEmpty(queue)
        return this.#refuse(waiter)
      }
      this.#refuse(victim)
    }
    waiter.deadline ??= this.#deadlines.add(waiter, limits.wait)
    waiter.queue = queue
    waiter.place = waiters.add(waiter, priority, name)
    if (waiters.first() === waiter) queue.freed()
  }

  #queueOf(request: Request, scope: LimitRefusal['scope']): ScopeQueue<Request, R> {
    const id = JSON.stringify([scope.group ?? '', scope.group === null ? scope.key : '', scope.model])
    let queue = this.#queues.get(id)
    if (queue === undefined) {
      queue = new ScopeQueue<Request, R>(id, scope, request, each => this.#serve(each))
      this.#queues.set(id, queue)
      this.#backend.setQueue(request, scope, queue)
    }
    return queue
  }

  /** Decides the first requests until one has to go on waiting. */
  async #serve(queue: ScopeQueue<Request, R>): Promise<void> {
    if (queue.isServing) return
    queue.isServing = true
    queue.timer?.cancel()
    queue.timer = null
    for (let decisions = 1; queue.isFreed; decisions++) {
      queue.isFreed = false
      const waiter = queue.waiters.first()
      if (waiter === null) break
      const decision = await new Promise<Decision<R>>(resolve => this.#backend.decide(waiter.request, queue, resolve))
      this.#decided(queue, waiter, decision)
      if (decisions % MAX_DECISIONS === 0) await nextTurn()
    }
    queue.isServing = false
    this.#closeIfEmpty(queue)
  }

  #decided(queue: ScopeQueue<Request, R>, waiter: Waiter<Request, R>, decision: Decision<R>): void {
    if (waiter.queue !== queue) {
      // The client left meanwhile.
      if (decision.ok) decision.reservation.release()
      queue.isFreed = true
      return
    }
    if (decision.ok) {
      if (waiter.place !== null) queue.waiters.take(waiter.place)
      this.#detach(waiter)
      waiter.decided(decision)
      queue.isFreed = true
      return
    }
    const { refusal } = decision
    const { key, group, model } = refusal.scope
    const isSame = group === queue.scope.group && model === queue.scope.model && (group !== null || key === queue.scope.key)
    if (isSame && WAITING_REASONS.has(refusal.which) && refusal.retryAfterMs !== null) {
      waiter.refusal = refusal
      this.#block(queue, refusal)
      return
    }
    queue.waiters.remove(waiter.place!)
    waiter.queue = null
    waiter.place = null
    queue.isFreed = true
    this.#enter(waiter, refusal)
  }

  #block(queue: ScopeQueue<Request, R>, { which, retryAfterMs }: LimitRefusal): void {
    queue.which = which
    queue.waitMs = Math.max(1, retryAfterMs ?? 1)
    if (which === 'concurrent' && !this.#backend.asksAgain) return
    queue.timer?.cancel()
    queue.timer = this.#clock.setTimeout(() => {
      queue.timer = null
      queue.freed()
    }, queue.waitMs)
  }

  #left(waiter: Waiter<Request, R>): void {
    if (!waiter.isDone) this.#refuse(waiter)
  }

  /** Takes the request out of its queue, if it is in one, and refuses it. */
  #refuse(waiter: Waiter<Request, R>): void {
    const { queue, place } = waiter
    if (queue !== null && place !== null) {
      const wasFirst = queue.waiters.first() === waiter
      queue.waiters.remove(place)
      if (wasFirst) queue.freed()
    }
    this.#detach(waiter)
    waiter.decided({ ok: false, refusal: waiter.refusal ?? LEFT })
  }

  #detach(waiter: Waiter<Request, R>): void {
    if (waiter.deadline !== null) this.#deadlines.remove(waiter.deadline)
    waiter.deadline = null
    waiter.queue = null
    waiter.place = null
  }

  #closeIfEmpty(queue: ScopeQueue<Request, R>): void {
    if (queue.isServing || queue.waiters.size > 0 || this.#queues.get(queue.id) !== queue) return
    queue.timer?.cancel()
    this.#queues.delete(queue.id)
    this.#backend.setQueue(queue.request, queue.scope, null)
  }
}

/** The request left before any limit decided. */
const LEFT: LimitRefusal = Object.freeze({
  which: 'concurrent', scope: Object.freeze({ key: '', group: null, model: null }), retryAfterMs: 1000, renewsSoon: true,
  message: 'The client left the queue.', queue: null,
})
