import type { SQLOutputValue } from 'node:sqlite'
import { isObject } from '../base/is-object.ts'
import { messageOf } from '../base/message-of.ts'
import type { Budget, Key, Limits, OldSecret } from '../config/key-types.ts'
import { StoreError } from '../base/files/store-error.ts'

/** A stored key. Times are ms since 1970. */
export interface KeyRecord {
  /** Ascending from 1, never reused. */
  readonly id: number
  readonly key: Key
  readonly createdAt: number
  /** null = the key is live. */
  readonly revokedAt: number | null
}

export interface KeySummary {
  readonly id: number
  readonly name: string
  readonly digest: Buffer
  /** ms since 1970; null = the key is live. */
  readonly revokedAt: number | null
}

/** Changes to a key; null removes a property. */
export interface KeyEdit {
  readonly models?: Key['models'] | undefined
  readonly limits?: Key['limits'] | undefined
  readonly group?: string | null | undefined
  readonly owner?: string | null | undefined
  readonly note?: string | null | undefined
  /** ms since 1970 */
  readonly expiresAt?: number | null | undefined
}

/** How many keys a caller may have. */
export interface CallerQuota {
  /** Live keys at the same time. */
  readonly live: number
  /** Keys made in 24 hours, revoked ones included: rows are never deleted. */
  readonly perDay: number
}

export interface NewSecret {
  readonly digest: Buffer
  /** The first characters of the secret. */
  readonly prefix: string
  /** ms since 1970 until which the replaced secret is valid too. */
  readonly oldValidUntil: number
}

export type KeyRow = Readonly<Record<string, SQLOutputValue>>

/** Limits as they are stored and listed: with the names of gateway.yaml, without absent limits. */
export interface LimitsJson extends ScopeLimitsJson { models?: Record<string, ScopeLimitsJson> }

interface ScopeLimitsJson {
  requests_per_minute?: number
  tokens_per_minute?: number
  concurrent?: number
  /** `usd` is a decimal in a string, so that it stays exact. */
  budget?: Budget
}

export const PROPERTY_COLUMNS = ['models', 'limits', 'group_name', 'owner', 'note', 'expires_at', 'prefix', 'old_secrets', 'caller', 'tags'] as const
export type KeyProperties = { [column in (typeof PROPERTY_COLUMNS)[number]]?: string | number | null }

type ScopeLimits = Omit<Limits, 'models'>

const PERIODS: ReadonlySet<unknown> = new Set<Budget['per']>(['day', 'month', 'total'])
const MAX_DIGITS = 64
/** Maximum number of replaced secrets of a key; the oldest are dropped. */
const MAX_OLD_SECRETS = 16

/** @throws {StoreError} `row` = the row was not written by a gateway */
export function readRecord(row: KeyRow): KeyRecord {
  const { id, name, digest, models, limits, created_at: createdAt, revoked_at: revokedAt } = row
  const { group_name: group, owner, note, expires_at: expiresAt, prefix, old_secrets: oldSecrets, caller, tags } = row
  if (typeof name !== 'string' || !(digest instanceof Uint8Array) || typeof createdAt !== 'number') {
    throw new StoreError('row', 'a row of the store is not that of a key')
  }
  try {
    const key = {
      name,
      digest: Buffer.from(digest),
      models: typeof models === 'string' ? Object.freeze(readModels(JSON.parse(models))) : null,
      limits: typeof limits === 'string' ? Object.freeze(readLimits(JSON.parse(limits))) : null,
      ...typeof group === 'string' && { group },
      ...typeof owner === 'string' && { owner },
      ...typeof note === 'string' && { note },
      ...typeof expiresAt === 'number' && { expiresAt },
      ...typeof prefix === 'string' && { prefix },
      ...typeof oldSecrets === 'string' && { oldSecrets: readOldSecrets(JSON.parse(oldSecrets)) },
      ...typeof caller === 'string' && { caller },
      ...typeof tags === 'string' && { tags: readTags(JSON.parse(tags)) },
    }
    return { id: Number(id), key: Object.freeze(key), createdAt, revokedAt: typeof revokedAt === 'number' ? revokedAt : null }
  } catch (error) {
    throw new StoreError('row', `the key ${JSON.stringify(name)} cannot be read: ${messageOf(error)}`)
  }
}

/** From the columns id, name, digest and revoked_at, of a file or of PostgreSQL. */
export function summaryOf({ id, name, digest, revoked_at: at }: Readonly<Record<string, unknown>>): KeySummary {
  return { id: Number(id), name: String(name), digest: Buffer.from(digest as Uint8Array), revokedAt: at === null ? null : Number(at) }
}

