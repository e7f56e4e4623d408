import type { Target } from '../../config/types.ts'
import type { CredentialUse } from '../../context/authorize.ts'
import type { Exchange } from '../../context/exchange.ts'
import type { Gateway } from '../../context/gateway.ts'
import { quote } from '../../context/quote.ts'
import { UpstreamAttempt } from '../../context/upstream-attempt.ts'
import type { AttemptRecord, AttemptRequest } from '../../context/upstream-attempt.ts'
import { ACCOUNT_CHOICE_HEADERS } from '../../protocols/shared/vendor-headers.ts'
import { candidateId } from '../../routing/candidate.ts'
import type { HealthReporter } from '../../routing/health-reporter.ts'

/** What an attempt needs a credential for. */
export function credentialUse({ req, classified, identity, request: { model } }: Exchange, target: Target): CredentialUse {
  return {
    purpose: [classified.endpoint.name, target.model ?? model],
    key: identity.key?.name ?? null,
    choosesAccount: ACCOUNT_CHOICE_HEADERS.some(name => req.headers[name] !== undefined),
  }
}

/**
 * Starts an attempt of an exchange, over HTTP or a WebSocket.
 *
 * @param startedAt on the monotonic clock, ms
 * @returns the attempt, and what reports its outcome to the target's health
 */
export function beginAttempt(
  gateway: Gateway, exchange: Exchange, target: Target, request: AttemptRequest, startedAt: number,
): { readonly state: UpstreamAttempt, readonly health: HealthReporter } {
  const isFirst = exchange.attempts.length === 0
  const quoted = isFirst ? exchange.quoted : quote(gateway, exchange, target)
  const record: AttemptRecord = {
    upstream: target.upstream.name,
    model: target.model ?? exchange.request.model,
    ...translationRecord(request),
    outcome: 'ok',
    ms: 0,
    atMs: startedAt - exchange.startedAt,
  }
  const state = new UpstreamAttempt(target, record, quoted, request)
  exchange.begin(state)
  return { state, health: gateway.health.begin(candidateId(target, exchange.request.model), { requestId: exchange.id, record }) }
}

function translationRecord({ translated, dropped }: AttemptRequest): Pick<AttemptRecord, 'translated' | 'dropped'> {
  return {
    ...translated && { translated: `${translated.translator.from}->${translated.translator.to}` },
    ...dropped.length > 0 && { dropped },
  }
}
