import { Type, type Static, type TProperties, type TSchema } from 'typebox'

/** Shapes that several parts of the API use. */

/** An object of which the server sends only the declared members. */
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
/** Cost of several requests; the cost of some may be unknown. */
export const KnownCost = Type.Union([Usd, Type.Null()], { description: 'The known part of the cost, USD; null = no part of it is known' })
export const Count = Type.Integer({ minimum: 0 })
export const Ms = Type.Number({ minimum: 0, description: 'Milliseconds' })
/** Any text that a client or an operator chose. */
export const Name = Type.String({ maxLength: 256 })

/** Includes `from`, excludes `to`. Default: the last 24 hours. */
export const Range = { from: Type.Optional(Timestamp), to: Type.Optional(Timestamp) }

/** All conditions must hold. */
export const Conditions = {
  ...Range,
  key: Type.Optional(Name), model: Type.Optional(Name), upstream: Type.Optional(Name),
  without: Type.Optional(Type.String({
    pattern: '^(key|model|upstream)(,(key|model|upstream)){0,2}$',
    description: 'Requests without a key, model or upstream; separate several with commas',
  })),
}

/** Sums over several requests: a rate can be computed from the sums, but rates cannot be averaged. */
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

/** From a histogram, exact to about 5 %; null = no request had a first byte. */
export const FirstByte = StrictObject({ p50_ms: Nullable(Ms), p95_ms: Nullable(Ms) })
export type FirstByte = Static<typeof FirstByte>

/** Response of an operation that was refused or that failed. */
export const Problem = StrictObject({
  code: StringEnum(['bad_request', 'not_logged_in', 'forbidden', 'not_found', 'conflict', 'too_many', 'unavailable', 'internal']),
  message: Type.String({ description: 'What to change, as text' }),
  field: Type.Optional(Type.String({ description: 'The field of the request that is wrong' })),
})
export type Problem = Static<typeof Problem>

export const ROLES = ['admin', 'viewer', 'key'] as const
/** `key`: the holder of an API key, who sees only the data of that key. */
export type Role = (typeof ROLES)[number]
