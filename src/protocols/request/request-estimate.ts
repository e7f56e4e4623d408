import { JsonCursor, closingQuote } from '../json/cursor.ts'
import type { Field, ValidJson } from '../json/json-scan.ts'
import { hexUnit, matchesName } from '../json/json-text.ts'
import { MAX_TOKENS, readOutputBounds, type OutputBounds } from './output-bounds.ts'
import type { Endpoint } from '../endpoint/protocol.ts'
import { tokensOfBytes } from '../usage/tokens-of-bytes.ts'
import type { Usage } from '../usage/usage.ts'
import { WatchedKeys } from '../json/watched-keys.ts'

/** Usage of a request, estimated before it is sent. */
export interface RequestEstimate {
  /** null = unknown from the body (a form, or no body). */
  readonly inputTokens: number | null
  /** The part of `inputTokens` that is for images, recordings and files. */
  readonly mediaTokens: number
  /** null = the request generates no output, or the output is unknown from the body. */
  readonly output: OutputBounds | null
}

/** Estimated tokens of an image, a recording or a document. An image of one megapixel has about this number. */
export const MEDIA_TOKENS = 1000

/** Bytes per second of audio at 16 kbit/s. Speech is seldom compressed more. */
const BYTES_PER_SECOND = 2_000
const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const BACKSLASH = 0x5c
const LOWER_U = 0x75
/** Minimum bytes of base64 that counts as media. No word is that long, and no image is shorter. */
export const MEDIA_FROM = 1024
const SAMPLE = 256
/**
 * Members that contain an image, a recording, a file, or data that only a provider reads. A model reads base64 in other members as text.
 */
const MEDIA_MEMBER = /(?:data|url|uri|b64_json|bytes|audio|image|video|file|embedding|signature|encrypted_content)$/i
/** Values of `type` and names of members that mark an image, a recording or a file. */
export const MEDIA_MARKS = {
  types: ['image', 'image_url', 'input_image', 'input_audio', 'audio', 'file', 'input_file', 'video', 'video_url', 'base64', 'url', 'redacted_thinking'],
  members: ['inlineData', 'inline_data', 'fileData', 'file_data'],
} as const
const MARKS = new WatchedKeys([...MEDIA_MARKS.types, ...MEDIA_MARKS.members])
const MEMBER_MARKS: ReadonlySet<string> = new Set(MEDIA_MARKS.members)
const TYPE = new WatchedKeys(['type'])
const KINDS = new WatchedKeys(['type', 'media_type', 'mediaType', 'mime_type', 'mimeType'])
/** Media types that a model does not read as plain text. */
const MEDIA_TYPE = /^(?:image|audio|video)\/|^application\/(?:pdf|msword|octet-stream|zip|vnd\.)/
/** Names with more bytes are not read. */
const MAX_NAME = 64
const MAX_STEPS = 4_000_000
/** No upstream accepts more prompts at once. */
const MAX_PROMPTS = 100_000

const INPUT = Buffer.from('input')
const TEXT = Buffer.from('text')
type Fields = ReadonlyMap<string, readonly Field[]>

/**
 * Estimates a request for admission without parsing the body, because this runs on the request path. The input is a quarter of the bytes
 * outside media, which is above the true count for most prompts, plus 1,000 for each image, recording or file.
 * @param json bounds of the body's members; null = the body is not JSON
 */
export function estimateRequest(endpoint: Endpoint, body: Buffer, json: ValidJson | null): RequestEstimate {
  if (json?.root !== 'object') return { inputTokens: null, mediaTokens: 0, output: null }
  const { all: inputTokens, media: mediaTokens } = estimateSizes(body)
  if (!endpoint.generatesTokens) return { inputTokens, mediaTokens, output: null }
  const output = readOutputBounds(endpoint, body, json.fields)
  if (!endpoint.respondsToEachPrompt) return { inputTokens, mediaTokens, output }
  return { inputTokens, mediaTokens, output: { ...output, responses: output.responses * countPrompts(body, json.fields) } }
}

/** Tokens of an image of the largest size in high quality (6,240), plus three partial images (100 each). Source: OpenAI's documentation. */
const IMAGE_OUTPUT_TOKENS = 6_540

/** Output tokens of a response without a limit. @param assumed the operator's `billing.assumed_output` */
export function unboundedOutput({ metering, generatesTokens }: Endpoint, assumed: number): number {
  if (!generatesTokens) return 0
  return metering === 'images' ? Math.max(assumed, IMAGE_OUTPUT_TOKENS) : assumed
}

/** Maximum output tokens of all responses to a request. @param assumed tokens of a response without a limit */
export function maxOutputTokens({ bound, other, thinking, responses }: OutputBounds, assumed: number): number {
  return Math.min((Math.max(bound ?? assumed, other) + thinking) * responses, MAX_TOKENS)
}

type Items = Pick<Usage, 'characters' | 'images' | 'seconds'>
const NO_ITEMS: Items = Object.freeze({ characters: null, images: null, seconds: null })

