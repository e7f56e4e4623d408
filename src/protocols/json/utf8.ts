import { isUtf8 } from 'node:buffer'

const NO_BYTES = Buffer.alloc(0)

/** Checks that bytes are well-formed UTF-8 (RFC 3629) while they arrive in chunks with any boundaries. */
export class Utf8Check {
  /** Offset in the text of the next chunk's first byte. */
  #offset = 0
  /** The first bytes of a character whose other bytes have not arrived. */
  #cut = NO_BYTES

  /** @returns offset in the text of the first ill-formed sequence; -1 = none. Must not be called again after an error. */
  push(chunk: Buffer): number {
    const base = this.#offset
    this.#offset += chunk.length
    let from = 0
    if (this.#cut.length > 0) {
      const start = base - this.#cut.length
      from = sequenceLength(this.#cut[0]!) - this.#cut.length
      const character = Buffer.concat([this.#cut, chunk.subarray(0, from)])
      this.#cut = character.subarray(0, cutAtEnd(character))
      // If the chunk is short, the character may still be incomplete.
      if (this.#cut.length === character.length) return -1
      if (!isUtf8(character)) return start
    }
    const isCut = chunk.length > 0 && chunk[chunk.length - 1]! >= 0x80
    const end = isCut ? chunk.length - cutAtEnd(chunk, from) : chunk.length
    // A view of a short chunk takes longer to create than to check, so the chunk itself is checked.
    const whole = from === 0 && end === chunk.length ? chunk : chunk.subarray(from, end)
    if (!isUtf8(whole)) return base + from + firstIllFormed(whole)
    this.#cut = end === chunk.length ? NO_BYTES : Buffer.from(chunk.subarray(end))
    return -1
  }

  /** The offset in the text of a character that the end of the text cuts; -1 = none. */
  end(): number {
    return this.#cut.length > 0 ? this.#offset - this.#cut.length : -1
  }
}

/** Number of bytes of the sequence that begins with `lead`; 0 = no sequence begins with `lead`. */
function sequenceLength(lead: number): number {
  if (lead < 0x80) return 1
  if (lead < 0xc2) return 0
  if (lead < 0xe0) return 2
  if (lead < 0xf0) return 3
  return lead < 0xf5 ? 4 : 0
}

/** Number of bytes at the end that begin an incomplete character. Bytes before `from` do not count. */
function cutAtEnd(bytes: Buffer, from = 0): number {
  for (let count = 1; count <= 3 && count <= bytes.length - from; count++) {
    const byte = bytes[bytes.length - count]!
    const isContinuation = (byte & 0xc0) === 0x80
    if (!isContinuation) return sequenceLength(byte) > count ? count : 0
  }
  return 0
}

function firstIllFormed(bytes: Buffer): number {
  let i = 0
  for (;;) {
    const length = sequenceLength(bytes[i]!)
    if (length === 0 || !isUtf8(bytes.subarray(i, i + length))) return i
    i += length
  }
}
