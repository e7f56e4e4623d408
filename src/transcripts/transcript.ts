/** The stored bodies of one request (`log.bodies`). */
export interface Transcript {
  readonly requestId: string
  /** Milliseconds since 1970. `requestId` and `startedAt` together are unique. */
  readonly startedAt: number
  /** The key's name. */
  readonly key: string
  /** Milliseconds since 1970. After this time, the transcript is not shown, and is soon deleted. */
  readonly expiresAt: number
  /** The body that the client sent, decompressed. */
  readonly request: CapturedBody
  /** The body that the client got, decompressed. */
  readonly response: CapturedBody
}

/** The beginning of a body, or the whole body. */
export interface CapturedBody {
  readonly contentType: string | null
  readonly bytes: Uint8Array
  /** Length of the whole body in bytes, which is larger than that of `bytes` if the body was too long to keep. */
  readonly total: number
}

/** How a body is compressed. `limit`: maximum decompressed bytes that are kept. */
export interface Compression {
  readonly encoding: string
  readonly limit: number
}
