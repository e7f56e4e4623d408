import { Type, type Static } from 'typebox'
import { StrictObject, Conditions, Count, Timestamp, Ms, Name, Nullable, Usd, StringEnum } from './shapes.ts'

const ENDS = ['complete', 'client_gone', 'upstream_cut', 'timeout', 'refused', 'error', 'interrupted'] as const
const SOURCES = ['reported', 'estimated', 'mixed', 'none'] as const

/** A row of the ledger. Key holders get null for `upstream` and `upstream_model`. */
export const Row = StrictObject({
  request_id: Type.String(), started_at: Timestamp,
  first_byte_ms: Nullable(Ms), duration_ms: Nullable(Ms),
  key: Nullable(Name), group: Nullable(Name), owner: Nullable(Type.String()),
  protocol: Nullable(Type.String()), endpoint: Nullable(Type.String()),
  model: Nullable(Name), upstream: Nullable(Name), upstream_model: Nullable(Name),
  upstream_protocol: Nullable(Type.String({ description: 'The protocol of the request at the upstream; null = no upstream got it' })),
  user: Nullable(Type.String({ description: 'The end user, by the attribution of the configuration' })),
  tags: Nullable(Type.Record(Type.String(), Type.String(), { description: 'Values by tag' })),
  billed: Nullable(Type.String({ description: 'client: it paid the upstream with its own credential; null = the operator pays' })),
  queued_ms: Nullable(Type.Number({ description: 'ms that the request waited in queues; null = it did not wait' })),
  policy: Nullable(Type.Array(StrictObject({ rule: Type.String(), action: Type.String(), count: Type.Integer() }), {
    description: 'What rules did with the request; null = nothing, or a key holder asks',
  })),
  status: Nullable(Type.Integer()),
  end: StringEnum(ENDS),
  error: Nullable(Type.String()),
  source: StringEnum(SOURCES),
  input_tokens: Nullable(Count), cached_input_tokens: Nullable(Count), cache_write_tokens: Nullable(Count),
  output_tokens: Nullable(Count), reasoning_tokens: Nullable(Count),
  cost_usd: Nullable(Usd),
  attempts: Type.Integer({ minimum: 0, description: 'Number of attempts' }),
  unreadable: Type.Array(Type.String(), { description: 'Columns of the ledger that have no readable value for this request' }),
})
export type Row = Static<typeof Row>

/** Orders of requests. With `-` in front, the order is descending. */
const SORTS = ['started', 'duration', 'ttft', 'cost', 'input', 'output', 'status'] as const

export const LogConditions = {
  ...Conditions,
  q: Type.Optional(Type.String({
    maxLength: 1000,
    description: 'Conditions such as `status:5xx key:team-a model:gpt* -error:rate_limit cost>0.01 ttft>2s`; see the docs of the console',
  })),
  status: Type.Optional(Type.String({
    pattern: '^([1-5]xx|[1-5]\\d\\d|none)$',
    description: '503, a class such as 5xx, or none (no response was sent)',
  })),
  end: Type.Optional(StringEnum([...ENDS, 'failed'], 'failed: every end but complete and client_gone')),
}

export const LogQuery = StrictObject({
  ...LogConditions,
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: 50 })),
  sort: Type.Optional(StringEnum(
    SORTS.flatMap(name => [name, `-${name}` as const]), 'Default: -started, the newest first. Requests without the value come last',
  )),
  /** The value `next` of the previous page. */
  before: Type.Optional(Type.String({ maxLength: 128 })),
  /** The value `last` of an earlier response: only requests that ended since then are returned. */
  after: Type.Optional(Type.String({ maxLength: 128 })),
})

export const Logs = StrictObject({
  rows: Type.Array(Row),
  next: Nullable(Type.String({ description: 'Cursor for older requests; null = there are none' })),
  last: Nullable(Type.String({ description: 'Cursor for requests that ended since' })),
})
export type Logs = Static<typeof Logs>

const CostLine = StrictObject({
  item: Type.String(), quantity: Type.Number(),
  price: Type.String({ description: 'USD for `per` units' }),
  per: Type.Integer(),
  cost_usd: Usd,
})

/** An attempt. Key holders get null for `upstream` and `model`. */
const Attempt = StrictObject({
  upstream: Nullable(Name),
  model: Nullable(Name),
  translated: Nullable(Type.String({ description: "The client's protocol and the upstream's: messages->chat; null = the request was not translated" })),
  dropped: Type.Array(Type.String(), { description: 'Fields of the request that the upstream did not get' }),
  outcome: Type.String(),
  explanation: Type.String({ description: 'The outcome as text' }),
  at_ms: Nullable(Ms), ms: Ms,
  status: Nullable(Type.Integer()),
  error_name: Nullable(Type.String({ description: "The upstream's name of its error; null for key holders" })),
  error_text: Nullable(Type.String({ description: "The first kilobyte of the upstream's error, secrets masked; null for key holders" })),
  input_tokens: Nullable(Count), output_tokens: Nullable(Count),
  cost_usd: Nullable(Usd),
})

export const RequestDetails = StrictObject({
  row: Row,
  running: Type.Boolean({ description: 'The request still runs; its figures are provisional' }),
  bytes_in: Count, bytes_out: Count,
  /** Explanations for people. */
  end_explanation: Type.String(),
  error_explanation: Nullable(Type.String()),
  source_explanation: Type.String(),
  route: Nullable(Type.String({ description: 'The route that took the request, as it was then; null = no route' })),
  trace_id: Nullable(Type.String({ description: 'Of its trace; null = no trace was sent, or the user holds a key' })),
  attempts: Type.Array(Attempt),
  counts: Type.Array(StrictObject({ label: Type.String(), value: Type.Number() })),
  price_version: Nullable(Type.String({ description: 'null: no price, or the user holds a key' })),
  bill: Type.Array(CostLine, { description: 'Empty for key holders' }),
})
export type RequestDetails = Static<typeof RequestDetails>

/** The details of all requests with an id. There are several if a trusted proxy used the id twice. */
export const RequestDetailsList = StrictObject({
  stories: Type.Array(RequestDetails),
  has_bodies: Type.Boolean({ description: 'The bodies are kept, and the user can read them' }),
  trace_url: Nullable(Type.String({ description: 'telemetry.trace_url: the page of a trace, with {trace_id}' })),
})
export type RequestDetailsList = Static<typeof RequestDetailsList>
