import type { CryptoKey, JWTHeaderParameters, LocalJWKSet } from 'jose'
import type { Clock, Timer } from '../../base/clock.ts'
import { isObject } from '../../base/is-object.ts'
import { isSecureUrl } from '../../base/secure-url.ts'
import type { CallerIssuer } from '../../config/caller-types.ts'
import { fetchJson, IssuerUnavailable } from './fetch-json.ts'

/** ms for which keys are fresh, whatever the issuer says: a key that it has withdrawn must end. */
const MIN_LIFETIME = 60_000
const DEFAULT_LIFETIME = 10 * 60_000
const MAX_LIFETIME = 3_600_000
/** Keys are read again after this share of their lifetime. */
const REFRESH_SHARE = 0.8
const FIRST_RETRY_MS = 1_000
const MAX_RETRY_MS = 60_000
/** ms between two reads because of tokens with an unknown key. */
const UNKNOWN_KEY_INTERVAL = 30_000
/** Tokens with an unknown key that wait for a read; further ones are refused at once. */
const MAX_WAITING = 100
/** Keys that are tried for a token that names none. */
const MAX_KEYS = 8

/** The issuer may have published the key since its keys were read. */
export class KeyUnknown extends Error {
  override readonly name = 'KeyUnknown'
  /** Seconds until the keys can be read again. */
  readonly retryAfter: number

  /** @param waitMs until the keys can be read again */
  constructor(issuer: string, waitMs: number) {
    super(`the keys of ${issuer} were read moments ago, and do not have the key of this token`)
    this.retryAfter = Math.max(1, Math.ceil(waitMs / 1_000))
  }
}

export interface IssuerKeysOptions {
  readonly clock: Clock
  /** Called at the first failure of a series. @param why for the operator */
  onFailure(why: string): void
  onRecovered(): void
}

/** The public keys of an issuer: read in the background before they are outdated. No token with a known key waits for a read. */
export class IssuerKeys {
  readonly #issuer: Pick<CallerIssuer, 'issuer' | 'jwks' | 'jwksGrace'>
  readonly #options: IssuerKeysOptions
  readonly #stopped = new AbortController()
  #keys: LocalJWKSet | null = null
  /** On the monotonic clock, ms. */
  #usableUntil = -Infinity
  #retryAt = -Infinity
  #unknownKeyAt = -Infinity
  /** null = no read is running */
  #reading: Promise<void> | null = null
  #timer: Timer | null = null
  #failures = 0
  #waiting = 0

  constructor(issuer: Pick<CallerIssuer, 'issuer' | 'jwks' | 'jwksGrace'>, options: IssuerKeysOptions) {
    this.#issuer = issuer
    this.#options = options
  }

  /** Begins to read the keys. Later calls do nothing. */
  start(): void {
    if (this.#keys === null) void this.#read()
  }

  stop(): void {
    this.#stopped.abort()
    this.#timer?.cancel()
  }

  /**
   * @returns the keys that can have signed a token with this header; empty = the issuer does not have it
   * @throws IssuerUnavailable
   * @throws KeyUnknown the keys were read too recently to be read again
   */
  async keysFor(header: JWTHeaderParameters): Promise<readonly CryptoKey[]> {
    if (this.#current === null && (this.#reading !== null || this.#now >= this.#retryAt)) await this.#read()
    const keys = this.#current
    if (keys === null) throw new IssuerUnavailable(`no keys of ${this.#issuer.issuer}`)
    const found = await matching(keys, header)
    if (found.length > 0) return found
    if (!await this.#readForUnknownKey()) throw new KeyUnknown(this.#issuer.issuer, this.#unknownKeyAt + UNKNOWN_KEY_INTERVAL - this.#now)
    return matching(this.#current ?? keys, header)
  }

  get #now(): number {
    return this.#options.clock.monotonic()
  }

  get #current(): LocalJWKSet | null {
    return this.#now < this.#usableUntil ? this.#keys : null
  }

  /** @returns whether the keys were read */
  async #readForUnknownKey(): Promise<boolean> {
    if (this.#reading === null) {
      if (this.#now - this.#unknownKeyAt < UNKNOWN_KEY_INTERVAL) return false
      this.#unknownKeyAt = this.#now
    }
    if (this.#waiting >= MAX_WAITING) return false
    this.#waiting++
    await this.#read()
    this.#waiting--
    return true
  }

  /** One read for all that wait. Never rejects. */
  #read(): Promise<void> {
    if (this.#stopped.signal.aborted) return Promise.resolve()
    return this.#reading ??= this.#run().finally(() => { this.#reading = null })
  }

  async #run(): Promise<void> {
    this.#timer?.cancel()
    const startedAt = this.#now
    let next: number
    try {
      const { createLocalJWKSet } = await import('jose/jwks/local')
      const { value, maxAgeMs } = await fetchJson(await this.#address(), this.#stopped.signal)
      this.#keys = keySetOf(value, createLocalJWKSet)
      const lifetime = Math.max(MIN_LIFETIME, Math.min(maxAgeMs ?? DEFAULT_LIFETIME, MAX_LIFETIME))
      this.#usableUntil = startedAt + lifetime + this.#issuer.jwksGrace
      next = lifetime * REFRESH_SHARE
      if (this.#failures > 0) this.#options.onRecovered()
      this.#failures = 0
    } catch (error) {
      if (this.#stopped.signal.aborted) return
      if (this.#failures++ === 0) this.#options.onFailure(error instanceof IssuerUnavailable ? error.message : 'the keys cannot be used')
      next = Math.min(FIRST_RETRY_MS * 2 ** (this.#failures - 1), MAX_RETRY_MS)
      this.#retryAt = this.#now + next
    }
    if (!this.#stopped.signal.aborted) this.#timer = this.#options.clock.setTimeout(() => void this.#read(), next)
  }

  /** The URL of the keys. @throws IssuerUnavailable */
  async #address(): Promise<string> {
    const { issuer, jwks } = this.#issuer
    if (jwks !== null) return jwks
    // OpenID Connect Discovery 1.0, sections 4.1 and 4.3.
    const document = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
    const { value } = await fetchJson(document, this.#stopped.signal)
    if (!isObject(value)) throw new IssuerUnavailable(`${document} is no discovery document`)
    if (value['issuer'] !== issuer) throw new IssuerUnavailable(`${document} is of another issuer: ${JSON.stringify(value['issuer'])?.slice(0, 200)}`)
    const url = typeof value['jwks_uri'] === 'string' ? URL.parse(value['jwks_uri']) : null
    if (url === null || !isSecureUrl(url)) throw new IssuerUnavailable(`${document} has no https URL as jwks_uri`)
    return url.href
  }
}

function keySetOf(value: unknown, create: (jwks: { keys: never[] }) => LocalJWKSet): LocalJWKSet {
  const keys = isObject(value) ? value['keys'] : undefined
  if (!Array.isArray(keys)) throw new IssuerUnavailable('the issuer publishes no list of keys')
  // One key that cannot be read must not hide the others.
  return create({ keys: keys.filter(isObject) as never[] })
}

async function matching(keys: LocalJWKSet, header: JWTHeaderParameters): Promise<readonly CryptoKey[]> {
  try {
    return [await keys(header)]
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ERR_JWKS_MULTIPLE_MATCHING_KEYS')) return []
    const found: CryptoKey[] = []
    for await (const key of error as unknown as AsyncIterable<CryptoKey>) if (found.push(key) === MAX_KEYS) break
    return found
  }
}
