import { JsonCursor, closingQuote, parseJson } from './cursor.ts'
import type { Field, ValidJson } from './json-scan.ts'
import { hexUnit } from './json-text.ts'
import type { Endpoint } from './protocol.ts'
import { tokensOfBytes } from './tokens-of-bytes.ts'
import type { Usage } from './usage.ts'

/** What a request may cost, before it is sent. */
export interface RequestEstimate {
  /** About how many tokens its input has; null where the body does not tell (a form, no body). */
  readonly inputTokens: number | null
  /** Those of them that are pictures, recordings or files. */
  readonly mediaTokens: number
  /** The most output tokens that it asks for, all choices together; null when it sets no bound. */
  readonly maxOutputTokens: number | null
  /** How many answers it asks for, each with output of its own. */
  readonly answers: number
}

/** What an image, a recording or a document counts as in an estimate: about a picture of a megapixel. */
export const MEDIA_TOKENS = 1000

/** Of sound: 16 kbit/s, below which speech is seldom packed. */
const BYTES_PER_SECOND = 2_000
const QUOTE = 0x22
const BACKSLASH = 0x5c
const LOWER_U = 0x75
/** Base64 from this length on is a picture or the like: longer than any word, shorter than any picture. */
export const MEDIA_FROM = 1024
const SAMPLE = 256
const MAX_STEPS = 4_000_000
const MAX_NUMBER_LENGTH = 20
const MAX_TOKENS = 1_000_000_000
/** More than any upstream takes at once. */
const MAX_PROMPTS = 100_000

const INPUT = Buffer.from('input')
const OUTPUT_BOUND_KEYS = ['max_completion_tokens', 'max_tokens', 'max_output_tokens', 'maxOutputTokens']
const CHOICE_COUNT_KEYS = ['n', 'best_of', 'candidateCount', 'candidate_count']
const KEYS = [...OUTPUT_BOUND_KEYS, ...CHOICE_COUNT_KEYS].map(name => ({ name, bytes: Buffer.from(name) }))

type Fields = ReadonlyMap<string, readonly Field[]>

/**
 * Estimates a request for admission, on the request path, without parsing it. Input
 * is a quarter of the bytes that are not base64, which is above the true count for
 * most prompts, plus a flat 1,000 for each picture, recording or file.
 *
 * @param json where the body's members stand; null = it is no JSON
 */
export function estimateRequest(
  endpoint: Endpoint, body: Buffer, json: ValidJson | null,
): RequestEstimate {
  if (json?.root !== 'object') {
    return { inputTokens: null, mediaTokens: 0, maxOutputTokens: null, answers: 1 }
  }
  const { all: inputTokens, media: mediaTokens } = estimateSizes(body)
  if (!endpoint.generatesTokens) return { inputTokens, mediaTokens, maxOutputTokens: 0, answers: 1 }
  const prompts = endpoint.answersEachPrompt ? countPrompts(body, json.fields) : 1
  return { inputTokens, mediaTokens, ...readOutputBound(body, json.fields, prompts) }
}

type Items = Pick<Usage, 'characters' | 'images' | 'seconds'>
const NO_ITEMS: Items = Object.freeze({ characters: null, images: null, seconds: null })

/**
 * What a request may cost beside tokens, before it is sent: the characters to be
 * spoken, the pictures that it asks for, and the seconds of a recording, of which
 * only the bytes are known.
 *
 * @param json where the body's members stand; null = it is no JSON
 * @param count of the pictures, where the body is a form that tells it
 */
export function estimateItems(
  { metering }: Endpoint, body: Buffer, json: ValidJson | null, count: number | null,
): Items {
  switch (metering) {
    case 'speech':
      return { ...NO_ITEMS, characters: readCharacters(body) }
    case 'images':
      return { ...NO_ITEMS, images: Math.max(1, count ?? readCount(body, json)) }
    case 'transcript':
      return { ...NO_ITEMS, seconds: Math.ceil(body.length / BYTES_PER_SECOND) }
    default:
      return NO_ITEMS
  }
}

