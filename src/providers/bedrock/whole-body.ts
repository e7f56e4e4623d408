import { GatewayError } from '../../base/errors.ts'
import type { BodyDecoder } from '../shared/provider.ts'

/** Bytes of a body that is written anew: errors and counts are short. */
const MAX_BYTES = 256 * 1024
const NOTHING = Buffer.alloc(0)

/** A body that is written anew when all of it came. */
export class WholeBody implements BodyDecoder {
  fault: GatewayError | null = null
  readonly #chunks: Buffer[] = []
  readonly #write: (body: Buffer) => string
  #size = 0

  constructor(write: (body: Buffer) => string) {
    this.#write = write
  }

  push(chunk: Buffer): Buffer {
    this.#size += chunk.length
    if (this.#size > MAX_BYTES) this.#fail()
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