/** The columns to store; absent members are left out. */
export function propertiesOf({ models, limits, group, owner, note, expiresAt, prefix, caller, tags }: KeyEdit & Pick<Key, 'prefix' | 'caller' | 'tags'>): KeyProperties {
  return {
    ...models !== undefined && { models: models && JSON.stringify(models) },
    ...limits !== undefined && { limits: limits && JSON.stringify(limitsToJson(limits)) },
    ...group !== undefined && { group_name: group },
    ...owner !== undefined && { owner },
    ...note !== undefined && { note },
    ...expiresAt !== undefined && { expires_at: expiresAt },
    ...prefix !== undefined && { prefix },
    ...caller !== undefined && { caller },
    ...tags !== undefined && { tags: tags && JSON.stringify(Object.fromEntries(tags)) },
  }
}

/** The column `old_secrets` after a rotation. @param now ms since 1970 */
export function oldSecretsAfter({ digest, oldSecrets = [] }: Key, oldValidUntil: number, now: number): string | null {
  const old = [...oldSecrets, { digest, validUntil: oldValidUntil }].filter(({ validUntil }) => validUntil > now).slice(-MAX_OLD_SECRETS)
  return old.length === 0 ? null : JSON.stringify(old.map(each => [Buffer.from(each.digest).toString('hex'), each.validUntil]))
}

/** For JSON. */
export function limitsToJson(limits: Limits): LimitsJson {
  const models = [...limits.models].map(([glob, figures]) => [glob, scopeLimitsToJson(figures)] as const)
  return { ...scopeLimitsToJson(limits), ...models.length > 0 && { models: Object.fromEntries(models) } }
}

function scopeLimitsToJson({ requestsPerMinute, tokensPerMinute, concurrent, budget }: ScopeLimits): ScopeLimitsJson {
  return {
    ...requestsPerMinute !== null && { requests_per_minute: requestsPerMinute },
    ...tokensPerMinute !== null && { tokens_per_minute: tokensPerMinute },
    ...concurrent !== null && { concurrent },
    ...budget !== null && { budget },
  }
}

function readOldSecrets(value: unknown): OldSecret[] {
  const isSecret = (each: unknown): each is [string, number] => Array.isArray(each)
    && typeof each[0] === 'string' && /^[0-9a-f]{64}$/.test(each[0]) && typeof each[1] === 'number'
  if (Array.isArray(value) && value.every(isSecret)) {
    return value.map(([digest, validUntil]) => ({ digest: Buffer.from(digest, 'hex'), validUntil }))
  }
  throw new TypeError('its replaced secrets cannot be read')
}

function readTags(value: unknown): ReadonlyMap<string, string> {
  const tags = Object.entries(asObject(value, 'its tags'))
  const texts = tags.flatMap(([name, text]) => (typeof text === 'string' ? [[name, text] as const] : []))
  if (texts.length === tags.length) return new Map(texts)
  throw new TypeError('its tags are not texts')
}

function readModels(value: unknown): string[] {
  if (Array.isArray(value) && value.every(glob => typeof glob === 'string')) return value
  throw new TypeError('its models are no list of globs')
}

function readLimits(value: unknown): Limits {
  const { models, ...figures } = asObject(value, 'its limits')
  const byGlob = Object.entries(asObject(models ?? {}, 'its limits of models'))
  return {
    ...readScopeLimits(figures),
    models: new Map(byGlob.map(([glob, limits]) => [glob, readScopeLimits(asObject(limits, `its limits of ${glob}`))])),
  }
}

function readScopeLimits(plain: Record<string, unknown>): ScopeLimits {
  const { requests_per_minute: requests, tokens_per_minute: tokens, concurrent, budget, ...others } = plain
  // A limit that this version does not know must not be dropped silently.
  const [unknown] = Object.keys(others)
  if (unknown !== undefined) throw new TypeError(`it has a limit of an unknown kind, ${JSON.stringify(unknown)}`)
  return {
    requestsPerMinute: readCount(requests),
    tokensPerMinute: readCount(tokens),
    concurrent: readCount(concurrent),
    budget: budget === undefined ? null : readBudget(asObject(budget, 'its budget')),
  }
}

function readCount(value: unknown): number | null {
  if (value === undefined) return null
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value
  throw new TypeError('one of its limits is no whole number')
}

function readBudget({ usd, per }: Record<string, unknown>): Budget {
  const isAmount = typeof usd === 'string' && usd.length <= MAX_DIGITS && /^\d+(\.\d+)?$/.test(usd)
  if (isAmount && PERIODS.has(per)) return { usd, per: per as Budget['per'] }
  throw new TypeError('its budget is no amount of USD for a day, a month or in total')
}

function asObject(value: unknown, what: string): Record<string, unknown> {
  if (isObject(value)) return value
  throw new TypeError(`${what} cannot be read`)
}
