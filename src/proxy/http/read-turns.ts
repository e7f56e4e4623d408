import { AsyncLocalStorage } from 'node:async_hooks'

/** Maximum work of a turn, which takes a few milliseconds. Work is the number of bytes, plus CHUNK_WORK for each chunk. */
const TURN_WORK = 1024 * 1024
/** Work of one response in a turn after which the response waits for a later turn. */
const SHARE_WORK = 64 * 1024
/** The fixed work of each chunk, in bytes. */
const CHUNK_WORK = 1024

export class Reader {
  /** The turn in which the response was last read; `work` is its work in that turn. */
  turn = 0
  work = 0
  readonly resume: () => void

  constructor(resume: () => void) {
    this.resume = resume
  }
}

/**
 * Distributes reading time among responses. Without it, a few hundred fast upstreams block all other exchanges, because libuv reads up to
 * 2 MB of a socket at once. A turn can last many turns of the event loop: a new one begins only after a response has to wait.
 */
export class ReadTurns {
  #turn = 0
  #work = 0
  /** Waiting responses in order. The first `#resumed` of them were resumed in this turn. */
  readonly #waiting: Reader[] = []
  #resumed = 0
  /** Runs turns outside the async context of any exchange, because a turn serves all exchanges. */
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

  /** Resumes the response in a later turn, after the responses that already wait. */
  waitForTurn(reader: Reader): void {
    if (this.#waiting.push(reader) === 1) this.#outside(setImmediate, this.#begin)
  }

  readonly #begin = (): void => {
    this.#turn++
    this.#work = 0
    // A resumed response that has used its share waits again, after all other waiting responses.
    while (this.#isAnyWaiting && this.#work < TURN_WORK) this.#waiting[this.#resumed++]?.resume()
    this.#waiting.splice(0, this.#resumed)
    this.#resumed = 0
    if (this.#isAnyWaiting) setImmediate(this.#begin)
  }

  get #isAnyWaiting(): boolean {
    return this.#waiting.length > this.#resumed
  }
}
