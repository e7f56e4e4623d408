import { AsyncLocalStorage } from 'node:async_hooks'

/** Maximum work of a turn: its bytes, plus CHUNK_WORK for each chunk. It takes a few milliseconds. */
const TURN_WORK = 1024 * 1024
/** Work after which a response waits for a later turn. */
const SHARE_WORK = 64 * 1024
/** The cost of a chunk of any length, expressed in bytes. */
const CHUNK_WORK = 1024

export class Reader {
  /** Work in the turn in which the response was last read. */
  turn = 0
  work = 0
  readonly resume: () => void

  constructor(resume: () => void) {
    this.resume = resume
  }
}

/**
 * Shares the event loop among responses: libuv reads up to 2 MB of a socket at once, so a few hundred fast upstreams would block all
 * others. A turn lasts until a response has to wait, which can be many turns of the event loop: nothing runs at the end of each.
 */
export class ReadTurns {
  #turn = 0
  #work = 0
  /** Waiting responses in order; the first `#resumed` were resumed in this turn. */
  readonly #waiting: Reader[] = []
  #resumed = 0
  /** Turns serve all exchanges: they must not run in the async context of the first that waits. */
  readonly #outside = AsyncLocalStorage.snapshot()

  /** Counts a chunk. @returns false = pause the response and call `waitForTurn`, which resumes it */
  count(reader: Reader, bytes: number): boolean {
    const work = bytes + CHUNK_WORK
    this.#work += work
    if (reader.turn !== this.#turn) {
      reader.turn = this.#turn
      reader.work = 0
    }
    reader.work += work
    if (reader.work < SHARE_WORK) return true
    return this.#work < TURN_WORK && !this.#isAnyWaiting
  }

  /** Resumes the response in a later turn, after those that already wait. */
  waitForTurn(reader: Reader): void {
    if (this.#waiting.push(reader) === 1) this.#outside(setImmediate, this.#begin)
  }

  readonly #begin = (): void => {
    this.#turn++
    this.#work = 0
    // A response that uses up its share waits again, behind the others.
    while (this.#isAnyWaiting && this.#work < TURN_WORK) this.#waiting[this.#resumed++]?.resume()
    this.#waiting.splice(0, this.#resumed)
    this.#resumed = 0
    if (this.#isAnyWaiting) setImmediate(this.#begin)
  }

  get #isAnyWaiting(): boolean {
    return this.#waiting.length > this.#resumed
  }
}
