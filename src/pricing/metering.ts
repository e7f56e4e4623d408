import type { Endpoint } from '../protocols/endpoint/protocol.ts'

/** Does a request to this endpoint use anything that is billed? */
export function isMetered({ metering }: Endpoint): boolean {
  return metering !== null && metering !== 'unmetered'
}

/** Does it respond with text, or with the arguments of tools? */
export function respondsWithText({ metering }: Endpoint): boolean {
  return metering === 'text'
}

/** Does it respond with a picture, or with a transcript of sound, whose tokens are known at the end only? */
export function reportsTokensAtEnd({ metering }: Endpoint): boolean {
  return metering === 'images' || metering === 'transcript'
}

/** Does a request to this endpoint, for a model, use something whose amount cannot be known? */
export function isUnmetered({ metering }: Endpoint): boolean {
  return metering === 'unmetered'
}
