import type { GatewayError } from '../../base/errors.ts'
import type { RawHeaders } from '../../proxy/raw-headers.ts'

/** The body of a response on its way through the stages. All of it is synchronous and cheap. */
export interface ResponseBody {
  /** Takes the next bytes, as the upstream sent them. @returns what the client gets now */
  push(chunk: Buffer): Buffer
  /** No more will come. */
  end(): void
  /** Nothing is missing. @returns what the client gets of what was held back */
  rest(): Buffer
  /**
   * The protocol's own end has passed; null = the protocol has none: the end of the HTTP message is the end.
   */
  readonly terminated: boolean | null
  /** What the client needs behind a response that ends now in order, although its protocol's end is missing; null = more is missing. */
  readonly missingEnd: Buffer | null
  /** The client was given the end of its protocol: nothing that may follow is for it. */
  readonly isFinished: boolean
  /** What came so far ends with a whole event: another one can follow. */
  readonly atBoundary: boolean
  /** Some bytes are changed or held back. */
  readonly edits: boolean
  /** Makes the client's headers of the upstream's; null = they are the same. */
  readonly translateHeaders: ((headers: RawHeaders) => RawHeaders) | null
}

/** How a response ended: null is a proper end. */
export type RelayEnd = GatewayError | null

/** The client's stream broke, and may go on: `continueLater`, `finish` or `fail` follows. */
export class StreamBreak {
  readonly error: GatewayError

  constructor(error: GatewayError) {
    this.error = error
  }
}

/** What a relay reads from. */
export interface RelaySource {
  /** Lets the upstream send more. */
  resume(): void
}

export interface OpenResponse {
  /** null = the body passes unread. */
  readonly body: ResponseBody | null
  readonly source: RelaySource
  /** If it breaks, its stream may go on: another attempt continues it, or only its end is missing. */
  readonly mayContinue: boolean
}
