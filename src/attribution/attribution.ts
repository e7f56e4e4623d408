import type { IncomingHttpHeaders } from 'node:http'
import { BoundedNames } from '../base/bounded-names.ts'
import type { AttributionConfig, AttributionSource } from '../config/attribution-types.ts'
import type { InspectedBody } from '../protocols/request/inspect.ts'
import { BodyReader, MAX_VALUE, type BodyValues, type Given } from './body-values.ts'

/** The header with all tags. */
export const TAGS_HEADER = 'x-gateway-tags'
/** Stands for all values of a tag beyond its limit. */
const OTHER = 'other'
/** `name=value` pairs of the header that are read; Node bounds its length. */
const MAX_PAIRS = 50
const MAX_IGNORED = 10
const MAX_NAME = 64

/** For whom and for what a request is. */
export interface Attributed {
  /** The end user; null = unknown. */
  readonly user: string | null
  /** Sorted by name; null = none. */
  readonly tags: Readonly<Record<string, string>> | null
  /** What the client sent and does not count, with the reason, for the log. */
  readonly ignored: readonly string[]
}

type Claims = ReadonlyMap<string, string>
/** Tags by their name, and the user as `user`. */
type HookTags = ReadonlyMap<string, string>
/** Tags of the key, by name. */
type KeyTags = ReadonlyMap<string, string>
const NO_KEY_TAGS: KeyTags = new Map()
const NO_CLAIMS: Claims = new Map()
const NO_HOOK_TAGS: HookTags = new Map()

/** Paths of the claims that a configuration reads. */
export function claimsIn({ user, tags }: AttributionConfig): string[] {
  const sources = [user, ...tags.values()].flat()
  return [...new Set(sources.flatMap(source => (source.from === 'claim' ? [source.name] : [])))].sort()
}

interface Sources {
  readonly claims: Claims
  readonly headers: IncomingHttpHeaders
  readonly pairs: ReadonlyMap<string, string>
  readonly body: BodyValues
  readonly hook: HookTags
  readonly key: KeyTags
}

/** Reads users and tags of requests, as the configuration says. */
export class Attribution {
  /** Kept across reloads. */
  readonly values: BoundedNames
  readonly #config: AttributionConfig
  readonly #body: BodyReader
  /** Tags that the tags header, or the body, may set. */
  readonly #fromPairs: ReadonlySet<string>
  readonly #fromBody: ReadonlySet<string>

  /** @param values of the previous configuration */
  constructor(config: AttributionConfig, values = new BoundedNames()) {
    this.#config = config
    this.values = values
    values.keep(config.tags)
    this.#body = new BodyReader([...config.tags.keys()])
    const tagsFrom = (wanted: AttributionSource['from']) =>
      new Set(Array.from(config.tags).filter(([, sources]) => sources.some(({ from }) => from === wanted)).map(([name]) => name))
    this.#fromPairs = config.user.some(({ from }) => from === 'tags') ? tagsFrom('tags').add('user') : tagsFrom('tags')
    this.#fromBody = tagsFrom('body')
  }

