import { hash, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import type { Group, GroupRules, Key } from '../config/key-types.ts'

/** A key with its globs of models compiled. */
export interface Identity {
  /** null = the gateway is open, and the client sent no known key. */
  readonly key: Key | null
  /** The key with the limits of its groups; absent = no key. */
  readonly limited?: LimitedHolder
  allows(model: string): boolean
  /** Like `allows`, for a name with commas, which can stand for several models. */
  allowsEach(names: string): boolean
  /** The key is limited to some models: a request without a model is refused too. */
  readonly restricted: boolean
  /** Expiry of the key or of its presented secret, ms since 1970; absent = never. */
  readonly expiresAt?: number
  /** Claims of the caller's token that attribution reads, by path; absent = a key. */
  readonly claims?: ReadonlyMap<string, string>
  /** No limit applies, not even a default; absent = false. */
  readonly unlimited?: boolean
}

/** A key and its parent groups, whose limits count. */
export interface LimitedHolder extends Pick<Key, 'name' | 'limits'> { readonly groups?: readonly GroupRules[] }

type Groups = ReadonlyMap<string, Group>
const NO_GROUPS: Groups = new Map()

type CompileGlobs = (globs: readonly string[]) => (model: string) => boolean

/** Compiles the models of a key and of its groups. */
export function identityOf(key: Key, compile: CompileGlobs, groups: Groups = NO_GROUPS): Identity {
  // The configuration may no longer have the group of a stored key: no group limits apply then.
  const chain = key.group === undefined ? [] : groups.get(key.group)?.chain ?? []
  const common = {
    key,
    limited: Object.freeze({ name: key.name, limits: key.limits, ...chain.length > 0 && { groups: chain } }),
    ...key.expiresAt !== undefined && { expiresAt: key.expiresAt },
  }
  const lists = [key, ...chain].flatMap(({ models }) => (models === null ? [] : [models]))
  if (lists.length === 0) return { ...UNRESTRICTED, ...common }
  const tests = lists.map(models => testOf(models, compile))
  return {
    ...common,
    allows: model => tests.every(test => test.allows(model)),
    allowsEach: names => tests.every(test => test.allowsEach(names)),
    restricted: true,
  }
}

function testOf(models: readonly string[], compile: CompileGlobs): Pick<Identity, 'allows' | 'allowsEach'> {
  const allows = compile(models)
  // A star matches nothing behind a comma, unless its glob contains a comma: there the comma is a part of the name.
  const withCommas = models.filter(glob => glob.includes(','))
  const whole = withCommas.length === 0 ? () => false : compile(withCommas)
  const each = (names: string) => names.split(',').every(name => allows(name.trim()))
  const allowsEach = (names: string) => allows(names) && (!names.includes(',') || whole(names) || each(names))
  return { allows, allowsEach }
}

/** Is the key, or the presented secret, expired? */
export function hasExpired({ expiresAt }: Identity, clock: Pick<Clock, 'wall'>): boolean {
  return expiresAt !== undefined && clock.wall() >= expiresAt
}

export function digestsOf({ digest, oldSecrets = [] }: Pick<Key, 'digest' | 'oldSecrets'>): Buffer[] {
  return [digest, ...oldSecrets.map(old => old.digest)]
}

/** All models are allowed. */
export const UNRESTRICTED = { allows: () => true, allowsEach: () => true, restricted: false }

export const ANONYMOUS: Identity = { ...UNRESTRICTED, key: null }

/** A change of keys outside of the configuration; blocked keys by digest. */
interface Change {
  readonly added: Iterable<Key>
  readonly removed: Iterable<Key>
  readonly blocked?: Iterable<Buffer>
  readonly unblocked?: Iterable<Buffer>
}

/** Keys outside of the configuration. */
export interface StoredKeys {
  readonly keys: readonly Key[]
  /** Digests of blocked keys, even of configured ones. */
  readonly blocked: readonly Buffer[]
}

const DIGEST_ENCODING = 'base64'

/** The SHA-256 of what a client presents. Hashing to text takes a quarter of the time of hashing to a buffer. */
export function digestText(presented: string): string {
  return hash('sha256', presented, DIGEST_ENCODING)
}

interface Entry {
  readonly digest: Buffer
  readonly identity: Identity
  /** The digest of the caller who made the key, as text: while the caller is blocked, so is the key; null = an operator's key. */
  readonly maker: string | null
}

/** A key as it acts. */
export interface ActingKey {
  readonly key: Key
  /** The digest of the caller who made it; null = an operator's key. */
  readonly maker: Buffer | null
}

/** @returns null = the configuration does not admit the key */
export type ActAs = (key: Key) => ActingKey | null

const AS_ITSELF: ActAs = key => ({ key, maker: null })

/**
 * All keys, found by the SHA-256 digest of what the client presents: the time of a look-up reveals nothing about a key, and
 * digests are compared in constant time. With ten thousand keys a look-up takes a microsecond or two longer than with one.
 *
 * A configured key wins over a stored key with the same digest. Blocked keys are left out, so look-ups need no extra check.
 */
export class Keyring {
  readonly #compile: CompileGlobs
  readonly #groups: Groups
  readonly #actAs: ActAs
  readonly #configured: Map<string, Entry>
  readonly #stored: Map<string, Entry>
  /** Blocked entries, by digest; null = no such configured or stored key now. */
  readonly #blocked = new Map<string, { configured: Entry | null; stored: Entry | null }>()

  constructor(configured: readonly Key[], compile: CompileGlobs, stored: StoredKeys = { keys: [], blocked: [] }, groups = NO_GROUPS, actAs = AS_ITSELF) {
    this.#compile = compile
    this.#actAs = actAs
    this.#groups = groups
    this.#configured = new Map(configured.flatMap(key => this.#entries(key)))
    this.#stored = new Map(stored.keys.flatMap(key => this.#entries(key)))
    for (const digest of stored.blocked) this.#block(digest)
  }

  /** The identity of the presented key, or null. */
  find(presented: string): Identity | null {
    return this.findAt(digestText(presented))
  }

  /** @param at as `digestText` returns it */
  findAt(at: string): Identity | null {
    const entry = this.#configured.get(at) ?? this.#stored.get(at)
    if (!entry || !timingSafeEqual(entry.digest, Buffer.from(at, DIGEST_ENCODING))) return null
    return entry.maker !== null && this.#blocked.has(entry.maker) ? null : entry.identity
  }

  /** Is this the digest of a blocked key or caller? */
  isBlocked(digest: Buffer): boolean {
    return this.#blocked.size > 0 && this.#blocked.has(digest.toString(DIGEST_ENCODING))
  }

  /** The identity of the key with this digest, or null. */
  findByDigest(digest: Buffer): Identity | null {
    return this.findAt(digest.toString(DIGEST_ENCODING))
  }

  /** Changes the stored keys synchronously: no look-up sees a part of the change. */
  update({ added, removed, blocked = [], unblocked = [] }: Change): void {
    // Compile all keys first: if one cannot be compiled, nothing changes.
    const entries = Array.from(added, key => this.#entries(key)).flat()
    for (const digest of unblocked) this.#unblock(digest)
    for (const key of removed) for (const digest of digestsOf(key)) this.#setStored(digest.toString(DIGEST_ENCODING), null)
    for (const [at, entry] of entries) this.#setStored(at, entry)
    for (const digest of blocked) this.#block(digest)
  }

  #setStored(at: string, entry: Entry | null): void {
    const shut = this.#blocked.get(at)
    if (shut !== undefined) shut.stored = entry
    else if (entry === null) this.#stored.delete(at)
    else this.#stored.set(at, entry)
  }

  #block(digest: Buffer): void {
    const at = digest.toString(DIGEST_ENCODING)
    if (this.#blocked.has(at)) return
    this.#blocked.set(at, { configured: this.#configured.get(at) ?? null, stored: this.#stored.get(at) ?? null })
    this.#configured.delete(at)
    this.#stored.delete(at)
  }

  #unblock(digest: Buffer): void {
    const at = digest.toString(DIGEST_ENCODING)
    const shut = this.#blocked.get(at)
    this.#blocked.delete(at)
    if (shut?.configured) this.#configured.set(at, shut.configured)
    if (shut?.stored) this.#stored.set(at, shut.stored)
  }

  /** One entry for each secret of the key. */
  #entries(stored: Key): [string, Entry][] {
    const acting = this.#actAs(stored)
    if (acting === null) return []
    const identity = identityOf(acting.key, this.#compile, this.#groups)
    const maker = acting.maker?.toString(DIGEST_ENCODING) ?? null
    const { digest, oldSecrets = [] } = stored
    const entry = (digest: Buffer, identity: Identity): [string, Entry] => [digest.toString(DIGEST_ENCODING), { digest, identity, maker }]
    return [
      entry(digest, identity),
      ...oldSecrets.map(({ digest, validUntil }) =>
        entry(digest, { ...identity, expiresAt: Math.min(validUntil, identity.expiresAt ?? Infinity) })),
    ]
  }
}
