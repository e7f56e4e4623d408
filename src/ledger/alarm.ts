import { systemClock } from '../base/clock.ts'
import type { Clock } from '../base/clock.ts'
import type { Trouble, TroubleCode } from './failure.ts'

/** ms after which trouble that goes on is told again. */
const REMINDER = 60_000

/** Tells of trouble at each change of its cause, and again each minute while it goes on. */
export class Alarm {
  readonly #tell: (trouble: Trouble) => void
  readonly #clock: Pick<Clock, 'monotonic' | 'wall'>
  /** When each was told, on the monotonic clock: a date that is set back silences none. */
  readonly #told = new Map<TroubleCode, number>()
  #last: (Trouble & { readonly at: number }) | null = null

  constructor(tell: (trouble: Trouble) => void, clock: Pick<Clock, 'monotonic' | 'wall'> = systemClock) {
    this.#tell = tell
    this.#clock = clock
  }

  /** The last trouble, with its time (ms since 1970); it may be over. */
  get last(): (Trouble & { readonly at: number }) | null {
    return this.#last
  }

  raise(trouble: Trouble): void {
    this.#last = { ...trouble, at: this.#clock.wall() }
    const now = this.#clock.monotonic()
    const told = this.#told.get(trouble.code)
    if (told !== undefined && now - told < REMINDER) return
    this.#told.set(trouble.code, now)
    this.#tell(trouble)
  }

  /** It is over: whatever comes next is told at once. */
  end(): void {
    this.#told.clear()
  }
}
