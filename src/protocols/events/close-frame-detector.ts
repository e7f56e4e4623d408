const CLOSE = 0x8
const FIN = 0x80
const MASKED = 0x80
const LENGTH = 0x7f
/** Values of the length field that mean: the real length follows in 2 bytes, or in 8 bytes. */
const LENGTH_16 = 126
const LENGTH_64 = 127
const MAX_HEADER_BYTES = 14

/** Detects the close frame of one side of a WebSocket. Reads only frame headers (RFC 6455 section 5.2). */
export class CloseFrameDetector {
  closed = false
  readonly #header = Buffer.alloc(MAX_HEADER_BYTES)
  #headerBytes = 0
  #headerSize = 2
  #payloadLeft = 0
  #isClose = false

  push(chunk: Buffer): void {
    for (let at = 0; at < chunk.length && !this.closed;) {
      if (this.#payloadLeft === 0) {
        this.#readHeaderByte(chunk[at++] as number)
      } else {
        const passed = Math.min(this.#payloadLeft, chunk.length - at)
        this.#payloadLeft -= passed
        at += passed
      }
      if (this.#isClose && this.#payloadLeft === 0) this.closed = true
    }
  }

  #readHeaderByte(byte: number): void {
    this.#header[this.#headerBytes++] = byte
    if (this.#headerBytes === 2) this.#headerSize = headerSize(byte)
    if (this.#headerBytes < this.#headerSize) return
    const first = this.#header[0] as number
    // A malformed close frame does not count, because the peer that receives it closes the connection.
    this.#isClose = first === (FIN | CLOSE) && this.#headerSize <= 6
    this.#payloadLeft = payloadLength(this.#header)
    this.#headerBytes = 0
    this.#headerSize = 2
  }
}

function headerSize(second: number): number {
  const length = second & LENGTH
  const extended = length === LENGTH_64 ? 8 : length === LENGTH_16 ? 2 : 0
  return 2 + extended + ((second & MASKED) === 0 ? 0 : 4)
}

function payloadLength(head: Buffer): number {
  const length = (head[1] as number) & LENGTH
  if (length === LENGTH_64) return Number(head.readBigUInt64BE(2))
  return length === LENGTH_16 ? head.readUInt16BE(2) : length
}
