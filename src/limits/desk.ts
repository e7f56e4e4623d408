import type { Limits } from '../config/types.ts'
import type { LocalLimiter } from './limiter.ts'
import type { Reply, Request } from './messages.ts'
import type { LimitedKey, Reservation } from './types.ts'

/** Limits as one text, to tell whether those of two processes are the same. */
function textOf(limits: Limits | null): string {
  return JSON.stringify(limits, (_name, value: unknown) => (value instanceof Map ? [...value] : value))
}

/** Where the limits of all workers are kept. */
export class LimitsDesk {
  readonly #limiter: LocalLimiter
  /** One object for the same limits of the same key, whichever worker names them. */
  readonly #keys = new Map<string, { readonly text: string; readonly key: LimitedKey }>()
  #defaults: string | null = null

  /** @param limiter new, without defaults: the workers tell them */
  constructor(limiter: LocalLimiter) {
    this.#limiter = limiter
  }

  /** For one worker, from its start to its end. */
  window(): LimitsWindow {
    return new LimitsWindow(this.#limiter, {
      key: (name, limits) => this.#key(name, limits),
      defaults: limits => this.#configure(limits),
    })
  }

  #key(name: string, limits: Limits | null): LimitedKey {
    const text = textOf(limits)
    const known = this.#keys.get(name)
    if (known?.text === text) return known.key
    const key = { name, limits }
    this.#keys.set(name, { text, key })
    return key
  }

  #configure(limits: Limits | null): void {
    const text = textOf(limits)
    if (text === this.#defaults) return
    this.#defaults = text
    this.#limiter.reconfigure(limits)
  }
}

interface Common {
  key(name: string, limits: Limits | null): LimitedKey
  defaults(limits: Limits | null): void
}

/** What one worker has open at the desk. */
export class LimitsWindow {
  readonly #limiter: LocalLimiter
  readonly #common: Common
  readonly #keys = new Map<number, LimitedKey>()
  /** At the ids that the worker gives them, which are small numbers. */
  readonly #open: (Reservation | null)[] = []

  constructor(limiter: LocalLimiter, common: Common) {
    this.#limiter = limiter
    this.#common = common
  }

  /** Does what was asked. @returns the answers */
  take(requests: readonly Request[]): Reply[] {
    const replies: Reply[] = []
    for (const request of requests) {
      switch (request.kind) {
        case 'key':
          this.#keys.set(request.ref, this.#common.key(request.name, request.limits))
          break
        case 'admit':
          replies.push(this.#admit(request))
          break
        case 'leave':
          this.#open[request.id]?.leave()
          break
        case 'settle':
          this.#open[request.id]?.settle(request)
          this.#open[request.id] = null
          break
        case 'restore':
          this.#limiter.restoreSpend(request.rows.map(row => ({ ...row, key: this.#key(row.ref) })))
          break
        case 'defaults':
          this.#common.defaults(request.limits)
      }
    }
    return replies
  }

  /**
   * The worker has gone, and with it what it knew. Its requests run no more; what
   * they used nobody knows, and so what was set aside for them counts as used: a
   * budget is never overspent by a worker's death.
   */
  close(): void {
    for (const reservation of this.#open.splice(0)) reservation?.settle({ tokens: null, pico: null })
  }

  #admit({ id, ref, model, tokens, pico }: Request & { kind: 'admit' }): Reply {
    const key = this.#key(ref)
    const admission = this.#limiter.admit({ key, model, estimate: { tokens, pico } })
    if (admission.ok) this.#open[id] = admission.reservation
    return {
      id, refusal: admission.ok ? null : admission.refusal, figures: this.#limiter.figures(key, model),
    }
  }

  #key(ref: number): LimitedKey {
    const key = this.#keys.get(ref)
    if (key === undefined) throw new Error(`the worker never said which key ${ref} is`)
    return key
  }
}
