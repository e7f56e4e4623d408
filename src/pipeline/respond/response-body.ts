import type { GatewayError } from '../../base/errors.ts'
import type { RawHeaders } from '../../proxy/http/raw-headers.ts'

/** The body of a response on its way through the stages. All steps are synchronous and cheap. */
export interface ResponseBody {
  /** Takes the next bytes from the upstream. @returns the bytes for the client */
  push(chunk: Buffer): Buffer
  /** The body has ended. */
  end(): void
  /** The response is complete. @returns the held bytes for the client */
  rest(): Buffer
  /** The protocol's own end has passed; null = the protocol has none: the HTTP message's end is the end. */
  readonly terminated: boolean | null
  /**
   * The bytes that the client needs after a response that ends properly now but lacks its protocol's end; null = more
   * is missing.
   */
  readonly missingEnd: Buffer | null
  /** Some bytes could not be passed on: the response is incomplete. */
  readonly hasFailed?: boolean
  /** The client has the end of its protocol: nothing that follows is for it. */
  readonly isFinished: boolean
  /** The bytes so far end with a whole event: another event can follow. */
  readonly atBoundary: boolean
  /** Some bytes are changed or held. */
  readonly edits: boolean
  /** Converts the upstream's headers for the client; null = unchanged. */
  readonly translateHeaders: ((headers: RawHeaders) => RawHeaders) | null
}

/** How a response ended: null = properly. */
export type RelayEnd = GatewayError | null

/** The client's stream broke, and may be continued: `continueLater`, `finish` or `fail` follows. */
export class StreamBreak {
  readonly error: GatewayError

  constructor(error: GatewayError) {
    this.error = error
  }
}

/** The source of a relay. */
export interface RelaySource {
  /** Lets the upstream send more. */
  resume(): void
}

export interface OpenResponse {
  /** null = the body passes unread. */
  readonly body: ResponseBody | null
  readonly source: RelaySource
  /** If the stream breaks it may be continued: by another attempt, or because only its end is missing. */
  readonly mayContinue: boolean
}
