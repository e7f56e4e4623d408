import type { Clock, Timer } from '../base/clock.ts'

/** Milliseconds from the first news of a stream to the draft that tells it. */
const DELAY_MS = 1_000
/** Those that are due so soon after the first are written with it, milliseconds. */
const COALESCE_MS = 20

/**
 * Writes the drafts of running streams a second after their news, on one timer
 * for all of them. A stream that falls silent has its last draft written all the
 * same; one that has no news costs nothing.
 */
export class CheckpointTimer {
  readonly #clock: Pick<Clock, 'monotonic' | 'setTimeout'>
  /** All wait equally long, so that they are due in their order. */
  #waiting: { readonly at: number; readonly write: () => void }[] = []
  #timer: Timer | null = null

  constructor(clock: Pick<Clock, 'monotonic' | 'setTimeout'>) {
    this.#clock = clock
  }

  /** Calls back once, a second from now. */
  add(write: () => void): void {
    this.#waiting.push({ at: this.#clock.monotonic() + DELAY_MS, write })
    this.#timer ??= this.#clock.setTimeout(this.#write, DELAY_MS)
  }

  close(): void {
    this.#timer?.cancel()
    this.#waiting = []
  }

  readonly #write = (): void => {
    const now = this.#clock.monotonic()
    const first = this.#waiting.findIndex(({ at }) => at > now + COALESCE_MS)
    const due = this.#waiting.splice(0, first === -1 ? this.#waiting.length : first)
    const next = this.#waiting[0]
    this.#timer = next === undefined ? null : this.#clock.setTimeout(this.#write, next.at - now)
    for (const { write } of due) write()
  }
}
