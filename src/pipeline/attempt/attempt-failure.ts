import type { GatewayError } from '../../base/errors.ts'
import type { RefusalReason } from '../../protocols/shared/refusal-reason.ts'
import type { RawHeaders } from '../../proxy/raw-headers.ts'
import type { HeldResponse, ResponseGate } from '../respond/response-gate.ts'
import { decompressedBody } from './upstream-errors.ts'

/** How an attempt failed before the client got any of its response. */
export interface AttemptFailure {
  /** null = the upstream sent an error of its own. */
  readonly error: GatewayError | null
  /** The upstream's status; null = no head came. */
  readonly status: number | null
  readonly headers: RawHeaders
  /** The upstream's error, where all of it came. */
  readonly response: HeldResponse | null
  /** The body of that, decompressed. */
  readonly said: Buffer | null
  /** Why it refused the request: with 401 or 403, or where the route names another target for that. */
  readonly reason: RefusalReason | null
}

/** @returns null = the response that was held goes to the client */
export async function decisionOf(gate: ResponseGate): Promise<AttemptFailure | null> {
  const rejected = await gate.decision
  if (rejected === null) return null
  return {
    ...rejected,
    said: rejected.response && decompressedBody(rejected.response),
    reason: gate.refusalReason,
  }
}

/** The failure of an attempt to which no response came. */
export function failureWithoutResponse(error: GatewayError): AttemptFailure {
  return { error, status: null, headers: Object.entries(error.headers).flat(), response: null, said: null, reason: null }
}
