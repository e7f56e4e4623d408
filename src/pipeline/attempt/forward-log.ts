import type { Target } from '../../config/types.ts'
import type { AttemptRecord, Exchange } from '../../context/exchange.ts'
import type { Gateway } from '../../context/gateway.ts'
import type { RetryStep } from '../../routing/retry-policy.ts'

/** The upstream refused the operator's own credential: the log and the console tell of it. */
export function reportCredentialRejected(
  gateway: Gateway, { id }: Exchange, { upstream: { name } }: Target, status: number,
): void {
  gateway.sharedState.credentialRejections.set(name, { status, at: gateway.clock.wall() })
  gateway.log.error(
    { request: id, upstream: name, status },
    "the upstream refused the gateway's own credential: check upstreams.%s.auth", name,
  )
}

/** The stream broke that was to be continued, and nobody can go on with it. */
export function logNotContinued(gateway: Gateway, { id }: Exchange, why: string): void {
  gateway.log.info({ request: id, why }, 'the stream cannot be continued')
}

/** An attempt failed, and another follows it. */
export function logRetry(
  gateway: Gateway, { id }: Exchange, { upstream, outcome, status }: AttemptRecord, { target, delayMs }: RetryStep,
): void {
  const line = { request: id, upstream, outcome, status, next: target.upstream.name, wait_ms: delayMs }
  gateway.log.warn(line, 'attempt failed')
}
