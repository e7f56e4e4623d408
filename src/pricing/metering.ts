import type { Endpoint } from '../protocols/endpoint/protocol.ts'

export function isMetered({ metering }: Endpoint): boolean {
  return metering !== null && metering !== 'unmetered'
}

/** The endpoint responds with text or tool calls. */
export function respondsWithText({ metering }: Endpoint): boolean {
  return metering === 'text'
}

/** The endpoint responds with an image or a transcript. */
export function reportsTokensAtEnd({ metering }: Endpoint): boolean {
  return metering === 'images' || metering === 'transcript'
}

/** A request uses something that cannot be counted. */
export function isUnmetered({ metering }: Endpoint): boolean {
  return metering === 'unmetered'
}
