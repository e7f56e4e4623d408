import { maskBody } from './secret-mask.ts'

/** Bytes. A longer error is not searched for secrets. */
const MAX_BYTES = 64 * 1024

/** Holds a compressed error until it is complete, because only then can it be searched for secrets. */
export class CompressedError {
  readonly #coding: string
  readonly #secrets: readonly string[]
  #chunks: Buffer[] = []
  #bytes = 0
  /** true = a secret was masked, and the body is therefore no longer compressed. */
  isMasked = false

  constructor(coding: string, secrets: readonly string[]) {
    this.#coding = coding
    this.#secrets = secrets
  }

  get chunks(): readonly Buffer[] {
    return this.#chunks
  }

  /** @returns false = too long to be searched */
  push(chunk: Buffer): boolean {
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
    return this.#bytes <= MAX_BYTES
  }

  end(): void {
    const masked = maskBody(Buffer.concat(this.#chunks), this.#coding, this.#secrets)
    if (masked === null) return
    this.#chunks = [masked]
    this.isMasked = true
  }
}
