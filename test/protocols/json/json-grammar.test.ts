import t from 'tap'
import { AFTER_ELEMENT, AFTER_MEMBER, CLOSE, COLON, END, ESCAPE, EXPECTED, FIRST_KEY, FIRST_VALUE, KEY_START, LITERAL_END, NEXT, NUMBER_END, SPACE, STRING, VALUE, WRONG, valueType } from '../../../src/protocols/json/json-grammar.ts'

const next = (state: number, byte: string) => NEXT[state << 8 | byte.charCodeAt(0)] ?? -1

/** Applies the bytes to a state. @returns the state after the bytes */
function follow(bytes: string, from: number): number {
  let state = from
  for (const byte of bytes) state = next(state, byte)
  return state
}

/** The bytes that a state accepts. */
const accepted = (state: number) => Array.from({ length: 256 }, (_, byte) => String.fromCharCode(byte)).filter(byte => next(state, byte) !== WRONG).sort().join('')
const of = (bytes: string) => [...bytes].sort().join('')

for (const [name, state, bytes] of [
  ['a value', VALUE, ' \n\r\t"{[-0123456789tfn'], ['the first value of a list', FIRST_VALUE, ' \n\r\t"{[-0123456789tfn]'], ['the first key', FIRST_KEY, ' \n\r\t"}'], ['a colon', COLON, ' \n\r\t:'],
  ['the end of a member', AFTER_MEMBER, ' \n\r\t,}'], ['the end of an element', AFTER_ELEMENT, ' \n\r\t,]'], ['the end of the text', END, ' \n\r\t'], ['an escape', ESCAPE, '"\\/bfnrtu'],
  ['the digits of a minus', follow('-', VALUE), '0123456789'], ['the digits of a fraction', follow('0.', VALUE), '0123456789'], ['an exponent', follow('1e', VALUE), '+-0123456789'],
  ['the digits of an exponent', follow('1e-', VALUE), '0123456789'], ['hexadecimal digits', follow('u', ESCAPE), '0123456789abcdefABCDEF'], ['the second letter of true', follow('t', VALUE), 'r'],
  ['another key', follow(',', AFTER_MEMBER), ' \n\r\t"'],
] as const) {
  t.test(`the grammar accepts only the valid bytes at ${name}`, async t => t.equal(accepted(state), of(bytes)))
}

for (const [what, bytes, from, expected] of [
  ['true', 'true', VALUE, LITERAL_END], ['false', 'false', VALUE, LITERAL_END], ['null', 'null', FIRST_VALUE, LITERAL_END], ['an escape', 'u00Ff', ESCAPE, STRING], ['a short escape', 'n', ESCAPE, STRING],
  ['a zero before a digit', '00', VALUE, NUMBER_END], ['a number', '-10.50e+07,', VALUE, NUMBER_END], ['white space', ' ', END, SPACE], ['the end of a list', ']', FIRST_VALUE, CLOSE], ['a key', '"', FIRST_KEY, KEY_START],
  ['a list without a value before its end', ']', VALUE, WRONG], ['a comma before the end of an object', ',}', AFTER_MEMBER, WRONG], ['a point without digits', '1.,', VALUE, WRONG],
] as const) {
  t.test(`the grammar is in the right state after ${what}`, async t => t.equal(follow(bytes, from), expected))
}

t.test('each state of the grammar has a text that says what is expected', async t => {
  t.equal(EXPECTED[VALUE], 'a value')
  t.equal(EXPECTED[follow('u0', ESCAPE)], 'four hexadecimal digits after \\u')
  t.equal(EXPECTED[follow('1e', VALUE)], 'a digit or a sign')
  t.equal(EXPECTED[follow('nu', VALUE)], 'null')
  t.equal(EXPECTED[follow('fal', VALUE)], 'false')
})

for (const [text, type] of [['"', 'string'], ['{', 'object'], ['[', 'array'], ['t', 'true'], ['f', 'false'], ['n', 'null'], ['-', 'number'], ['7', 'number']] as const) {
  t.test(`a value that begins with ${text} is of the type ${type}`, async t => t.equal(valueType(text.charCodeAt(0)), type))
}
