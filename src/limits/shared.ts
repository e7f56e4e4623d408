import type { Limits } from '../config/types.ts'
import { Slots } from '../slots.ts'
import type { Reply, Request } from './messages.ts'
import type { Admission, Ask, Figures, LimitedKey, Limiter, Outcome, Reservation, Spend } from './types.ts'
import { UNLIMITED } from './unlimited.ts'

/** Figures that are kept for the headers of answers under way; beyond so many all are forgotten. */
const MOST_FIGURES = 10_000

const NO_FIGURES: Figures = Object.freeze({ requests: null, tokens: null })

/**
 * The limiter of a worker: the limits themselves are kept in one place for all
 * workers, and asked there. Keys without limits are admitted here, at once.
 * What is asked in one turn of the event loop goes out together.
 */
export class SharedLimiter implements Limiter {
  readonly #send: (requests: readonly Request[]) => void
  #defaults: Limits | null
  #outbox: Request[] = []
  #refs = 0
  /** One for each name: a key whose limits change keeps its number. */
  readonly #keys = new Map<string, { limits: Limits | null; ref: number }>()
  /** What was asked, each at its id, until it is refused or settled. */
  readonly #open = new Slots<{ readonly ask: Ask; readonly resolve: (admission: Admission) => void }>()
  readonly #figures = new Map<string, Figures>()

  /**
   * @param defaults hold for every key, field by field, where it sets none of its own
   * @param send takes requests to where the limits are; what comes back goes to `receive`
   */
  constructor(defaults: Limits | null, send: (requests: readonly Request[]) => void) {
    this.#send = send
    this.#defaults = defaults
    this.#post({ kind: 'defaults', limits: defaults })
  }

  admit(ask: Ask): Admission | Promise<Admission> {
    if (this.#unlimited(ask.key)) return UNLIMITED
    const { tokens, pico } = ask.estimate
    const { promise, resolve } = Promise.withResolvers<Admission>()
    const id = this.#open.add({ ask, resolve })
    this.#post({ kind: 'admit', id, ref: this.#ref(ask.key), model: ask.model, tokens, pico })
    return promise
  }

  receive(replies: readonly Reply[]): void {
    for (const { id, refusal, figures } of replies) {
      const asked = this.#open.at(id)
      if (asked === null) continue
      const { ask, resolve } = asked
      if (this.#figures.size >= MOST_FIGURES) this.#figures.clear()
      this.#figures.set(figuresOf(ask.key, ask.model), figures)
      if (refusal === null) {
        resolve({ ok: true, reservation: this.#reservation(id) })
        continue
      }
      this.#open.delete(id)
      resolve({ ok: false, refusal })
    }
  }

  /** As they were when a request of this key was last admitted or refused. */
  figures(key: LimitedKey, model: string | null): Figures {
    if (this.#unlimited(key)) return NO_FIGURES
    return this.#figures.get(figuresOf(key, model)) ?? NO_FIGURES
  }

  restoreSpend(spent: Iterable<Spend>): void {
    const rows = Array.from(spent, ({ key, ...rest }) => ({ ...rest, ref: this.#ref(key) }))
    if (rows.length > 0) this.#post({ kind: 'restore', rows })
  }

  reconfigure(defaults: Limits | null): void {
    this.#defaults = defaults
    this.#post({ kind: 'defaults', limits: defaults })
  }

  #reservation(id: number): Reservation {
    let isOpen = true
    let runs = true
    const settle = ({ tokens, pico }: Outcome): void => {
      if (!isOpen) return
      isOpen = false
      this.#open.delete(id)
      this.#post({ kind: 'settle', id, tokens, pico })
    }
    const leave = (): void => {
      if (!isOpen || !runs) return
      runs = false
      this.#post({ kind: 'leave', id })
    }
    return { leave, settle, release: () => settle({ tokens: 0, pico: 0n }) }
  }

  #unlimited(key: LimitedKey): boolean {
    return key.limits === null && this.#defaults === null
  }

  #ref({ name, limits }: LimitedKey): number {
    const known = this.#keys.get(name)
    if (known?.limits === limits) return known.ref
    const ref = known?.ref ?? ++this.#refs
    this.#keys.set(name, { limits, ref })
    this.#post({ kind: 'key', ref, name, limits })
    return ref
  }

  #post(request: Request): void {
    if (this.#outbox.push(request) > 1) return
    setImmediate(() => {
      const requests = this.#outbox
      this.#outbox = []
      this.#send(requests)
    })
  }
}

function figuresOf(key: LimitedKey, model: string | null): string {
  return `${key.name}\n${model ?? ''}`
}
