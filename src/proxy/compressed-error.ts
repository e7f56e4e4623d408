import { maskBody } from './secret-mask.ts'

/** Bytes of an error that are held: more are not searched. */
const MAX_BYTES = 64 * 1024

/** An error that is compressed: it is held until all of it came, because secrets in it cannot be found before. */
export class CompressedError {
  readonly #coding: string
  readonly #secrets: readonly string[]
  #chunks: Buffer[] = []
  #bytes = 0
  /** It had a secret, and is no longer compressed. */
  isMasked = false

  constructor(coding: string, secrets: readonly string[]) {
    this.#coding = coding
    this.#secrets = secrets
  }

  /** What the client gets of what came so far. */
  get chunks(): readonly Buffer[] {
    return this.#chunks
  }

  /** @returns false when it is too long to be searched */
  push(chunk: Buffer): boolean {
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
    return this.#bytes <= MAX_BYTES
  }

  /** No more will come. */
  end(): void {
    const masked = maskBody(Buffer.concat(this.#chunks), this.#coding, this.#secrets)
    if (masked === null) return
    this.#chunks = [masked]
    this.isMasked = true
  }
}
