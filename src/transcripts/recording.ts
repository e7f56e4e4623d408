import type { Compression, CapturedBody } from './transcript.ts'

/** Masks a secret of the client at the same length, also where chunks divide it. */
export interface RecordingMask {
  push(chunk: Buffer): Buffer
  rest(): Buffer
}

/** The longest secret: it comes in a header, and is longer if it is URL-encoded. */
const MAX_SECRET_BYTES = 64 * 1024

/** Collects the beginning of a response as it passes. */
export class ResponseRecorder {
  /** Maximum bytes of a body that are kept. */
  readonly limit: number
  /** null = no response yet, or no content type. */
  contentType: string | null = null
  /** The response's Content-Encoding; null = none. */
  encoding: string | null = null
  readonly #chunks: Buffer[] = []
  /** null = nothing is masked. */
  readonly #mask: RecordingMask | null
  readonly #newMask: (() => RecordingMask) | null
  #kept = 0
  #total = 0

  /** @param newMask null = nothing is masked */
  constructor(limit: number, newMask: (() => RecordingMask) | null = null) {
    this.limit = limit
    this.#newMask = newMask
    this.#mask = newMask === null ? null : newMask()
  }

  push(chunk: Buffer): void {
    this.#total += chunk.length
    this.#keep(this.#mask === null ? chunk : this.#mask.push(chunk))
  }

  #keep(chunk: Buffer): void {
    const room = this.limit - this.#kept
    if (room <= 0) return
    // Copy the bytes, because a slice would keep its whole buffer in memory.
    const piece = Buffer.from(chunk.subarray(0, room))
    this.#chunks.push(piece)
    this.#kept += piece.length
  }

  responseBody(): CapturedBody {
    if (this.#mask !== null) {
      // A compressed body cannot be masked.
      if (this.encoding !== null) return { contentType: this.contentType, bytes: Buffer.alloc(0), total: this.#total }
      this.#keep(this.#mask.rest())
    }
    return { contentType: this.contentType, bytes: Buffer.concat(this.#chunks), total: this.#total }
  }

  get compression(): Compression | null {
    return this.encoding === null ? null : { encoding: this.encoding, limit: this.limit }
  }

  /** @param isEncoded the body is compressed, so that it cannot be masked */
  requestBody(body: Uint8Array, contentType: string | null, isEncoded = false): CapturedBody {
    if (this.#newMask !== null) {
      if (isEncoded) return { contentType, bytes: Buffer.alloc(0), total: body.length }
      const mask = this.#newMask()
      // A secret can begin before the limit and end behind it.
      const masked = Buffer.concat([mask.push(Buffer.from(body.subarray(0, this.limit + MAX_SECRET_BYTES))), mask.rest()])
      return { contentType, bytes: Uint8Array.from(masked.subarray(0, this.limit)), total: body.length }
    }
    return { contentType, bytes: Uint8Array.from(body.subarray(0, this.limit)), total: body.length }
  }
}
