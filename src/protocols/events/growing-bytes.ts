const MIN_BYTES = 1024
/** Maximum bytes of a buffer that is kept for reuse after it is emptied. */
const MAX_RETAINED_BYTES = 16 * 1024
const NO_BYTES = Buffer.alloc(0)

/**
 * Collects bytes in a buffer that doubles, in linear time. The buffer is not from node's pool, where a small buffer keeps 64 kB in memory.
 */
export class GrowingBytes {
  /** Only the first `length` bytes are collected bytes. */
  bytes: Buffer = NO_BYTES
  length = 0

  append(source: Uint8Array, from: number, to: number): void {
    const length = this.length + to - from
    if (length > this.bytes.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(length, 2 * this.bytes.length, MIN_BYTES))
      grown.set(this.bytes.subarray(0, this.length))
      this.bytes = grown
    }
    this.bytes.set(source.subarray(from, to), this.length)
    this.length = length
  }

  clear(): void {
    this.length = 0
    if (this.bytes.length > MAX_RETAINED_BYTES) this.bytes = NO_BYTES
  }
}
