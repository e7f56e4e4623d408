import type { Clock, Timer } from '../../base/clock.ts'

/** Milliseconds from the first change of a stream to its checkpoint. */
const DELAY_MS = 1_000
/** ms: checkpoints that are due within this time of the first are written with it. */
const COALESCE_MS = 20

/**
 * Writes checkpoints of running streams a second after they change, with one timer for all. A stream that does not
 * change costs nothing.
 */
export class CheckpointTimer {
  readonly #clock: Pick<Clock, 'monotonic' | 'setTimeout'>
  /** In the order in which they are due: all have the same delay. */
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
