import { isUtf8 } from 'node:buffer'

/**
 * Tells whether bytes that arrive in pieces are well-formed UTF-8 (RFC 3629:
 * no overlong forms, no surrogates, nothing above U+10FFFF). A character may be
 * cut by the end of a chunk anywhere.
 */
export class Utf8Check {
  /** Absolute offset of the next chunk's first byte. */
  #offset = 0
  /** The start of a character whose other bytes have not come yet. */
  readonly #cut = new Uint8Array(4)
  #cutLength = 0

  /**
   * Takes the next chunk and returns the absolute offset of the first
   * ill-formed sequence known so far, or -1. Not to be called again after an
   * error was found.
   */
  push(chunk: Uint8Array): number {
    const base = this.#offset
    const length = chunk.length
    this.#offset = base + length

    let from = 0
    if (this.#cutLength > 0) {
      const start = base - this.#cutLength
      const needed = sequenceLength(this.#cut[0]!)
      while (from < length && this.#cutLength < needed) {
        if (!isContinuation(chunk[from]!)) return start
        this.#cut[this.#cutLength++] = chunk[from++]!
      }
      if (this.#cutLength < needed) return -1
      if (!isUtf8(this.#cut.subarray(0, needed))) return start
      this.#cutLength = 0
    }

    const to = length - cutAtEnd(chunk, from)
    const whole = from === 0 && to === length ? chunk : chunk.subarray(from, to)
    if (!isUtf8(whole)) return base + from + firstIllFormed(whole)
    for (let i = to; i < length; i++) this.#cut[this.#cutLength++] = chunk[i]!
    return -1
  }

  /** The absolute offset of a character that the end of the text cuts, or -1. */
  end(): number {
    return this.#cutLength > 0 ? this.#offset - this.#cutLength : -1
  }
}

/** Bytes of the sequence that `lead` opens; 0 when no sequence starts so. */
function sequenceLength(lead: number): number {
  if (lead < 0x80) return 1
  if (lead < 0xc2) return 0
  if (lead < 0xe0) return 2
  if (lead < 0xf0) return 3
  return lead < 0xf5 ? 4 : 0
}

function isContinuation(byte: number): boolean {
  return (byte & 0xc0) === 0x80
}

/** How many bytes at the end of the chunk open a character that goes on after it. */
function cutAtEnd(chunk: Uint8Array, from: number): number {
  for (let count = 1; count <= 3 && chunk.length - count >= from; count++) {
    const byte = chunk[chunk.length - count]!
    if (!isContinuation(byte)) return sequenceLength(byte) > count ? count : 0
  }
  return 0
}

function firstIllFormed(bytes: Uint8Array): number {
  let i = 0
  while (i < bytes.length) {
    const needed = sequenceLength(bytes[i]!)
    if (needed === 0) return i
    if (needed > 1 && !isUtf8(bytes.subarray(i, i + needed))) return i
    i += needed
  }
  return i
}
