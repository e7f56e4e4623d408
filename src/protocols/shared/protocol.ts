import type { GatewayError } from '../../base/errors.ts'
import type { EndpointName, ProtocolName } from './names.ts'

/** How a protocol family tells of an error; the rest of a family is in endpoint.ts and the meters. */
export interface Protocol {
  readonly name: ProtocolName
  /** The body of an error answer: JSON, always sent as application/json. */
  errorBody(error: GatewayError, requestId: string): string
  /** The event that tells of an error in mid-stream: whole, blank line included. */
  streamError(error: GatewayError, endpoint: EndpointName, requestId: string): string
}
