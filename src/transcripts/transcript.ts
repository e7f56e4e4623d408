/** The stored bodies of one request (`log.bodies`). */
export interface Transcript {
  readonly requestId: string
  /** Milliseconds since 1970. With requestId, what makes it unique. */
  readonly startedAt: number
  /** The key's name. */
  readonly key: string
  /** When it expires, milliseconds since 1970: from then on it is not shown, and is deleted soon. */
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

/** How a response is compressed, and how many decompressed bytes are kept. */
export interface Compression {
  readonly encoding: string
  readonly limit: number
}
