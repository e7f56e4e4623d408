import type { Clock, Timer } from '../base/clock.ts'
import type { Limits } from '../config/types.ts'
import { Slots } from '../base/slots.ts'
import type { LocalLimiter } from './limiter.ts'
import type { Answers } from './messages.ts'
import type { Admission, Ask, LimitedKey } from './types.ts'
import { LimitsWindow } from './lease-connection.ts'
import type { Desk, OutLoan } from './lease-connection.ts'

/** Limits as one text, to tell whether those of two processes are the same. */
function textOf(limits: Limits | null): string {
  return JSON.stringify(limits, (_name, value: unknown) => (value instanceof Map ? [...value] : value))
}

/** Milliseconds that somebody waits at most for loans to be repaid: a worker may hang. */
const PATIENCE_MS = 1000

/** The loans of one key, while there are any. */
interface Lending {
  readonly out: Slots<OutLoan>
  /** Those who would be refused, each to be asked for once more. */
  readonly waiting: (() => void)[]
  /** Set while somebody waits. */
  patience: Timer | null
}

/** Where the limits of all workers are kept. */
export class LimitsDesk implements Desk {
  readonly #limiter: LocalLimiter
  readonly #clock: Pick<Clock, 'setTimeout'>
  /** One object for the same limits of the same key, whichever worker names them. */
  readonly #keys = new Map<string, { readonly text: string; readonly key: LimitedKey }>()
  /** By the names of keys. */
  readonly #lending = new Map<string, Lending>()
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
  window(send: (answers: Answers) => void): LimitsWindow {
    return new LimitsWindow(this, this.#limiter, send)
  }

  key(name: string, limits: Limits | null): LimitedKey {
    const text = textOf(limits)
    const known = this.#keys.get(name)
    if (known?.text === text) return known.key
    const key = { name, limits }
    this.#keys.set(name, { text, key })
    return key
  }

  configure(limits: Limits | null): void {
    const text = textOf(limits)
    if (text === this.#defaults) return
    this.#defaults = text
    this.#limiter.reconfigure(limits)
  }

  /** Nobody is refused what is lent and unused: it is called in first, and the limiter asked once more. */
  admit(ask: Ask, decide: (admission: Admission) => void): void {
    const admission = this.#limiter.admit(ask)
    const lending = this.#lending.get(ask.key.name)
    // Where waiting cannot help, no loan stands in the way either.
    if (admission.ok || lending === undefined || admission.refusal.retryAfterMs === null) {
      decide(admission)
      return
    }
    lending.waiting.push(() => this.admit(ask, decide))
    for (const { callIn } of lending.out) callIn()
    // What has not come back by then stays set aside until it does, but nobody waits for it.
    lending.patience ??= this.#clock.setTimeout(() => {
      for (const { returned } of lending.out) returned()
    }, PATIENCE_MS)
  }

  lend(ask: Ask, most: number, callIn: () => void): OutLoan | null {
    const { name } = ask.key
    const lending = this.#lending.get(name) ?? { out: new Slots(), waiting: [], patience: null }
    const loan = lending.waiting.length > 0 ? null : this.#limiter.lend(ask, most)
    if (loan === null) return null
    this.#lending.set(name, lending)
    const out: OutLoan = {
      loan,
      callIn,
      returned: () => {
        // Given up already: its place may be another's.
        if (lending.out.at(place) !== out) return
        lending.out.delete(place)
        if (lending.out.size > 0) return
        lending.patience?.cancel()
        this.#lending.delete(name)
        for (const again of lending.waiting) again()
      },
    }
    const place = lending.out.add(out)
    return out
  }
}