  /**
   * @param body inspected with its attribution members; null = none @param claims of the caller's verified token
   * @param key the tags of the key
   * @param hook what hooks say; absent = they were not asked yet
   */
  read(
    headers: IncomingHttpHeaders, body: InspectedBody | null, claims: Claims = NO_CLAIMS, key: KeyTags = NO_KEY_TAGS, hook: HookTags = NO_HOOK_TAGS,
  ): Attributed {
    const { user: userSources, tags: tagSources, values: limit } = this.#config
    const sources: Sources = { claims, headers, pairs: pairsIn(headers[TAGS_HEADER]), body: this.#body.read(body), hook, key }
    const ignored = this.#untrusted(sources)
    const user = firstValid(userSources.flatMap(source => userOf(source, sources)), ignored)
    const tags: [string, string][] = []
    for (const [name, from] of tagSources) {
      const value = firstValid(from.flatMap(source => tagOf(source, name, sources)), ignored)
      if (value !== null) tags.push([name, this.values.admits(name, value, limit) ? value : OTHER])
    }
    return { user, tags: tags.length === 0 ? null : Object.fromEntries(tags), ignored: ignored.slice(0, MAX_IGNORED) }
  }

  /** The first required name that a request lacks; null = none. @param isFinal false = hooks can still add what they are a source of */
  missing({ user, tags }: Attributed, isFinal = true): string | null {
    return this.#config.require.find(name =>
      (this.#isUser(name) ? user === null : tags?.[name] === undefined) && (isFinal || !this.#isFromHook(name))) ?? null
  }

  /** The names of `tags` that no source of the configuration lets a hook set. */
  unread(tags: HookTags): string[] {
    return [...tags.keys()].filter(name => !this.#isFromHook(name))
  }

  #isFromHook(name: string): boolean {
    const sources = this.#isUser(name) ? this.#config.user : this.#config.tags.get(name)
    return sources?.some(({ from }) => from === 'hook') ?? false
  }

  /** How a client sends a user or a tag: `the header x-gateway-tags: project=VALUE, or metadata.project in the body`. */
  howToSend(name: string): string {
    const isUser = this.#isUser(name)
    const sources = isUser ? this.#config.user : this.#config.tags.get(name) ?? []
    return sources.map(source => {
      switch (source.from) {
        case 'tags': return `the header ${TAGS_HEADER}: ${name}=VALUE`
        case 'claim': return `a token with the claim ${source.name}`
        case 'header': return `the header ${source.name}: VALUE`
        case 'key': return 'nothing with a key that has the tag'
        case 'hook': return 'nothing: a hook of the operator gives it'
        case 'body': return isUser ? 'user, safety_identifier or metadata.user_id in the body' : `metadata.${name} or labels.${name} in the body`
      }
    }).join(', or ')
  }

  /** A tag can have the name `user` too: then `require` means the tag. */
  #isUser(name: string): boolean {
    return name === 'user' && !this.#config.tags.has(name)
  }

  /** Names what the client sent where the configuration does not read it. */
  #untrusted({ pairs, body }: Sources): string[] {
    const found: string[] = []
    for (const name of pairs.keys()) if (!this.#fromPairs.has(name)) found.push(`${TAGS_HEADER}: ${name.slice(0, MAX_NAME)}`)
    for (const [name, given] of body.tags) if (!this.#fromBody.has(name)) found.push(...given.map(({ where }) => where))
    const { user } = this.#config
    if (user.length > 0 && !user.some(({ from }) => from === 'body')) found.push(...body.user.map(({ where }) => where))
    return found
  }
}

function userOf(source: AttributionSource, { claims, headers, pairs, body, hook }: Sources): readonly Given[] {
  switch (source.from) {
    case 'tags': return pairOf('user', pairs)
    case 'claim': return claimOf(source.name, claims)
    case 'header': return headerOf(source.name, headers)
    case 'body': return body.user
    case 'hook': return hookTagOf('user', hook)
    // The configuration refuses it.
    case 'key': return []
  }
}

function tagOf(source: AttributionSource, name: string, { claims, headers, pairs, body, hook, key }: Sources): readonly Given[] {
  switch (source.from) {
    case 'tags': return pairOf(name, pairs)
    case 'claim': return claimOf(source.name, claims)
    case 'header': return headerOf(source.name, headers)
    case 'body': return body.tags.get(name) ?? []
    case 'hook': return hookTagOf(name, hook)
    case 'key': return keyTagOf(name, key)
  }
}

function keyTagOf(name: string, tags: KeyTags): readonly Given[] {
  const text = tags.get(name)
  return text === undefined ? [] : [{ where: `key: ${name}`, text }]
}

function claimOf(name: string, claims: Claims): readonly Given[] {
  const text = claims.get(name)
  return text === undefined ? [] : [{ where: `claim ${name}`, text }]
}

function hookTagOf(name: string, tags: HookTags): readonly Given[] {
  const text = tags.get(name)
  return text === undefined ? [] : [{ where: `hook: ${name}`, text }]
}

function pairOf(name: string, pairs: ReadonlyMap<string, string>): readonly Given[] {
  const text = pairs.get(name)
  return text === undefined ? [] : [{ where: `${TAGS_HEADER}: ${name}`, text }]
}

function headerOf(name: string, headers: IncomingHttpHeaders): readonly Given[] {
  const value = headers[name]
  return value === undefined ? [] : [{ where: name, text: decoded(String(value)) }]
}

/** `project=alpha, env=prod`; the last of several values counts. */
function pairsIn(header: string | string[] | undefined): ReadonlyMap<string, string> {
  const pairs = new Map<string, string>()
  if (header === undefined) return pairs
  for (const pair of decoded(String(header)).split(',', MAX_PAIRS)) {
    const at = pair.indexOf('=')
    if (at > 0) pairs.set(pair.slice(0, at).trim(), pair.slice(at + 1).trim())
  }
  return pairs
}

/** Node reads the bytes of a header as Latin-1; clients send UTF-8. */
function decoded(header: string): string {
  return /[\x80-\xff]/.test(header) ? Buffer.from(header, 'latin1').toString('utf8') : header
}

/** @param ignored gets what is not valid */
function firstValid(all: readonly Given[], ignored: string[]): string | null {
  for (const { where, text } of all) {
    const fault = faultOf(text)
    if (fault === null) return text
    ignored.push(`${where} (${fault})`)
  }
  return null
}

/** Control, invisible and broken characters, and line ends. */
const UNREADABLE = /[\p{C}\p{Zl}\p{Zp}\ufffd]/u

function faultOf(text: string | null): string | null {
  if (text === null) return `no text of at most ${MAX_VALUE} characters`
  if (text.trim() === '') return 'empty'
  if (text.length > MAX_VALUE) return `longer than ${MAX_VALUE} characters`
  return UNREADABLE.test(text) ? 'with characters that cannot be shown' : null
}
