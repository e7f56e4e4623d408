import { AsyncLocalStorage } from 'node:async_hooks'

/** Work of one turn of the event loop: bytes, and CHUNK_WORK for each chunk that they come in. A few milliseconds. */
const TURN_WORK = 1024 * 1024
/** Work of one response in a turn, before it waits for a later one. */
const SHARE_WORK = 64 * 1024
/** What a chunk costs, however short it is: as much as so many bytes. */
const CHUNK_WORK = 1024

/** A response that is being read. */
export class Reader {
  /** The turn in which it was last read, and its work in that. */
  turn = 0
  work = 0
  /** Lets more of it come. */
  readonly resume: () => void

  constructor(resume: () => void) {
    this.resume = resume
  }
}

/**
 * Shares the turns of the event loop among the responses that are read. libuv reads up to 2 MB from a socket in one
 * turn: a few hundred upstreams that send as fast as they can would keep everything else waiting for seconds.
 *
 * A turn is counted as long as no response has to wait. So it may span many turns of the event loop, and nothing has to
 * be done at the end of each.
 */
export class ReadTurns {
  #turn = 0
  #work = 0
  /** In their order; the first ones of them were resumed in this turn. */
  readonly #waiting: Reader[] = []
  #resumed = 0
  /** The turns are for all exchanges: they do not belong to the one that has to wait first. */
  readonly #outside = AsyncLocalStorage.snapshot()

  /**
   * Counts a chunk that was read.
   *
   * @param bytes length of the chunk
   * @returns false = no more should be read of this response: `waitForTurn` has it resumed
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

  /** Resumes the response in a later turn, behind those that wait already. */
  waitForTurn(reader: Reader): void {
    if (this.#waiting.push(reader) === 1) this.#outside(setImmediate, this.#begin)
  }

  readonly #begin = (): void => {
    this.#turn++
    this.#work = 0
    // One that reads all of its share at once waits again, behind the others.
    while (this.#isAnyWaiting && this.#work < TURN_WORK) this.#waiting[this.#resumed++]?.resume()
    this.#waiting.splice(0, this.#resumed)
    this.#resumed = 0
    if (this.#isAnyWaiting) setImmediate(this.#begin)
  }

  get #isAnyWaiting(): boolean {
    return this.#waiting.length > this.#resumed
  }
}
