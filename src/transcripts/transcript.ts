/** The stored bodies of one request (`log.bodies`). */
export interface Transcript {
  readonly requestId: string
  /** Milliseconds since 1970. Unique together with requestId. */
  readonly startedAt: number
  /** The key's name. */
  readonly key: string
  /** Milliseconds since 1970: from then on it is not shown, and is deleted soon. */
  readonly expiresAt: number
  /** As the client sent it, decompressed. */
  readonly request: CapturedBody
  /** As sent to the client, decompressed. */
  readonly response: CapturedBody
}

/** The beginning of a body, or all of it. */
export interface CapturedBody {
  readonly contentType: string | null
  readonly bytes: Uint8Array
  /** Bytes of the whole body: more than in `bytes` if it was too long to keep. */
  readonly total: number
}

/** `limit` is the number of decompressed bytes that are kept. */
export interface Compression {
  readonly encoding: string
  readonly limit: number
}
