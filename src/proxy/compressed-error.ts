import { maskBody } from './secret-mask.ts'

/** Bytes of an error that are held: more are not searched. */
const MAX_BYTES = 64 * 1024

/** An error that is compressed: it is held until all of it came, because secrets in it cannot be found before. */
export class CompressedError {
  readonly #coding: string
  readonly #secrets: readonly string[]
  readonly #chunks: Buffer[] = []
  #bytes = 0
  #isReady = false
  #masked: Buffer | null = null
  #whenReady: (() => void) | null = null

  constructor(coding: string, secrets: readonly string[]) {
    this.#coding = coding
    this.#secrets = secrets
  }

  /** It had a secret, and is no longer compressed. */
  get isMasked(): boolean {
    return this.#masked !== null
  }

  /** What the client gets of what came so far. */
  get chunks(): readonly Buffer[] {
    return this.#masked === null ? this.#chunks : [this.#masked]
  }

  push(chunk: Buffer): void {
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
    if (this.#bytes > MAX_BYTES) this.#ready()
  }

  /** No more will come. */
  end(): void {
    if (this.#isReady) return
    this.#masked = maskBody(Buffer.concat(this.#chunks), this.#coding, this.#secrets)
    this.#ready()
  }

  /** Calls back when it can be passed on: now, or later. */
  whenReady(callback: () => void): void {
    if (this.#isReady) callback()
    else this.#whenReady = callback
  }

  #ready(): void {
    if (this.#isReady) return
    this.#isReady = true
    this.#whenReady?.()
  }
}
