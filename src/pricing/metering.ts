import type { Endpoint } from '../protocols/endpoint/protocol.ts'

/** Does a request to this endpoint use anything that is billed? */
export function isMetered({ metering }: Endpoint): boolean {
  return metering !== null && metering !== 'unmetered'
}

/** Does the endpoint respond with text or tool calls? */
export function respondsWithText({ metering }: Endpoint): boolean {
  return metering === 'text'
}

/** Does the endpoint respond with an image or a transcript, whose tokens are known only at the end? */
export function reportsTokensAtEnd({ metering }: Endpoint): boolean {
  return metering === 'images' || metering === 'transcript'
}

/** Does a request to this endpoint for a model use something that cannot be counted? */
export function isUnmetered({ metering }: Endpoint): boolean {
  return metering === 'unmetered'
}