/** Estimates usage other than tokens: characters of speech, number of images, or seconds of a recording. @param count number of images */
export function estimateItems({ metering }: Endpoint, body: Buffer, count: number): Items {
  switch (metering) {
    case 'speech': return { ...NO_ITEMS, characters: readCharacters(body) }
    case 'images': return { ...NO_ITEMS, images: count }
    case 'transcript': return { ...NO_ITEMS, seconds: Math.ceil(body.length / BYTES_PER_SECOND) }
    default: return NO_ITEMS
  }
}

/**
 * The usage field for the input of a request that writes to the cache, because such input costs more; null = the request does not write to
 * it.
 */
export function cacheWriteField(body: Buffer): 'cacheWrite5mTokens' | 'cacheWrite1hTokens' | null {
  const isEscaped = hasEscapedLetter(body)
  if (!isEscaped && !body.includes('"cache_control"')) return null
  return isEscaped || body.includes('"1h"') ? 'cacheWrite1hTokens' : 'cacheWrite5mTokens'
}

/** Tells whether the body has an escaped letter. Names can contain escapes: `cache_contro\u006c`. */
function hasEscapedLetter(body: Buffer): boolean {
  for (let at = body.indexOf('\\u00'); at !== -1; at = body.indexOf('\\u00', at + 1)) {
    const digit = body[at + 4]!
    if (digit >= 0x34 && digit <= 0x37) return true
  }
  return false
}

/** Number of characters to speak: the code points of `input`; null = unknown from the body. */
export function readCharacters(body: Buffer): number | null {
  const cursor = new JsonCursor(body)
  let characters: number | null = null
  if (!cursor.beginObject()) return null
  while (cursor.nextMember()) {
    const wanted = cursor.keyIs(INPUT)
    const isText = cursor.isString()
    if (!cursor.skip() || !wanted) continue
    // If `input` is repeated, parsers use the first or the last value, so count the longest value.
    if (isText) characters = Math.max(characters ?? 0, codePoints(body, cursor.valueStart + 1, cursor.valueEnd - 1))
  }
  return characters
}

/** Estimates the tokens of a JSON body. The time grows with the number of strings, not with their length. */
export function estimateTokens(body: Buffer): number {
  return estimateSizes(body).all
}

/** Estimates the tokens of a JSON body that has only text; null = the body has an image, a recording or a file. */
export function estimateTextTokens(body: Buffer): number | null {
  const { all, media } = estimateSizes(body)
  return media === 0 ? all : null
}

/** Estimated tokens. `media` is the part of `all` that is for images, recordings and files. */
function estimateSizes(body: Buffer): { readonly all: number; readonly media: number } {
  const survey = scanStrings(body, null)
  // Use the larger count: one image may be counted in both, because its base64 is often inside an object that `marked` counts.
  const media = Math.max(survey.media, survey.marked) * MEDIA_TOKENS
  // A prompt may be a list of token numbers, each with two or more bytes. In a list of short strings, quotes and comma of each string are a
  // token.
  const text = Math.max(tokensOfBytes(body.length - survey.mediaBytes), survey.commas + survey.strings)
  return { all: text + media, media }
}

/** Counts of the strings in a body. Both keys and values are strings. */
export interface StringTotals {
  /** Bytes of the strings that are text. */
  readonly textBytes: number
  /** Number of the strings that are base64 of media, and their bytes. */
  readonly media: number
  readonly mediaBytes: number
  /** Number of places that mark an image, a recording or a file of any size. */
  readonly marked: number
  readonly strings: number
  readonly commas: number
}

/**
 * Finds the strings of a JSON body without parsing it. After `MAX_STEPS` steps, the rest of the body counts as text.
 * @param onText called with the bounds of the content of each string that is text
 */
