import { AsyncLocalStorage } from 'node:async_hooks'

/** Work of one turn of the event loop: bytes, plus CHUNK_WORK for each chunk. It takes a few milliseconds. */
const TURN_WORK = 1024 * 1024
/** Work of one response in a turn before it waits for a later turn. */
const SHARE_WORK = 64 * 1024
/** The cost of a chunk of any length, expressed in bytes. */
const CHUNK_WORK = 1024

/** A response that is being read. */
export class Reader {
  /** The turn in which it was last read, and its work in that turn. */
  turn = 0
  work = 0
  /** Resumes reading. */
  readonly resume: () => void

  constructor(resume: () => void) {
    this.resume = resume
  }
}

/**
 * Shares the turns of the event loop among the responses that are read. libuv reads up to 2 MB from a socket in one
 * turn: a few hundred fast upstreams would block everything else for seconds.
 *
 * A turn lasts as long as no response has to wait. It can span many turns of the event loop, so nothing has to be
 * done at the end of each.
 */
export class ReadTurns {
  #turn = 0
  #work = 0
  /** Waiting responses in order; the first `#resumed` were resumed in this turn. */
  readonly #waiting: Reader[] = []
  #resumed = 0
  /** Turns serve all exchanges: they must not run in the async context of the first one that waits. */
  readonly #outside = AsyncLocalStorage.snapshot()

  /**
   * Counts a chunk that was read.
   *
   * @param bytes length of the chunk
   * @returns false = pause this response and call `waitForTurn`, which resumes it
   */
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
    // A response that reads its whole share at once waits again, behind the others.
    while (this.#isAnyWaiting && this.#work < TURN_WORK) this.#waiting[this.#resumed++]?.resume()
    this.#waiting.splice(0, this.#resumed)
    this.#resumed = 0
    if (this.#isAnyWaiting) setImmediate(this.#begin)
  }

  get #isAnyWaiting(): boolean {
    return this.#waiting.length > this.#resumed
  }
}
