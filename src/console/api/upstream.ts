import { Type, type Static } from 'typebox'
import { UpstreamState } from './panel.ts'
import { Count, Ms, Name, Nullable, StrictObject, StringEnum, Timestamp } from './shapes.ts'

const Outcomes = StrictObject({
  requests: Count, complete: Count, client_disconnected: Count,
  provider_failures: Type.Integer({ minimum: 0, description: 'Timeouts, broken responses, and errors of the provider' }),
  client_errors: Type.Integer({ minimum: 0, description: 'The request was wrong' }),
  gateway_refusals: Type.Integer({ minimum: 0, description: 'The gateway refused the request, for example over a limit' }),
})
export type Outcomes = Static<typeof Outcomes>

const Latency = StrictObject({ p50_ms: Nullable(Ms), p95_ms: Nullable(Ms), p99_ms: Nullable(Ms) })
export type Latency = Static<typeof Latency>

const Failure = StrictObject({
  at: Timestamp,
  reason: Type.String({ description: 'Such as status 503 overloaded_error, connect_timeout, or health check: status 500' }),
  request_id: Nullable(Type.String({ description: 'The request that failed; null = a health check' })),
})

const Cause = { first: Nullable(Failure), last: Nullable(Failure) }

export const UpstreamReport = StrictObject({
  from: Timestamp, to: Timestamp,
  complete: Type.Boolean({ description: 'false: there were more requests; the newest are counted' }),
  slice_ms: Ms,
  outcomes: Outcomes, first_byte: Latency, duration: Latency,
  slices: Type.Array(StrictObject({ at: Timestamp, outcomes: Outcomes, first_byte: Latency, duration: Latency })),
  attempts: Type.Array(StrictObject({ outcome: Type.String(), count: Count }), { description: 'The most frequent first' }),
  failovers_to: Type.Array(StrictObject({ upstream: Name, count: Count })),
  failovers_from: Type.Array(StrictObject({ upstream: Name, count: Count })),
})
export type UpstreamReport = Static<typeof UpstreamReport>

/** The state of a limit in `upstreams.NAME.limits`. */
const RateLimit = StrictObject({
  limit: Count,
  remaining: Nullable(Type.Integer({ minimum: 0, description: 'null = not known yet' })),
  reset_ms: Nullable(Ms),
})

const Remaining = StrictObject({ limit: Count, remaining: Count })

const Credential = StrictObject({
  kind: StringEnum(['static', 'file', 'command', 'oauth2', 'azure', 'aws', 'google', 'client'], "client: the client's own, so the gateway has none"),
  state: StringEnum(
    ['ready', 'refresh_failing', 'rate_limited', 'refused', 'unavailable'],
    'refresh_failing: it holds, but its source fails; unavailable: there is none, because its source fails',
  ),
  fault: Nullable(Type.String({ description: 'Why its source fails' })),
  rests_until: Nullable(Timestamp), fetched_at: Nullable(Timestamp), expires_at: Nullable(Timestamp),
  rate_limits: Nullable(StrictObject(
    { at: Timestamp, requests: Nullable(Remaining), tokens: Nullable(Remaining) }, 'What the upstream said last of the limits of the credential',
  )),
})

export const UpstreamDetails = StrictObject({
  upstream: UpstreamState,
  circuits: Type.Array(StrictObject({
    model: Nullable(Name), circuit: StringEnum(['open', 'probing']), since: Nullable(Timestamp), failures: Count, ...Cause,
  }), { description: 'Those that are open or half-open now: since when, and what failed first and last' }),
  changes: Type.Array(StrictObject({
    at: Timestamp,
    worker: Type.Integer({ minimum: 0, description: 'Each worker has circuits of its own; 0 = there is one process' }),
    model: Nullable(Type.String({ description: 'null: all models, because health checks fail' })),
    state: StringEnum(['open', 'closed']), failures: Count, ...Cause,
  }), { description: 'Oldest first, with the last one before the time of each circuit' }),
  limits: Nullable(StrictObject({
    requests: Nullable(RateLimit),
    tokens: Nullable(RateLimit),
    concurrent: Nullable(StrictObject({ limit: Count, running: Type.Integer({ minimum: 0, description: 'At this gateway' }) })),
  })),
  credentials: Type.Array(Credential, { description: 'Of a pool, or the one. With several workers: the worst of what they know' }),
  credential_failure: Nullable(StrictObject({ at: Timestamp, reason: Type.String() })),
  report: Nullable(UpstreamReport),
})
export type UpstreamDetails = Static<typeof UpstreamDetails>