export function scanStrings(body: Buffer, onText: ((start: number, end: number) => void) | null): StringTotals {
  let textBytes = 0
  let media = 0
  let mediaBytes = 0
  let marked = 0
  let strings = 0
  let commas = 0
  let steps = 0
  let pos = 0
  /** Bounds of the content of the previous string, which may be the name of a member. */
  let nameStart = 0
  let nameEnd = 0
  let depth = 0
  /** For each open object: true if a member says that the object's data is text. */
  const isText = [false]
  /** Base64 in the open objects. A later member of the object may still say that the data is text. */
  const pending: { readonly depth: number, readonly start: number, readonly end: number }[] = []
  const settleObject = () => {
    while (pending.at(-1)?.depth === depth) {
      const { start, end } = pending.pop()!
      if (isText[depth]) {
        textBytes += end - start
        onText?.(start, end)
      } else {
        media++
        mediaBytes += end - start + 1
      }
    }
  }
  for (; pos < body.length && steps < MAX_STEPS; pos++, steps++) {
    const byte = body[pos]
    if (byte === COMMA) commas++
    else if (byte === OPEN_BRACE) isText[++depth] = false
    else if (byte === CLOSE_BRACE && depth > 0) {
      if (pending.length > 0) settleObject()
      depth--
    }
    if (byte !== QUOTE) continue
    strings++
    const close = closingQuote(body, pos + 1, body.length)
    // If the body is cut, its last string has no closing quote.
    const end = close === -1 ? body.length : close
    // Long strings are searched fast, so a string counts as at most 64 steps.
    steps += Math.min(end - pos, 64)
    if (end - pos > MEDIA_FROM && isMediaMember(body, nameStart, nameEnd, pos) && isMedia(body, pos + 1, end)) {
      pending.push({ depth, start: pos + 1, end })
    } else {
      textBytes += end - pos - 1
      const mark = end - pos <= MARKS.longest ? MARKS.find(body, pos + 1, end) : null
      if (mark !== null && isMark(mark, body, nameStart, nameEnd)) marked++
      if (end - pos <= MAX_NAME && saysText(body, nameStart, nameEnd, pos, end)) isText[depth] = true
      onText?.(pos + 1, end)
    }
    nameStart = pos + 1
    nameEnd = end
    pos = end
  }
  for (; depth >= 0; depth--) settleObject()
  return { textBytes: textBytes + Math.max(0, body.length - pos), media, mediaBytes, marked, strings, commas }
}

/** Tells whether a member says that its object contains text: `"type": "text"`, or a media type of text. */
function saysText(body: Buffer, nameStart: number, nameEnd: number, pos: number, end: number): boolean {
  const last = body[nameEnd - 1]
  // Fast check: the names end in `e`, which may be escaped as `\u0065`.
  if (last !== 0x65 && last !== 0x35) return false
  const name = KINDS.find(body, nameStart, nameEnd)
  if (name === null) return false
  if (name === 'type') return matchesName(body, pos + 1, end, TEXT, true)
  return !MEDIA_TYPE.test((JSON.parse(`"${body.toString('latin1', pos + 1, end)}"`) as string).toLowerCase())
}

/** Tells whether a `type`, or the name of a member, marks data that a model does not read as text. */
function isMark(mark: string, body: Buffer, nameStart: number, nameEnd: number): boolean {
  return MEMBER_MARKS.has(mark) || TYPE.find(body, nameStart, nameEnd) !== null
}

/** Tells whether `MEDIA_MEMBER` matches the string's member. Between name and value there is only a colon and white space. */
function isMediaMember(body: Buffer, nameStart: number, nameEnd: number, valueStart: number): boolean {
  if (nameEnd - nameStart > MAX_NAME || valueStart - nameEnd > MAX_NAME) return false
  return body.subarray(nameEnd + 1, valueStart).includes(COLON) && MEDIA_MEMBER.test(body.toString('latin1', nameStart, nameEnd))
}

/** Tells whether a long string is base64 of media. A data: URL must have a media type that `MEDIA_TYPE` matches. */
function isMedia(body: Buffer, start: number, end: number): boolean {
  const isUrl = body[start] === 0x64 && body[start + 4] === 0x3a
  return isBase64(body, start, end) && (!isUrl || MEDIA_TYPE.test(body.toString('latin1', start + 5, start + 64).toLowerCase()))
}

/**
 * Tells whether a long string is base64, bare or in a data: URL. Tests samples from the beginning, middle and end, because text has spaces.
 */
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
    // The digits and + - / = _ are base64. A backslash is allowed because some clients escape the slash.
    const other = (byte >= 0x2f && byte <= 0x39) || byte === 0x2b || byte === 0x2d || byte === 0x3d
    if (!letter && !other && byte !== 0x5f && byte !== 0x5c) return false
  }
  return true
}

/**
 * Counts the prompts that get a response. Each element of a list is a prompt; a list that begins with a number is one prompt of token
 * numbers.
 */
function countPrompts(body: Buffer, fields: Fields): number {
  let prompts = 0
  for (const { start, end } of fields.get('prompt') ?? []) {
    const cursor = new JsonCursor(body, start, end)
    if (!cursor.beginArray()) continue
    for (let isFirst = true; cursor.nextElement(); isFirst = false) {
      cursor.skip()
      if (isFirst && startsNumber(body[cursor.valueStart]!)) break
      if (++prompts === MAX_PROMPTS) return prompts
    }
  }
  return Math.max(1, prompts)
}

function startsNumber(byte: number): boolean {
  return byte === 0x2d || (byte >= 0x30 && byte <= 0x39)
}

/** Counts the code points of a JSON string with escapes. Does not decode the string, because it can be as long as a body. */
function codePoints(bytes: Buffer, start: number, end: number): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let count = 0
  /** The offset at which the second half of a surrogate pair is expected. */
  let pairedAt = -1
  for (let at = start; at < end; at++) {
    // Tests four bytes at a time, as in `endOfPlainText`, as long as no byte is a backslash.
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