/** As what input counts that a request has written to the prompt cache, which costs more; null = none is. */
export function cacheWriteField(body: Buffer): 'cacheWrite5mTokens' | 'cacheWrite1hTokens' | null {
  if (!body.includes('"cache_control"')) return null
  return body.includes('"1h"') ? 'cacheWrite1hTokens' : 'cacheWrite5mTokens'
}

/**
 * The characters that speech is made from: the code points of `input`.
 *
 * @returns null when the body does not tell
 */
export function readCharacters(body: Buffer): number | null {
  const cursor = new JsonCursor(body)
  let characters: number | null = null
  if (!cursor.beginObject()) return null
  while (cursor.nextMember()) {
    const wanted = cursor.keyIs(INPUT)
    const isText = cursor.isString()
    if (!cursor.skip() || !wanted) continue
    characters = isText ? codePoints(body, cursor.valueStart + 1, cursor.valueEnd - 1) : null
  }
  return characters
}

/**
 * About how many tokens a JSON body holds. What it takes grows with the number of
 * its strings, not with their length.
 */
export function estimateTokens(body: Buffer): number {
  return estimateSizes(body).all
}

/** The same of text alone; null where there is a picture in it, or sound. */
export function estimateTextTokens(body: Buffer): number | null {
  const { all, media } = estimateSizes(body)
  return media === 0 ? all : null
}

/** In tokens; `media` are those of `all` that are pictures, recordings or files. */
function estimateSizes(body: Buffer): { readonly all: number; readonly media: number } {
  const survey = scanStrings(body, null)
  const media = survey.media * MEDIA_TOKENS
  return { all: tokensOfBytes(body.length - survey.mediaBytes) + media, media }
}

/** What the strings of a body are: keys and values alike. */
export interface StringTotals {
  /** Bytes inside strings that are text. */
  readonly textBytes: number
  /** How many strings are base64, and their bytes. */
  readonly media: number
  readonly mediaBytes: number
}

/**
 * Finds the strings of a JSON body without parsing it. After some millions of
 * steps it gives up: the rest then counts as text.
 *
 * @param onText called with the bounds of the inside of each string that is text
 */
export function scanStrings(body: Buffer, onText: ((start: number, end: number) => void) | null): StringTotals {
  let textBytes = 0
  let media = 0
  let mediaBytes = 0
  let steps = 0
  let pos = 0
  for (; pos < body.length && steps < MAX_STEPS; pos++, steps++) {
    if (body[pos] !== QUOTE) continue
    const close = closingQuote(body, pos + 1, body.length)
    // The last string of a body that was cut has no end.
    const end = close === -1 ? body.length : close
    // Of a long string only its beginning is walked, the rest is searched.
    steps += Math.min(end - pos, 64)
    if (end - pos > MEDIA_FROM && isBase64(body, pos + 1, end)) {
      media++
      mediaBytes += end - pos
    } else {
      textBytes += end - pos - 1
      onText?.(pos + 1, end)
    }
    pos = end
  }
  return { textBytes: textBytes + Math.max(0, body.length - pos), media, mediaBytes }
}

/** Is a long string base64, bare or in a data: URL? Beginning, middle and end tell: text has spaces. */
export function isBase64(bytes: Uint8Array, start: number, end: number): boolean {
  let from = start
  if (bytes[start] === 0x64 && bytes[start + 4] === 0x3a) {
    const comma = bytes.indexOf(0x2c, start)
    if (comma !== -1 && comma - start < 200) from = comma + 1
  }
  const middle = (from + end) >> 1
  return (
    hasOnlyBase64(bytes, from, Math.min(end, from + SAMPLE)) &&
    hasOnlyBase64(bytes, middle, Math.min(end, middle + SAMPLE)) &&
    hasOnlyBase64(bytes, Math.max(from, end - SAMPLE), end)
  )
}

