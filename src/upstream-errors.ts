import { GatewayError } from './errors.ts'
import { errorEvent } from './protocols/keep-alive.ts'
import type { ProtocolName } from './protocols/names.ts'
import { headerValue } from './proxy/headers.ts'
import type { KeptAnswer } from './proxy/prelude.ts'

/** An upstream's own error as an event; null where it cannot be one. */
export function ownWords({ headers, body }: KeptAnswer, protocol: ProtocolName): string | null {
  if (headerValue(headers, 'content-type')?.startsWith('text/event-stream')) return null
  try {
    const value = JSON.parse(body.toString('utf8')) as unknown
    const isError = typeof value === 'object' && value !== null && 'error' in value
    return isError ? errorEvent(protocol, JSON.stringify(value)) : null
  } catch {
    // No JSON, no event.
    return null
  }
}

/** Did the upstream refuse the credential that it was given? */
export function isCredentialRefused(status: number): boolean {
  return status === 401 || status === 403
}

/** An upstream's error that the client does not get: not all of it came, or the operator's credential was refused. */
export function untold(status: number | null): GatewayError {
  if (status === null || !isCredentialRefused(status)) {
    return new GatewayError('upstream_invalid', `the upstream answered ${status} and did not say why`)
  }
  return new GatewayError(
    'upstream_rejected_key',
    `the upstream answered ${status} to the gateway's own credential; the operator has to mend it`,
    { headers: { 'x-should-retry': 'false' } },
  )
}
