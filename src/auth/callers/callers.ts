import type { JWTHeaderParameters } from 'jose'
import type { Clock } from '../../base/clock.ts'
import { GatewayError, overloaded } from '../../base/errors.ts'
import type { CallerIssuer } from '../../config/caller-types.ts'
import type { Group } from '../../config/key-types.ts'
import { identityOf, type Identity } from '../keyring.ts'
import { callerDigest, compileIssuer, type CompiledIssuer, type CompileGlobs, type VerifiedCaller } from './caller-of.ts'
import { IssuerUnavailable } from './fetch-json.ts'
import { IssuerKeys, KeyUnknown, type IssuerKeysOptions } from './issuer-keys.ts'
import { REFUSALS, tokenError } from './token-error.ts'
import { TokenMemory } from './token-memory.ts'
import { readToken, verifyToken } from './verify.ts'

/** Longer tokens are refused unread. */
export const MAX_TOKEN_BYTES = 16 * 1024
/** About 10 MB. */
const MAX_REMEMBERED = 20_000
const MAX_REFUSED = 10_000
/** ms for which a refusal is remembered: short, because the issuer can publish the missing key. */
const REFUSED_MS = 5_000
/** Tokens that are being verified, with those that wait for the keys of their issuer. */
const MAX_PENDING = 1_000
/** Of them, those of one issuer: while its keys cannot be read, other issuers go on. */
const MAX_PENDING_OF_ISSUER = 250
/** ms after which a remembered token is verified again: the issuer may have withdrawn the key that signed it. */
const VERIFY_AGAIN_MS = 15 * 60_000
/** Signatures that are checked at the same time; files and names are looked up by the same threads. */
const MAX_CHECKS = 8

export interface CallersOptions {
  readonly clock: Clock
  /** Of the configuration. */
  readonly groups: ReadonlyMap<string, Group>
  readonly compile: CompileGlobs
  /** Paths of claims that attribution reads; absent = none. */
  readonly claims?: readonly string[]
  isBlocked(digest: Buffer): boolean
  onFailure(issuer: string, why: string): void
  onRecovered(issuer: string): void
}

interface Remembered {
  readonly caller: VerifiedCaller
  /** The text of the issuer's configuration: a caller of another one is verified again. */
  readonly issuer: string
  readonly identity: Identity
  /** ms since 1970. */
  readonly verifyAgainAt: number
  /** Whose groups the identity has. */
  readonly owner: object
}

interface Refused { readonly error: GatewayError, readonly until: number, readonly owner: object }

interface Issuer { readonly config: CompiledIssuer, readonly text: string, readonly limits: CallerIssuer['limits'], readonly keys: IssuerKeys }

/** What outlasts a reload. */
interface Memory {
  readonly verified: TokenMemory<Remembered>
  readonly refused: TokenMemory<Refused>
  /** By the text of what the keys depend on. */
  readonly keys: ReadonlyMap<string, IssuerKeys>
}

/** Verifies the tokens of callers and remembers them by their digest, so that a repeated request checks no signature. */
export class Callers {
  readonly #options: CallersOptions
  readonly #issuers: readonly Issuer[]
  readonly #byText: ReadonlyMap<string, Issuer>
  readonly #memory: Memory
  readonly #pending = new Map<string, Promise<Identity | GatewayError>>()
  /** Numbers of pending tokens by the address of their issuer. */
  readonly #pendingOf = new Map<string | null, number>()
  readonly #waiting: (() => void)[] = []
  #checks = 0
  /** Stands for this configuration, without keeping it alive. */
  readonly #owner = {}

