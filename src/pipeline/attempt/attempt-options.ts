import type { Target } from '../../config/types.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { Gateway } from '../parts/gateway.ts'
import type { LiveTarget } from '../../upstreams/live-targets.ts'
import { quote } from '../parts/quote.ts'
import type { AttemptDraft, AttemptRequest, UpstreamAttemptOptions } from '../exchange/upstream-attempt.ts'
import type { Authorization } from '../../upstreams/credentials/credential.ts'
import type { Reservation } from '../../limits/types.ts'
import { ACCOUNT_CHOICE_HEADERS } from '../../protocols/http/vendor-headers.ts'

/** The options that all attempts of an exchange share, over HTTP or a WebSocket. */
export function attemptOptions(
  gateway: Gateway, exchange: Exchange, { target, live, refused, reservation, sent, startedAt }: {
    readonly target: Target
    readonly live: LiveTarget
    readonly refused: readonly Authorization[]
    readonly reservation: Reservation | null
    readonly sent: AttemptRequest
    /** On the monotonic clock, ms. */
    readonly startedAt: number
  },
): UpstreamAttemptOptions {
  const { id, identity, req } = exchange
  const { translated, dropped } = sent
  const record: AttemptDraft = {
    upstream: target.upstream.name,
    model: live.model,
    ...translated && { translated: `${translated.translator.from}->${translated.translator.to}` },
    ...dropped.length > 0 && { dropped },
    outcome: 'ok',
    ms: 0,
    atMs: startedAt - exchange.startedAt,
  }
  return {
    target, upstream: live.upstream, refused, reservation, sent, record, startedAt,
    ownInput: exchange.reserved?.estimatedInput ?? null,
    use: {
      purpose: live.purpose,
      key: identity.key?.name ?? null,
      choosesAccount: ACCOUNT_CHOICE_HEADERS.some(name => req.headers[name] !== undefined),
    },
    quoted: exchange.attempts.length === 0 ? exchange.quoted : quote(gateway, exchange, target),
    health: gateway.health.begin(live.candidate, { requestId: id, record }),
    clock: gateway.clock,
  }
}
