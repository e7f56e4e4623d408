import { Type, type Static } from 'typebox'
import { StrictObject, Count, Figures, FirstByte, KnownCost, Timestamp, Ms, Name, Nullable, StringEnum } from './shapes.ts'

export const SLICES = ['minute', 'hour', 'day'] as const

export const Slice = StrictObject({
  at: Timestamp, requests: Count, errors: Count, tokens: Count, cost_usd: KnownCost, unpriced_requests: Count,
})
export type Slice = Static<typeof Slice>

const Period = StrictObject({ from: Timestamp, to: Timestamp, figures: Figures, first_byte: FirstByte })

export const Panel = StrictObject({
  now: Period,
  /** The period of the same length before `now`. */
  before: Period,
  slice: StringEnum(SLICES),
  slices: Type.Array(Slice, { description: 'Oldest first, with empty ones' }),
  /** The keys with the highest cost, in descending order, at most ten. */
  top_keys: Type.Array(StrictObject({ name: Nullable(Name), figures: Figures })),
  top_models: Type.Array(StrictObject({ name: Nullable(Name), figures: Figures })),
})
export type Panel = Static<typeof Panel>

export const UpstreamState = StrictObject({
  name: Name,
  /** URL of the upstream; null = the simulator, which runs in the process of the gateway. */
  url: Nullable(Type.String()),
  health: StringEnum(['unknown', 'well', 'failing', 'down'], 'down: every circuit is open; failing: some are'),
  in_flight: Count,
  candidates: Type.Array(StrictObject({
    model: Nullable(Name),
    circuit: StringEnum(['closed', 'open', 'probing']),
    opens_in_ms: Nullable(Ms), in_flight: Count, first_byte_ms: Nullable(Ms),
  })),
  /** Figures of the period in the query. */
  figures: Figures,
  first_byte: FirstByte,
  share: Type.Number({ minimum: 0, maximum: 1, description: 'Share of all requests that an upstream served' }),
})
export type UpstreamState = Static<typeof UpstreamState>

export const Upstreams = StrictObject({ upstreams: Type.Array(UpstreamState) })
export type Upstreams = Static<typeof Upstreams>

/** A condition that the operator must look at. */
export const Alert = StrictObject({
  id: Type.String({ description: 'The same as long as the alert lasts' }),
  kind: StringEnum([
    'unpriced_model', 'upstream_key_rejected', 'circuit_open', 'store', 'reload_failed', 'restart_needed',
    'ledger', 'budget', 'no_keys', 'key_store', 'certificate', 'cluster',
  ]),
  severity: StringEnum(['error', 'warning']),
  message: Type.String({ description: 'The problem, and what to do' }),
  /** The key, group, model or upstream that the alert concerns. */
  subject: Nullable(Name),
  since: Nullable(Timestamp),
  /** Line in the active configuration, or for `reload_failed` in the rejected configuration; null = no line. */
  line: Nullable(Count),
})
export type Alert = Static<typeof Alert>

/** The current state. The pages request it every few seconds. */
export const Live = StrictObject({
  at: Timestamp,
  status: StringEnum(['ok', 'draining', 'handing_over']),
  running: Type.Integer({ minimum: 0, description: 'Running requests; for key holders those of the own key' }),
  running_streams: Count,
  /** The requests that have run for the longest time, in descending order, at most a hundred. */
  exchanges: Type.Array(StrictObject({
    request_id: Type.String(), started_at: Timestamp, key: Nullable(Name), model: Nullable(Name), upstream: Nullable(Name),
    stream: Type.Boolean(), bytes_out: Count,
    waits_for: Nullable(StrictObject({
      scope: StringEnum(['key', 'group', 'upstream'], 'Whose limit has no room'),
      limit: StringEnum(['requests', 'tokens', 'concurrent']),
      priority: Count,
    })),
  })),
  concerns: Type.Array(Alert, { description: 'Most severe first, at most 100; for key holders those of the own key' }),
})
export type Live = Static<typeof Live>
