import type { Endpoint } from '../protocols/endpoint/protocol.ts'

export function isMetered({ metering }: Endpoint): boolean {
  return metering !== null && metering !== 'unmetered'
}

/** @returns true = the endpoint responds with text or tool calls */
export function respondsWithText({ metering }: Endpoint): boolean {
  return metering === 'text'
}

/** @returns true = the endpoint responds with an image or a transcript, and reports tokens only at the end */
export function reportsTokensAtEnd({ metering }: Endpoint): boolean {
  return metering === 'images' || metering === 'transcript'
}

/** @returns true = the gateway cannot meter the usage of the endpoint */
export function isUnmetered({ metering }: Endpoint): boolean {
  return metering === 'unmetered'
}