function hasOnlyBase64(bytes: Uint8Array, start: number, end: number): boolean {
  for (let i = start; i < end; i++) {
    const byte = bytes[i]!
    const letter = (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x7a
    // + - / = _ and the digits; a backslash because some writers escape the slash
    const other = (byte >= 0x2f && byte <= 0x39) || byte === 0x2b || byte === 0x2d || byte === 0x3d
    if (!letter && !other && byte !== 0x5f && byte !== 0x5c) return false
  }
  return true
}

function readOutputBound(
  body: Buffer, fields: Fields, prompts: number,
): Pick<RequestEstimate, 'maxOutputTokens' | 'answers'> {
  const found = readNumbers(body, fields)
  const answers = Math.min(Math.max(1, largest(found, CHOICE_COUNT_KEYS) ?? 1) * prompts, MAX_TOKENS)
  const bound = largest(found, OUTPUT_BOUND_KEYS)
  const maxOutputTokens = bound === null ? null : Math.min(bound * answers, MAX_TOKENS)
  return { maxOutputTokens, answers }
}

function largest(found: ReadonlyMap<string, number>, names: readonly string[]): number | null {
  let most: number | null = null
  for (const name of names) {
    const value = found.get(name)
    if (value !== undefined && (most === null || value > most)) most = value
  }
  return most
}

/** Of a list of prompts, as texts or as tokens, each is answered; one alone can be a list of tokens. */
function countPrompts(body: Buffer, fields: Fields): number {
  let prompts = 0
  for (const { start, end } of fields.get('prompt') ?? []) {
    const cursor = new JsonCursor(body, start, end)
    if (!cursor.beginArray()) continue
    while (cursor.nextElement()) {
      if (!cursor.isString() && !cursor.isArray()) return 1
      if (++prompts === MAX_PROMPTS) return prompts
      cursor.skip()
    }
  }
  return Math.max(1, prompts)
}

/** The `n` of a JSON body; 1 where there is none. */
function readCount(body: Buffer, json: ValidJson | null): number {
  const count = json && readNumbers(body, json.fields).get('n')
  return Math.min(count ?? 1, MAX_TOKENS)
}

/** What was noted as the body came is not walked over again: that would hold everybody else up. */
function readNumbers(body: Buffer, fields: Fields): Map<string, number> {
  const found = new Map<string, number>()
  for (const { name } of KEYS) {
    for (const { start, end } of fields.get(name) ?? []) setCount(found, name, shortValue(body, start, end))
  }
  for (const name of ['generationConfig', 'generation_config']) {
    for (const { start, end } of fields.get(name) ?? []) readConfig(found, body, start, end)
  }
  return found
}

function readConfig(found: Map<string, number>, body: Buffer, start: number, end: number): void {
  const cursor = new JsonCursor(body, start, end)
  if (!cursor.beginObject()) return
  while (cursor.nextMember()) {
    const name = KEYS.find(({ bytes }) => cursor.keyIs(bytes))?.name
    if (!cursor.skip() || name === undefined) continue
    const parsed = shortValue(body, cursor.valueStart, cursor.valueEnd)
    // In the JSON of protocol buffers a number can be a string.
    setCount(found, name, typeof parsed === 'string' && parsed !== '' ? Number(parsed) : parsed)
  }
}

function shortValue(body: Buffer, start: number, end: number): unknown {
  return end - start > MAX_NUMBER_LENGTH ? null : parseJson(body, start, end)
}

function setCount(found: Map<string, number>, name: string, value: unknown): void {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0) found.set(name, value)
}

/** Of the inside of a JSON string, escapes and all. It can be as long as a body: no string is made of it. */
function codePoints(bytes: Buffer, start: number, end: number): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let count = 0
  /** Where the second half of a pair would stand. */
  let pairedAt = -1
  for (let at = start; at < end; at++) {
    // Four bytes at a time, as in endOfPlain, while none of them is a backslash.
    for (; at <= end - 4; at += 4) {
      const four = view.getInt32(at)
      const slash = four ^ 0x5c5c5c5c
      if (((slash - 0x01010101) & ~slash & 0x80808080) !== 0) break
      const further = (four >>> 7) & ~(four >>> 6) & 0x01010101
      count += 4 - (Math.imul(further, 0x01010101) >>> 24)
    }
    if (at === end) break
    const byte = bytes[at]!
    if ((byte & 0xc0) !== 0x80) count++
    if (byte !== BACKSLASH || bytes[++at] !== LOWER_U) continue
    const unit = hexUnit(bytes, at + 1)
    if ((unit & 0xfc00) === 0xdc00 && pairedAt === at - 1) count--
    at += 4
    pairedAt = (unit & 0xfc00) === 0xd800 ? at + 1 : -1
  }
  return count
}
