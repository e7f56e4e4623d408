import { GatewayError } from './errors.ts'

/** Counts that determine how much memory a parsed JSON text needs. */
export interface JsonSize {
  /** Number of objects and lists. */
  readonly containers: number
  /** Number of members of objects. */
  readonly members: number
  /** Number of all values, including objects and lists. */
  readonly values: number
}

/** Maximum nesting of a text that is parsed, far below the limit of the stack. */
export const MAX_JSON_DEPTH = 1000
/** Maximum bytes of the objects of one text. To parse more would also block the event loop for more than 250 ms. */
export const MAX_OBJECT_BYTES = 64 * 1024 * 1024

// Upper bounds. Measured with translation: an empty message takes 600 bytes, an object of a tool 500, a key of a large object 250, a number
// 20.
const CONTAINER_BYTES = 1024
const MEMBER_BYTES = 256
const VALUE_BYTES = 32

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const BACKSLASH = 0x5c

/** Bytes that the objects of a text need, without the strings. */
export function objectBytes({ containers, members, values }: JsonSize): number {
  return containers * CONTAINER_BYTES + members * MEMBER_BYTES + values * VALUE_BYTES
}

/** Counts the values of a text without parsing it. Invalid JSON is counted as if it were valid. */
export function measureJson(text: string): JsonSize & { readonly depth: number } {
  let containers = 0
  let members = 0
  let commas = 0
  let depth = 0
  let deepest = 0
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    if (unit === QUOTE) {
      at = endOfString(text, at + 1)
    } else if (unit === COMMA) {
      commas++
    } else if (unit === COLON) {
      members++
    } else if ((unit | 0x20) === 0x7b) {
      // `{` and `[` differ only in this bit. `}` and `]` also differ only in this bit.
      containers++
      if (++depth > deepest) deepest = depth
    } else if ((unit | 0x20) === 0x7d) {
      depth--
    }
  }
  return { containers, members, values: containers + commas + 1, depth: deepest }
}

/** The index of the closing quote of the string that starts at `from`; the length of the text if the string does not end. */
function endOfString(text: string, from: number): number {
  for (let start = from; ;) {
    const quote = text.indexOf('"', start)
    if (quote === -1) return text.length
    let before = quote
    while (before > start && text.charCodeAt(before - 1) === BACKSLASH) before--
    if ((quote - before) % 2 === 0) return quote
    start = quote + 1
  }
}

/** The limit that a JSON text exceeds, so that it must not be parsed; null = none. */
export function exceededBound(text: string): string | null {
  // Each level needs two characters, so a shorter text cannot exceed the depth.
  if (text.length < 2 * MAX_JSON_DEPTH) return null
  const size = measureJson(text)
  if (size.depth > MAX_JSON_DEPTH) return `is nested more than ${MAX_JSON_DEPTH} levels deep`
  return objectBytes(size) > MAX_OBJECT_BYTES ? `has too many values (${size.values})` : null
}

/** @throws SyntaxError for invalid JSON; RangeError if the objects would need more than 64 MB, or are nested more than 1,000 levels deep */
export function parseBounded(text: string): unknown {
  const exceeded = exceededBound(text)
  if (exceeded !== null) throw new RangeError(`the JSON text ${exceeded}`)
  return JSON.parse(text)
}

/**
 * Parses a request that was scanned before, or a part of it: the JSON is valid, and not nested too deeply.
 * @throws GatewayError body_too_large
 */
export function parseRequest(text: string): unknown {
  try {
    return parseBounded(text)
  } catch (cause) {
    throw new GatewayError('body_too_large', 'the request has too many values to be changed for the upstream', { cause })
  }
}
