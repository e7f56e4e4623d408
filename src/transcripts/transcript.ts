/** What of one exchange is kept because `log.bodies` says so. */
export interface Transcript {
  readonly requestId: string
  /** Milliseconds since 1970. With requestId, what makes it unique. */
  readonly startedAt: number
  /** The key's name. */
  readonly key: string
  /** Milliseconds since 1970: from then on it is not shown, and it is deleted soon. */
  readonly expiresAt: number
  /** As the client sent it, decompressed. */
  readonly request: CapturedBody
  /** As the client was sent it, decompressed. */
  readonly response: CapturedBody
}

/** The beginning of a body, or all of it. */
export interface CapturedBody {
  readonly contentType: string | null
  readonly bytes: Uint8Array
  /** Bytes of the whole body: more than there are in `bytes` where it was too long to keep. */
  readonly total: number
}

/** How a response is compressed, and how many bytes are kept of what it unpacks to. */
export interface Compression {
  readonly encoding: string
  readonly limit: number
}