  /** @param before keeps its keys of unchanged issuers, and remembered tokens */
  constructor(issuers: readonly CallerIssuer[], options: CallersOptions, before: Callers | null = null) {
    this.#options = options
    const kept = before === null ? null : before.#memory
    const keys = new Map<string, IssuerKeys>()
    this.#issuers = issuers.map(issuer => {
      const { name, issuer: url, jwks, jwksGrace } = issuer
      const at = JSON.stringify([url, jwks, jwksGrace])
      const own = keys.get(at) ?? kept?.keys.get(at) ?? new IssuerKeys(issuer, reporterOf(name, options))
      keys.set(at, own)
      return { config: compileIssuer(issuer, options.compile, options.claims), text: textOf(issuer, options.claims), limits: issuer.limits, keys: own }
    })
    this.#byText = new Map(this.#issuers.map(issuer => [issuer.text, issuer]))
    const { verified, refused } = kept ?? { verified: new TokenMemory<Remembered>(MAX_REMEMBERED), refused: new TokenMemory<Refused>(MAX_REFUSED) }
    this.#memory = { verified, refused, keys }
  }

  /** Begins to read the keys of the issuers. */
  start(): void {
    for (const keys of this.#memory.keys.values()) keys.start()
  }

  /** Stops what `next` does not use. */
  stop(next: Callers | null): void {
    const kept = new Set(next === null ? [] : next.#memory.keys.values())
    for (const keys of this.#memory.keys.values()) if (!kept.has(keys)) keys.stop()
  }

  /**
   * @param at the SHA-256 of the text, in base64
   * @returns the error that refuses the token; a promise only for a token that is not remembered; null = this is no token
   */
  find(text: string, at: string): Identity | GatewayError | Promise<Identity | GatewayError> | null {
    const known = this.#memory.verified.get(at)
    if (known !== undefined) {
      const found = this.#admit(known, at)
      if (found !== null) return found
    }
    const refused = this.#memory.refused.get(at)
    if (refused?.owner === this.#owner && this.#options.clock.wall() < refused.until) return refused.error
    const pending = this.#pending.get(at)
    if (pending !== undefined) return pending
    if (!text.startsWith('eyJ')) return null
    if (text.length > MAX_TOKEN_BYTES) return new GatewayError('token_signature', 'the token has more than 16 kB')
    const token = readToken(text)
    if (token === null) return null
    const issuers = this.#issuers.filter(({ config }) => config.issuer === token.issuer)
    if (issuers.length === 0) return tokenError('token_issuer', 'no entry of callers has this issuer')
    const ofIssuer = this.#pendingOf.get(token.issuer) ?? 0
    if (this.#pending.size >= MAX_PENDING || ofIssuer >= MAX_PENDING_OF_ISSUER) return overloaded('too many tokens are being verified')
    this.#pendingOf.set(token.issuer, ofIssuer + 1)
    const verifying = this.#verify(text, at, token.header, issuers).finally(() => this.#end(at, token.issuer))
    this.#pending.set(at, verifying)
    return verifying
  }

  #end(at: string, issuer: string | null): void {
    this.#pending.delete(at)
    const left = (this.#pendingOf.get(issuer) ?? 1) - 1
    if (left === 0) this.#pendingOf.delete(issuer)
    else this.#pendingOf.set(issuer, left)
  }

  /** @returns null = the issuer has changed, or the token has to be verified again */
  #admit(known: Remembered, at: string): Identity | GatewayError | null {
    const { clock, isBlocked } = this.#options
    const now = clock.wall()
    const { name, until } = known.caller
    if (now >= until) {
      this.#memory.verified.delete(at)
      return tokenError('token_expired', name)
    }
    if (now >= known.verifyAgainAt) return null
    const current = known.owner === this.#owner ? known : this.#adopt(known, at)
    if (current === null) return null
    const { key } = current.identity
    return key !== null && isBlocked(key.digest) ? blocked(name) : current.identity
  }

  /** Gives a caller that was verified before a reload the groups and limits of this configuration. */
  #adopt({ issuer: text, verifyAgainAt, caller }: Remembered, at: string): Remembered | null {
    const issuer = this.#byText.get(text)
    return issuer === undefined ? null : this.#remember(caller, issuer, at, verifyAgainAt)
  }

  #remember(caller: VerifiedCaller, { text, limits }: Issuer, at: string, verifyAgainAt: number): Remembered {
    const { name, group, claims, until } = caller
    const key = { name, digest: callerDigest(name), models: null, limits, expiresAt: until, ...group !== null && { group } }
    const identity = { ...identityOf(key, this.#options.compile, this.#options.groups), claims }
    const remembered = { caller, issuer: text, identity, owner: this.#owner, verifyAgainAt }
    this.#memory.verified.set(at, remembered)
    return remembered
  }

  async #verify(text: string, at: string, header: JWTHeaderParameters, issuers: readonly Issuer[]): Promise<Identity | GatewayError> {
    let refusal: GatewayError | null = null
    for (const issuer of issuers) {
      try {
        const caller = await this.#verifyFor(issuer, text, header)
        const found = this.#admit(this.#remember(caller, issuer, at, this.#options.clock.wall() + VERIFY_AGAIN_MS), at)
        if (found !== null) return found
      } catch (error) {
        refusal = furthest(refusal, isUnavailable(error) ? unavailable(error) : error)
      }
    }
    const error = refusal ?? tokenError('token_issuer', 'no entry of callers has this issuer')
    if (error.code !== 'token_keys_unavailable') this.#memory.refused.set(at, { error, until: this.#options.clock.wall() + REFUSED_MS, owner: this.#owner })
    return error
  }

  async #verifyFor({ config, keys }: Issuer, text: string, header: JWTHeaderParameters): Promise<VerifiedCaller> {
    // Otherwise a token could make the gateway read keys for an algorithm that it never accepts.
    if (!config.algorithms.includes(String(header.alg))) throw tokenError('token_signature', `${config.name}: the algorithm ${String(header.alg).slice(0, 32)} is not accepted`)
    const candidates = await keys.keysFor(header)
    if (this.#checks >= MAX_CHECKS) await new Promise<void>(resolve => this.#waiting.push(resolve))
    this.#checks++
    try {
      return await verifyToken(text, candidates, config, this.#options.clock.wall())
    } finally {
      this.#checks--
      this.#waiting.shift()?.()
    }
  }
}

function reporterOf(name: string, { clock, onFailure, onRecovered }: CallersOptions): IssuerKeysOptions {
  return { clock, onFailure: why => onFailure(name, why), onRecovered: () => onRecovered(name) }
}

/** What callers are verified by: without limits and keys, which are read from the current configuration. */
export function textOf({ limits: _limits, keys: _keys, ...issuer }: CallerIssuer, claims: readonly string[] = []): string {
  return JSON.stringify([issuer, claims], (_, value: unknown) => (value instanceof Map ? [...value as Map<unknown, unknown>] : value))
}

function blocked(name: string): GatewayError {
  return new GatewayError('key_revoked', 'the caller is blocked', {
    headers: { 'x-should-retry': 'false', 'www-authenticate': 'Bearer' }, cause: new Error(name),
  })
}

function isUnavailable(error: unknown): error is IssuerUnavailable | KeyUnknown {
  return error instanceof IssuerUnavailable || error instanceof KeyUnknown
}

function unavailable(cause: IssuerUnavailable | KeyUnknown): GatewayError {
  const seconds = cause instanceof KeyUnknown ? cause.retryAfter : 5
  return new GatewayError('token_keys_unavailable', 'the token cannot be verified now; try again soon', { headers: { 'retry-after': `${seconds}` }, cause })
}

/** The refusal of the issuer that the token fits best. @throws what is no refusal */
function furthest(before: GatewayError | null, error: unknown): GatewayError {
  if (!(error instanceof GatewayError)) throw error
  const rank = ({ code }: GatewayError) => REFUSALS.findIndex(each => each === code)
  return before === null || rank(error) > rank(before) ? error : before
}
