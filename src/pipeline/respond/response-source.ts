import type { GatewayError } from '../../base/errors.ts'
import type { RawHeaders } from '../../proxy/raw-headers.ts'
import type { ResponseHead } from '../../proxy/response-head.ts'

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
  /** The client was given the end of its protocol: nothing that may follow is for it. */
  readonly isFinished: boolean
  /** What came so far ends with a whole event: another one can follow. */
  readonly atBoundary: boolean
  /** Some bytes are changed or held back. */
  readonly edits: boolean
  /** Makes the client's headers of the upstream's; null = they are the same. */
  readonly translateHeaders: ((headers: RawHeaders) => RawHeaders) | null
}

/** The attempts behind a relay: they send it responses, and decide what follows when a stream breaks. */
export interface ResponseSource {
  /** Reads a head that is about to be sent: an error refuses it; null = the body passes unread. */
  openBody(head: ResponseHead): GatewayError | ResponseBody | null
  /** The first byte of the body came. */
  onFirstByte(): void
  /** Lets the upstream send more. */
  resume(): void
  /**
   * The client's stream broke.
   *
   * @returns true when another attempt continues it; bytes when only these are missing; false when neither is so
   */
  recover(error: GatewayError): boolean | Buffer
  /** The event that reports an error to the client in the middle of its stream. */
  errorEvent(error: GatewayError): string
}
