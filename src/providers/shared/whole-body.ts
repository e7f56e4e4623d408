import { GatewayError } from '../../base/errors.ts'
import type { BodyDecoder } from './provider.ts'

/** Default maximum bytes of a body to convert. Enough for errors and token counts, which are short. */
const DEFAULT_MAX_BYTES = 256 * 1024
const NOTHING = Buffer.alloc(0)

/** Converts a body when it is complete. */
export class WholeBody implements BodyDecoder {
  fault: GatewayError | null = null
  readonly #chunks: Buffer[] = []
  readonly #write: (body: Buffer) => string
  readonly #maxBytes: number
  #size = 0

  constructor(write: (body: Buffer) => string, maxBytes: number = DEFAULT_MAX_BYTES) {
    this.#write = write
    this.#maxBytes = maxBytes
  }

  push(chunk: Buffer): Buffer {
    this.#size += chunk.length
    if (this.#size > this.#maxBytes) this.#fail()
    else this.#chunks.push(chunk)
    return NOTHING
  }

  end(): Buffer {
    try {
      return Buffer.from(this.#write(Buffer.concat(this.#chunks)))
    } catch (cause) {
      this.#fail(cause)
      return NOTHING
    }
  }

  #fail(cause?: unknown): void {
    this.fault ??= new GatewayError('upstream_invalid', 'the upstream sent a body that cannot be read', { cause })
    this.#chunks.length = 0
  }
}
