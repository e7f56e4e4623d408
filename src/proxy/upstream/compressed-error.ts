import { maskBody } from './secret-mask.ts'

/** Bytes of an error that are held; a longer error is not searched. */
const MAX_BYTES = 64 * 1024

/** Holds a compressed error until it is complete, because secrets cannot be found before. */
export class CompressedError {
  readonly #coding: string
  readonly #secrets: readonly string[]
  #chunks: Buffer[] = []
  #bytes = 0
  /** A secret was masked; the body is no longer compressed. */
  isMasked = false

  constructor(coding: string, secrets: readonly string[]) {
    this.#coding = coding
    this.#secrets = secrets
  }

  /** The bytes for the client so far. */
  get chunks(): readonly Buffer[] {
    return this.#chunks
  }

  /** @returns false when the error is too long to be searched */
  push(chunk: Buffer): boolean {
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
    return this.#bytes <= MAX_BYTES
  }

  /** The error is complete. */
  end(): void {
    const masked = maskBody(Buffer.concat(this.#chunks), this.#coding, this.#secrets)
    if (masked === null) return
    this.#chunks = [masked]
    this.isMasked = true
  }
}
