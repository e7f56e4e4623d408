export type JsonType = 'string' | 'number' | 'object' | 'array' | 'true' | 'false' | 'null'

// The states of a scan. A state says what is expected next. White space may precede it in each state up to END.
export const VALUE = 0
/** The state after `[`. */
export const FIRST_VALUE = 1
/** The state after `{`. */
export const FIRST_KEY = 2
const KEY = 3
export const COLON = 4
export const AFTER_MEMBER = 5
export const AFTER_ELEMENT = 6
export const END = 7
export const STRING = 8
/** The state inside `\u` before the last hexadecimal digit. The states up to `FIRST_HEX` precede the other digits. */
const LAST_HEX = 9
const FIRST_HEX = 12
export const ESCAPE = 13
// States inside a number. The name is the part of the number before the next byte.
const MINUS = 14
const ZERO = 15
const INTEGER = 16
const POINT = 17
const FRACTION = 18
const EXPONENT = 19
const SIGN = 20
const POWER = 21
/** The first of the states inside `true`, `false` and `null`. Each letter after the first has its own state. */
const LITERALS = 22

// Actions, which `NEXT` can contain in place of a state.
export const SPACE = 32
/** The byte is the opening quote of a key. */
export const KEY_START = 33
/** The byte is the last byte of a literal. */
export const LITERAL_END = 34
/** The byte is the first byte after a number. */
export const NUMBER_END = 35
/** The byte closes an object or an array. */
export const CLOSE = 36
export const WRONG = 37

/** What a scan expects in each state, for error messages. */
export const EXPECTED = [
  'a value',
  "a value or ']'",
  "a key in double quotes or '}'",
  'a key in double quotes',
  "':' after the key",
  "',' or '}'",
  "',' or ']'",
  'nothing after the value',
  "the string's closing quote",
  ...Array<string>(4).fill('four hexadecimal digits after \\u'),
  'one of "\\/bfnrtu after the backslash',
  'a digit', 'a digit', 'a digit', 'a digit', 'a digit', 'a digit or a sign', 'a digit', 'a digit',
]

/** The grammar of JSON texts (RFC 8259). `NEXT[state << 8 | byte]` is the state after the byte, or an action. */
export const NEXT = new Uint8Array(SPACE << 8).fill(WRONG)

const NONZERO = '123456789'
const DIGITS = `0${NONZERO}`

for (const state of [ZERO, INTEGER, FRACTION, POWER]) NEXT.fill(NUMBER_END, state << 8, (state + 1) << 8)
for (let state = VALUE; state <= END; state++) add(state, ' \n\r\t', SPACE)
for (const state of [VALUE, FIRST_VALUE]) {
  add(state, '"', STRING)
  add(state, '{', FIRST_KEY)
  add(state, '[', FIRST_VALUE)
  add(state, '-', MINUS)
  add(state, '0', ZERO)
  add(state, NONZERO, INTEGER)
}
add(FIRST_VALUE, ']', CLOSE)
add(FIRST_KEY, '}', CLOSE)
add(FIRST_KEY, '"', KEY_START)
add(KEY, '"', KEY_START)
add(COLON, ':', VALUE)
add(AFTER_MEMBER, ',', KEY)
add(AFTER_MEMBER, '}', CLOSE)
add(AFTER_ELEMENT, ',', VALUE)
add(AFTER_ELEMENT, ']', CLOSE)
add(ESCAPE, '"\\/bfnrt', STRING)
add(ESCAPE, 'u', FIRST_HEX)
for (let state = LAST_HEX; state <= FIRST_HEX; state++) add(state, `${DIGITS}abcdefABCDEF`, state - 1)
add(MINUS, '0', ZERO)
add(MINUS, NONZERO, INTEGER)
add(INTEGER, DIGITS, INTEGER)
for (const state of [ZERO, INTEGER]) add(state, '.', POINT)
for (const state of [POINT, FRACTION]) add(state, DIGITS, FRACTION)
for (const state of [ZERO, INTEGER, FRACTION]) add(state, 'eE', EXPONENT)
add(EXPONENT, '+-', SIGN)
for (const state of [EXPONENT, SIGN, POWER]) add(state, DIGITS, POWER)
let literalState = LITERALS
for (const [first = '', ...letters] of ['true', 'false', 'null']) {
  for (const state of [VALUE, FIRST_VALUE]) add(state, first, literalState)
  for (const [n, letter] of letters.entries()) {
    EXPECTED.push(first + letters.join(''))
    add(literalState, letter, n === letters.length - 1 ? LITERAL_END : literalState + 1)
    literalState++
  }
}

function add(state: number, bytes: string, next: number): void {
  for (const byte of Buffer.from(bytes)) NEXT[state << 8 | byte] = next
}

export function valueType(byte: number): JsonType {
  switch (byte) {
    case 0x22: return 'string'
    case 0x7b: return 'object'
    case 0x5b: return 'array'
    case 0x74: return 'true'
    case 0x66: return 'false'
    case 0x6e: return 'null'
    default: return 'number'
  }
}
