import { Type, type Static } from 'typebox'
import { StrictObject, Count, Figures, Timestamp, Name, Nullable, Usd, StringEnum } from './shapes.ts'

const Rates = {
  requests_per_minute: Type.Optional(Count),
  tokens_per_minute: Type.Optional(Count),
  concurrent: Type.Optional(Count),
  budget: Type.Optional(StrictObject({ usd: Usd, per: StringEnum(['day', 'month', 'total']) })),
}

/** Limits as in gateway.yaml. If a limit is absent, there is none. */
export const Limits = StrictObject({ ...Rates, models: Type.Optional(Type.Record(Type.String(), StrictObject(Rates))) })
export type Limits = Static<typeof Limits>

const Owner = Type.String({ minLength: 1, maxLength: 128, description: 'Who is responsible for the key' })
const Note = Type.String({ minLength: 1, maxLength: 512, description: 'What the key is for' })

const Origin = StringEnum(['config', 'store'])
const State = StringEnum(['live', 'blocked', 'revoked'], 'blocked: a key of gateway.yaml that is shut out from here')

export const KeyState = StrictObject({
  name: Name,
  /** config: the key is in gateway.yaml; store: the key is in the key store, which this API and `gateway keys` change. */
  origin: Origin,
  /** For a key in gateway.yaml: `path:line`. */
  place: Nullable(Type.String()),
  state: State,
  models: Nullable(Type.Array(Name)),
  limits: Nullable(Limits),
  group: Nullable(Name), owner: Nullable(Owner), note: Nullable(Note),
  expires_at: Nullable(Timestamp),
  prefix: Nullable(Type.String({ description: 'The first characters of the secret' })),
  /** Secrets that a rotation replaced and that are still valid. */
  old_secrets: Type.Array(StrictObject({ sha256_prefix: Type.String(), valid_until: Timestamp })),
  created_at: Nullable(Timestamp), revoked_at: Nullable(Timestamp), last_used_at: Nullable(Timestamp),
  /** Figures of the last 30 days. */
  figures: Figures,
})
export type KeyState = Static<typeof KeyState>

export const Keys = StrictObject({
  /** Whether keys can be created or changed here, and why not. */
  store: StrictObject({ writable: Type.Boolean(), reason: Nullable(Type.String()) }),
  default_limits: Nullable(Limits),
  /** The groups in gateway.yaml. The keys of a group share the group's limits. */
  groups: Type.Array(StrictObject({ name: Name, parent: Nullable(Name), models: Nullable(Type.Array(Name)), limits: Nullable(Limits) })),
  keys: Type.Array(KeyState),
})
export type Keys = Static<typeof Keys>

export const NewKey = StrictObject({
  name: Name,
  models: Type.Optional(Type.Array(Name, { maxItems: 1000 })),
  limits: Type.Optional(Limits),
  group: Type.Optional(Name), owner: Type.Optional(Owner), note: Type.Optional(Note),
  expires_at: Type.Optional(Timestamp),
})
export type NewKey = Static<typeof NewKey>

/** A change of a key. Absent members stay unchanged; null removes the value. */
export const KeyChange = StrictObject({
  models: Type.Optional(Nullable(Type.Array(Name, { maxItems: 1000 }))),
  limits: Type.Optional(Nullable(Limits)),
  group: Type.Optional(Nullable(Name)), owner: Type.Optional(Nullable(Owner)), note: Type.Optional(Nullable(Note)),
  expires_at: Type.Optional(Nullable(Timestamp)),
})
export type KeyChange = Static<typeof KeyChange>

/** `grace_seconds`: number of seconds for which the old secret stays valid. */
export const Rotation = StrictObject({ grace_seconds: Type.Optional(Type.Integer({ minimum: 0, maximum: 31_536_000, default: 86_400 })) })

/** A key that was found somewhere, for example in a log. */
export const KeyLookup = StrictObject({ key: Type.String({ minLength: 1, maxLength: 4096 }) })

/** The owner of a key; null = this gateway never had the key. */
export const KeyOwner = StrictObject({ owner: Nullable(StrictObject({ name: Name, origin: Origin, state: State })) })
export type KeyOwner = Static<typeof KeyOwner>

/** The created key. No other response contains the key itself. */
export const CreatedKey = StrictObject({ name: Name, key: Type.String() })
export type CreatedKey = Static<typeof CreatedKey>

export const Audit = StrictObject({
  /** The audit events, the newest first. */
  entries: Type.Array(StrictObject({
    id: Type.Integer(),
    at: Timestamp,
    /** A user of the console, or the user who ran `gateway keys` on the machine. */
    actor: Type.String(),
    address: Nullable(Type.String()),
    action: StringEnum([
      'key.created', 'key.changed', 'key.rotated', 'key.revoked', 'key.blocked', 'key.unblocked',
      'login', 'login.refused', 'logout', 'bodies.read', 'config.reloaded', 'config.rejected',
    ]),
    subject: Nullable(Name),
    detail: Nullable(Type.String()),
  })),
  next: Nullable(Type.Integer()),
})
export type Audit = Static<typeof Audit>

/** A caller of `callers`: it has a token of an issuer in place of a key. */
export const Callers = StrictObject({
  callers: Type.Array(StrictObject({
    name: Name,
    issuer: Type.String({ description: 'The URL of its issuer' }),
    groups: Type.Array(Name, { description: 'Those of its requests in the last 30 days; the token decides at each request' }),
    /** The limits of the caller, with the defaults. Those of the group count too. */
    limits: Nullable(Limits),
    state: StringEnum(['live', 'blocked']),
    keys: Type.Integer({ minimum: 0, description: 'Live keys that the caller has made' }),
    keys_allowed: Count,
    last_used_at: Nullable(Timestamp),
    /** Figures of the last 30 days. */
    figures: Figures,
  }), { description: 'Callers with requests in the ledger, and blocked ones; the highest cost first' }),
  total: Type.Integer({ minimum: 0, description: 'Number of callers; at most 1,000 are listed' }),
})
export type Callers = Static<typeof Callers>

/** A key that a caller has made for itself. */
export const OwnKeys = StrictObject({
  allowed: Type.Integer({ minimum: 0, description: 'How many keys the caller may have at the same time; 0 = none, or the user is no caller' }),
  max_days: Type.Integer({ minimum: 1, description: 'Days after which a key ends at the latest' }),
  keys: Type.Array(StrictObject({
    label: Name, prefix: Nullable(Type.String({ description: 'The first characters of the secret' })),
    models: Nullable(Type.Array(Name)), created_at: Timestamp, expires_at: Nullable(Timestamp),
    expired: Type.Boolean(),
  })),
})
export type OwnKeys = Static<typeof OwnKeys>

export const NewOwnKey = StrictObject({
  label: Type.String({ minLength: 1, maxLength: 64, description: 'What the key is for' }),
  expires_at: Timestamp,
  models: Type.Optional(Type.Array(Name, { maxItems: 1000 })),
})

export const OwnKey = StrictObject({
  name: Name, models: Nullable(Type.Array(Name)), limits: Nullable(Limits),
  /** State of the rate limits; null = the key has no such limit. */
  requests: Nullable(StrictObject({ limit: Count, remaining: Count, reset_ms: Type.Number() })),
  tokens: Nullable(StrictObject({ limit: Count, remaining: Count, reset_ms: Type.Number() })),
})
