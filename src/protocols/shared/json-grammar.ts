import type { JsonType } from './json-members.ts'

/**
 * The grammar of JSON texts (RFC 8259) as states of a scan: what may come next.
 * White space may stand before all of them up to END.
 */
export const VALUE = 0
/** After `[`. */
export const FIRST_VALUE = 1
/** After `{`. */
export const FIRST_KEY = 2
export const KEY = 3
export const COLON = 4
/** After a value inside a container. */
export const SEPARATOR = 5
/** After the root value. */
export const END = 6
export const STRING = 7
export const ESCAPE = 8
export const HEX = 9
export const LITERAL = 10
/** A number's first byte; then inside a number, after what the name says. */
export const NUMBER = 11
export const MINUS = 12
export const ZERO = 13
export const INTEGER = 14
export const POINT = 15
export const FRACTION = 16
export const EXPONENT = 17
export const SIGN = 18
export const POWER = 19

/** In place of a state: the byte does not fit. */
export const WRONG = -1
/** In place of a state: one container too many. */
export const TOO_DEEP = -2

/** How deep objects and arrays may nest: the one thing refused that JSON.parse takes. */
export const MAX_DEPTH = 10_000

/** The type of the value that starts with `byte`, or null when none does. */
export function valueType(byte: number): JsonType | null {
  switch (byte) {
    case 0x22: return 'string'
    case 0x7b: return 'object'
    case 0x5b: return 'array'
    case 0x74: return 'true'
    case 0x66: return 'false'
    case 0x6e: return 'null'
    default: return byte === 0x2d || isDigit(byte) ? 'number' : null
  }
}

/** The state after `byte` inside a number, or WRONG when the byte is not part of it. */
export function numberState(state: number, byte: number): number {
  switch (state) {
    case INTEGER:
      if (isDigit(byte)) return INTEGER
      return byte === 0x2e ? POINT : isExponent(byte) ? EXPONENT : WRONG
    case ZERO:
      return byte === 0x2e ? POINT : isExponent(byte) ? EXPONENT : WRONG
    case FRACTION:
      if (isDigit(byte)) return FRACTION
      return isExponent(byte) ? EXPONENT : WRONG
    case NUMBER:
    case MINUS:
      if (isDigit(byte)) return byte === 0x30 ? ZERO : INTEGER
      return byte === 0x2d && state === NUMBER ? MINUS : WRONG
    case POINT:
      return isDigit(byte) ? FRACTION : WRONG
    case EXPONENT:
      return byte === 0x2b || byte === 0x2d ? SIGN : isDigit(byte) ? POWER : WRONG
    default:
      return isDigit(byte) ? POWER : WRONG
  }
}

/** A number may end in this state. */
export function isWholeNumber(state: number): boolean {
  return state === ZERO || state === INTEGER || state === FRACTION || state === POWER
}

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39
}

function isExponent(byte: number): boolean {
  return byte === 0x65 || byte === 0x45
}

/** What a backslash may stand before, besides `u`. */
export function isEscapable(byte: number): boolean {
  return byte === 0x6e || byte === 0x22 || byte === 0x5c || byte === 0x2f || byte === 0x74
    || byte === 0x72 || byte === 0x62 || byte === 0x66
}

export function isHexDigit(byte: number): boolean {
  const letter = byte | 0x20
  return isDigit(byte) || (letter >= 0x61 && letter <= 0x66)
}

/** What the scan expects in `state`, for a message. `literal` is the one being read. */
export function expectation(state: number, inObject: boolean, literal: string): string {
  switch (state) {
    case VALUE: return 'a value'
    case FIRST_VALUE: return "a value or ']'"
    case FIRST_KEY: return "a key in double quotes or '}'"
    case KEY: return 'a key in double quotes'
    case COLON: return "':' after the key"
    case SEPARATOR: return inObject ? "',' or '}'" : "',' or ']'"
    case END: return 'nothing after the value'
    case STRING: return "the string's closing quote"
    case ESCAPE: return 'one of "\\/bfnrtu after the backslash'
    case HEX: return 'four hexadecimal digits after \\u'
    case LITERAL: return literal
    case EXPONENT: return 'a digit or a sign'
    default: return 'a digit'
  }
}
