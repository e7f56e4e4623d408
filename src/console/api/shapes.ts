import { Type, type Static, type TProperties, type TSchema } from 'typebox'

/** Shapes that several files of the API use. */

/** An object. The server sends only the declared members. */
export function StrictObject<T extends TProperties>(properties: T, description?: string) {
  return Type.Object(properties, { additionalProperties: false, ...description !== undefined && { description } })
}

export function Nullable<T extends TSchema>(schema: T) {
  return Type.Union([schema, Type.Null()])
}

export function StringEnum<const T extends readonly string[]>(words: T, description?: string) {
  return Type.Unsafe<T[number]>({ type: 'string', enum: [...words], ...description !== undefined && { description } })
}

export const Timestamp = Type.String({ format: 'date-time', description: 'ISO 8601, UTC' })
export const Day = Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}$', description: 'A UTC day: 2026-11-21' })
export const Usd = Type.String({ pattern: '^-?\\d+(\\.\\d+)?$', description: 'USD, an exact decimal' })
/** Cost of several requests, some of which may have an unknown cost. */
export const KnownCost = Type.Union([Usd, Type.Null()], { description: 'The known part of the cost, USD; null = no part of it is known' })
export const Count = Type.Integer({ minimum: 0 })
export const Ms = Type.Number({ minimum: 0, description: 'Milliseconds' })
/** Text that a client or an operator chose. */
export const Name = Type.String({ maxLength: 256 })

/** A period. It includes `from` and excludes `to`. Default: the last 24 hours. */
export const Range = { from: Type.Optional(Timestamp), to: Type.Optional(Timestamp) }

/** Conditions of a query. Requests must fulfil all of them. */
export const Conditions = {
  ...Range,
  key: Type.Optional(Name), model: Type.Optional(Name), upstream: Type.Optional(Name),
  without: Type.Optional(Type.String({
    pattern: '^(key|model|upstream)(,(key|model|upstream)){0,2}$',
    description: 'Requests without a key, model or upstream; separate several with commas',
  })),
}

/** Sums over several requests. Clients compute rates from the sums, because rates cannot be averaged. */
export const Figures = StrictObject({
  requests: Count,
  errors: Type.Integer({ minimum: 0, description: 'Requests that ended neither as complete nor as client_gone' }),
  input_tokens: Count, cached_input_tokens: Count, cache_write_tokens: Count, output_tokens: Count, reasoning_tokens: Count,
  cost_usd: KnownCost,
  estimated_requests: Type.Integer({ minimum: 0, description: 'Requests with estimated or partly estimated usage' }),
  estimated_cost_usd: Usd,
  unpriced_requests: Type.Integer({ minimum: 0, description: 'Requests with an unknown cost; not part of cost_usd' }),
})
export type Figures = Static<typeof Figures>

/** Times to the first byte from a histogram, with an error of about 5 %; null = no request had a first byte. */
export const FirstByte = StrictObject({ p50_ms: Nullable(Ms), p95_ms: Nullable(Ms) })
export type FirstByte = Static<typeof FirstByte>

/** The response if an operation is refused or fails. */
export const Problem = StrictObject({
  code: StringEnum(['bad_request', 'not_logged_in', 'forbidden', 'not_found', 'conflict', 'too_many', 'unavailable', 'internal']),
  message: Type.String({ description: 'What to change, as text' }),
  field: Type.Optional(Type.String({ description: 'The field of the request that is wrong' })),
})
export type Problem = Static<typeof Problem>

export const ROLES = ['admin', 'viewer', 'key'] as const
/** `key`: the user logged in with an API key, or as a caller, and sees only the data of this key or caller. */
export type Role = (typeof ROLES)[number]
