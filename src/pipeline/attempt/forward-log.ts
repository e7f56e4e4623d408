import { causeOf } from '../../base/errors.ts'
import type { GatewayError } from '../../base/errors.ts'
import type { Target } from '../../config/types.ts'
import type { Exchange } from '../../context/exchange.ts'
import type { Gateway } from '../../context/gateway.ts'
import { logIds } from '../../context/log-ids.ts'
import type { AttemptRecord } from '../../context/upstream-attempt.ts'
import type { RetryStep } from '../../routing/retry-policy.ts'

/** Reports in the log and in the console that an upstream refused the operator's credential. */
export function reportCredentialRejected(
  gateway: Gateway, exchange: Exchange, { upstream: { name } }: Target, status: number,
): void {
  gateway.sharedState.credentialFailures.set(name, { reason: `rejected by the upstream (${status})`, at: gateway.clock.wall() })
  gateway.log.error(
    { ...logIds(exchange), upstream: name, status },
    "the upstream refused the gateway's own credential: check upstreams.%s.auth", name,
  )
}

/** Reports in the console that the source of a credential failed; the credential itself reports that in the log. */
export function reportCredentialUnavailable(gateway: Gateway, { upstream: { name } }: Target, error: GatewayError): void {
  gateway.sharedState.credentialFailures.set(name, { reason: causeOf(error) ?? error.message, at: gateway.clock.wall() })
}

/** Why the credential of an attempt was not available, as the ledger has it. */
export function credentialReason(error: GatewayError): string {
  return `credentials: ${causeOf(error) ?? error.message}`
}

/** Why a credential was not sent, as the ledger has it. */
export const NOT_SENT = 'not sent: the upstream refused the credential a moment ago'

/** Logs that no other target can continue a stream that broke. @param why the reason */
export function logNotContinued(gateway: Gateway, exchange: Exchange, why: string): void {
  gateway.log.info({ ...logIds(exchange), why }, 'the stream cannot be continued')
}

/** Logs that a target is silent, and that another one is asked beside it. */
export function logHedge(gateway: Gateway, exchange: Exchange, { upstream }: AttemptRecord, { upstream: { name } }: Target): void {
  gateway.log.info({ ...logIds(exchange), upstream, beside: name }, 'the upstream is slow: another one is asked too')
}

/** Logs a failed attempt that another follows. */
export function logRetry(
  gateway: Gateway, exchange: Exchange, { upstream, outcome, status }: AttemptRecord, { target, delayMs }: RetryStep,
): void {
  const line = { ...logIds(exchange), upstream, outcome, status, next: target.upstream.name, wait_ms: delayMs }
  gateway.log.warn(line, 'attempt failed')
}

/** Logs that a target is not tried because its upstream is at its limit. @param step null = there is no other target */
export function logPassedOver(gateway: Gateway, exchange: Exchange, upstream: string, step: RetryStep | null): void {
  gateway.log.info({ ...logIds(exchange), upstream, next: step?.target.upstream.name }, 'target skipped: its upstream is at its limit')
}
