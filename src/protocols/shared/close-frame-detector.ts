const CLOSE = 0x8
const FIN = 0x80
const MASKED = 0x80
const LENGTH = 0x7f
/** Instead of a length: it follows, in 2 bytes or in 8. */
const LENGTH_16 = 126
const LENGTH_64 = 127
const LONGEST_HEAD = 14

/**
 * Sees whether one side of a WebSocket has said goodbye, by the heads of its frames alone
 * (RFC 6455 section 5.2): what it says is neither kept nor looked at.
 */
export class FrameHeads {
  /** A close frame has passed, whole. */
  concluded = false
  readonly #head = Buffer.alloc(LONGEST_HEAD)
  /** Bytes of the head that have come, and how many it has as far as that is known. */
  #got = 0
  #size = 2
  /** Bytes of the payload that are still to come. */
  #left = 0
  #isClose = false

  /** Takes the next bytes, cut anywhere. */
  push(chunk: Buffer): void {
    for (let at = 0; at < chunk.length && !this.concluded;) {
      if (this.#left === 0) {
        this.#take(chunk[at++] as number)
      } else {
        const passed = Math.min(this.#left, chunk.length - at)
        this.#left -= passed
        at += passed
      }
      if (this.#isClose && this.#left === 0) this.concluded = true
    }
  }

  #take(byte: number): void {
    this.#head[this.#got++] = byte
    if (this.#got === 2) this.#size = sizeOf(byte)
    if (this.#got < this.#size) return
    const first = this.#head[0] as number
    // A malformed one ends nothing: whoever reads it is going to hang up for that.
    this.#isClose = first === (FIN | CLOSE) && this.#size <= 6
    this.#left = lengthIn(this.#head)
    this.#got = 0
    this.#size = 2
  }
}

/** Bytes of a head. @param second its second byte */
function sizeOf(second: number): number {
  const length = second & LENGTH
  const extended = length === LENGTH_64 ? 8 : length === LENGTH_16 ? 2 : 0
  return 2 + extended + ((second & MASKED) === 0 ? 0 : 4)
}

function lengthIn(head: Buffer): number {
  const length = (head[1] as number) & LENGTH
  if (length === LENGTH_64) return Number(head.readBigUInt64BE(2))
  return length === LENGTH_16 ? head.readUInt16BE(2) : length
}
