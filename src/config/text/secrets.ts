import type { Located } from './document.ts'
import { alternatives, childSchemas, schemaWords, schemasByKey, type JsonSchema } from '../json-schema.ts'
import { nearest } from '../nearest.ts'
import type { Range, SourceText } from './source-text.ts'

/** Matches names of settings and headers whose value is a credential at any place in the file. */
export const CREDENTIAL_NAME = /auth|bearer|cookie|credential|key|pass(?:$|wd|word|phrase)|secret|signature|token/i
const URL_CREDENTIALS = /(?<=:\/\/)[^/\s"']*(?=@)/g
/** Matches the credentials in URLs of stores, including passwords with unescaped special characters. */
const STORE_CREDENTIALS = /(?<=\b(?:postgres|postgresql|rediss?):\/\/)[^\s"']*(?=@)/g
const URL_QUERY = /(?<=:\/\/[^\s"'?]{0,2000}\?)[^\s"']+/g
const COMMENT = /(?<=(?:^|\s)#).+/gm
const ANCHOR = /(?<=&)[^\s,[\]{}]+/g
/** Matches a word as long as a secret. In a value, such a word may be a secret whose colon or comma is missing. */
const CREDENTIAL_LENGTH_WORD = /[\s"'][^\s"']{16}/
const WORD = /(?!-)[^\s:,{}[\]"'#]+/g
/** Matches a key that directly precedes its value. */
const KEY_BEFORE = /(?<![^\s,{])["']?([\w-]+)["']?:\s+["'[]?$/
const LONGEST_KEY = 100
export const SEPARATORS = /[^\p{L}\p{N}]+/u
/** Matches parts of a text that no person writes: letters with digits, letters of changing case, or more letters than a word has. */
const RANDOM_PART = /^(?=.*\d)(?=.*\p{L}).{8,}$|\p{Ll}\p{Lu}.*\p{Ll}\p{Lu}|^.{24,}$/u
/** Matches numbers, durations, sizes, addresses and symbols. */
export const NOT_A_SECRET = /^([\d.:]{1,21}([smhdb]|ms|kb|mb|gb)?|\W{1,3})$/

/** Ranges that may contain a secret, and ranges of comments. Each list is sorted. */
export interface SecretPlaces {
  readonly values: readonly Range[]
  /** Comments without the leading `#`. */
  readonly comments: readonly Range[]
}

/** All ranges that a message must not show, sorted and disjoint. */
export function secretRanges(source: SourceText, root: Located, top: JsonSchema): Range[] {
  const { values, comments } = secretPlaces(source, root, top)
  return mergeRanges([...values, ...comments])
}

/** Finds values that the schema marks as writeOnly, unexpected values near such values, credentials in URLs, and comments. */
export function secretPlaces(source: SourceText, root: Located, top: JsonSchema): SecretPlaces {
  const ranges: Range[] = [URL_CREDENTIALS, STORE_CREDENTIALS, URL_QUERY].flatMap(secret => matches(source.text, secret))
  const scalars: Range[] = []
  const words = schemaWords(top)
  const keys = schemasByKey(top)
  const isHarmless = ({ text }: Located): boolean => text !== null && (NOT_A_SECRET.test(text) || words.has(text))

  /** @param near true if the map or list around this value may contain secrets */
  const collect = (located: Located, name: string, schemas: readonly JsonSchema[], near: boolean): void => {
    const { text, faulty, at, origin } = located
    const isSecret = schemas.some(({ writeOnly }) => writeOnly)
    const isExpected = schemas.some(takesScalar)
    const isOdd = !isExpected && (near || CREDENTIAL_NAME.test(name)) && !isHarmless(located)
    // A key without a value may be a name, or a name and a secret without a colon between them.
    const isName = located.value === null && !faulty && words.has(name)
    if (text !== null || faulty) {
      scalars.push(at)
      const isRunIn = near && text !== null && CREDENTIAL_LENGTH_WORD.test(text)
      const isEscapedUrl = text !== null && hasUrlCredentials(text) && !text.includes(source.text.slice(at.start + 1, at.end - 1))
      if ((isSecret || isOdd || isRunIn || isEscapedUrl) && !isName) ranges.push(at, ...origin === null ? [] : [origin])
    }
    const isList = Array.isArray(located.value)
    const fitting = schemas.filter(({ type }) => type === (isList ? 'array' : 'object'))
    const holds = fitting.length === 0 ? near : fitting.some(schema => holdsSecrets(schema, top))
    const isNear = isSecret || holds
    for (const [step, child] of [...located.children, ...located.ignored]) {
      const entry = isList ? itemsOf(schemas, top) : entryOf(schemas, step, top)
      // A setting at a wrong place has the schemas of its right place.
      const inner = entry.length > 0 || isList ? entry : misplacedSchemas(step, child.text, keys)
      const isOddKey = inner.length === 0 ? !isPlainName(step) : /\s/.test(step)
      if (isNear && isOddKey && child.key) ranges.push(child.key)
      collect(child, step, inner, isNear)
    }
  }
  collect(root, '', [top], true)
  const comments = matches(source.text, COMMENT)
  // A secret that begins with & is parsed as an anchor. No alias refers to such an anchor.
  const anchors = matches(source.text, ANCHOR).filter(({ start, end }) => !source.text.includes(`*${source.text.slice(start, end)}`))
  return { values: mergeRanges([...ranges, ...startingOutside(anchors, scalars)]), comments: startingOutside(comments, scalars) }
}

/**
 * The possible secrets of a text that is not YAML. These are all words except words of the schema, short numbers and symbols, names of
 * variables, and words directly after a key whose values are not secret.
 */
export function unknownWords(source: SourceText, top: JsonSchema): Range[] {
  const { text } = source
  const words = schemaWords(top)
  const keys = schemasByKey(top)
  return matches(text, WORD).filter(({ start, end }) => {
    const word = text.slice(start, end)
    const isVariable = text.slice(start - 2, start) === '${' && /^[}:]/.test(text.slice(end, end + 1))
    if (words.has(word) || NOT_A_SECRET.test(word) || isVariable) return false
    const schemas = misplacedSchemas(KEY_BEFORE.exec(text.slice(Math.max(0, start - LONGEST_KEY), start))?.[1] ?? '', word, keys)
    return schemas.length === 0 || schemas.some(schema => holdsSecrets(schema, top))
  })
}

/** Tells whether a part of the text looks like a key or a generated password. */
export function looksRandom(text: string): boolean {
  return text.split(SEPARATORS).some(part => RANDOM_PART.test(part))
}

/** The schemas of a key at a wrong place; empty if the name or the value may be a secret. @param text the text of the value; null = none */
function misplacedSchemas(name: string, text: string | null, keys: ReadonlyMap<string, readonly JsonSchema[]>): readonly JsonSchema[] {
  return CREDENTIAL_NAME.test(name) || (text !== null && looksRandom(text)) ? [] : keys.get(name) ?? []
}

/** Tells whether the text looks like the name of a key. It may also be a secret at the place of a key. */
export function isPlainName(name: string): boolean {
  return /^([a-z][a-z_-]{0,24}|<<)$/i.test(name)
}

/** The ranges that start outside the texts. Inside a text, symbols have no special meaning. */
function startingOutside(ranges: readonly Range[], scalars: readonly Range[]): Range[] {
  const texts = mergeRanges(scalars)
  let next = 0
  return ranges.filter(({ start }) => {
    while (next < texts.length && texts[next]!.end < start) next++
    return next === texts.length || texts[next]!.start >= start
  })
}

export function maskUrls(text: string, mask: string): string {
  return text.replace(URL_CREDENTIALS, mask).replace(URL_QUERY, mask)
}

/** Tells whether the value contains credentials in a URL. The value is searched because the source may have escapes. */
function hasUrlCredentials(text: string): boolean {
  return text.search(URL_CREDENTIALS) !== -1 || text.search(URL_QUERY) !== -1
}

function takesScalar({ type, enum: values }: JsonSchema): boolean {
  return values !== undefined || [type].flat().some(name => name !== undefined && !/object|array/.test(name))
}

function holdsSecrets(schema: JsonSchema, top: JsonSchema): boolean {
  return alternatives(schema, top).some(part => part.writeOnly === true || childSchemas(part).some(([, child]) => holdsSecrets(child, top)))
}

function itemsOf(schemas: readonly JsonSchema[], top: JsonSchema): JsonSchema[] {
  return schemas.flatMap(({ items }) => (items ? alternatives(items, top) : []))
}

/** The schemas of a key. For a mistyped key, the schemas of the key that it probably means. */
function entryOf(schemas: readonly JsonSchema[], name: string, top: JsonSchema): JsonSchema[] {
  return schemas.flatMap(({ properties = {}, additionalProperties: others }) => {
    const meant = Object.hasOwn(properties, name) ? name : nearest(name, Object.keys(properties))
    const schema = meant === null ? others : properties[meant]
    return typeof schema === 'object' ? alternatives(schema, top) : []
  })
}

function matches(text: string, pattern: RegExp): Range[] {
  return Array.from(text.matchAll(pattern), ({ 0: found, index: start }) => ({ start, end: start + found.length }))
}

function mergeRanges(ranges: readonly Range[]): Range[] {
  const sorted = ranges.filter(({ start, end }) => start < end).sort((a, b) => a.start - b.start)
  const result: Range[] = []
  for (const range of sorted) {
    const last = result.at(-1)
    if (!last || range.start >= last.end) result.push(range)
    else result[result.length - 1] = { start: last.start, end: Math.max(last.end, range.end) }
  }
  return result
}
