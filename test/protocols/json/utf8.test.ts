import { isUtf8 } from 'node:buffer'
import t from 'tap'
import { Utf8Check } from '../../../src/protocols/json/utf8.ts'

/** The offset of the first fault when the bytes arrive in chunks of this size; -1 = none. */
function check(bytes: Buffer, size: number): number {
  const utf8 = new Utf8Check()
  for (let at = 0; at < bytes.length; at += size) {
    const offset = utf8.push(bytes.subarray(at, at + size))
    if (offset !== -1) return offset
  }
  return utf8.end()
}

const CASES: readonly (readonly [what: string, bytes: Buffer, expected: number])[] = [
  ['nothing', Buffer.alloc(0), -1],
  ['ASCII', Buffer.from('plain text'), -1],
  ['characters of every length', Buffer.from('aé研\u{1f600}é研\u{1f600}z'), -1],
  ['the last characters of each length', Buffer.from('\u007f\u07ff\ud7ff\uffff\u{10ffff}'), -1],
  ['a byte that cannot begin a character', Buffer.from([0x61, 0xff, 0x62]), 1],
  ['a continuation byte alone', Buffer.from([0x61, 0x80]), 1],
  ['an overlong form of two bytes', Buffer.from([0x61, 0x62, 0xc0, 0xaf]), 2],
  ['an overlong form of three bytes', Buffer.from([0xe0, 0x80, 0xaf, 0x61]), 0],
  ['a surrogate', Buffer.from([0x61, 0xed, 0xa0, 0x80]), 1],
  ['more than U+10FFFF', Buffer.from([0xf4, 0x90, 0x80, 0x80]), 0],
  ['the first byte of a five-byte character', Buffer.from([0xf8, 0x88, 0x80, 0x80, 0x80]), 0],
  ['a character that is interrupted by another character', Buffer.from([0xe7, 0xa0, 0x61, 0x61]), 0],
  ['an incomplete character at the end', Buffer.concat([Buffer.from('aé'), Buffer.from([0xf0, 0x9f, 0x98])]), 3],
  ['an error after complete characters', Buffer.concat([Buffer.from('é研'), Buffer.from([0xc3, 0x28])]), 5],
]

for (const [what, bytes, expected] of CASES) {
  t.test(`UTF-8 is checked in chunks of any size: ${what}`, async t => {
    t.equal(expected === -1, isUtf8(bytes))
    for (const size of [1, 2, 3, 4, 5, 100]) t.equal(check(bytes, size), expected, `chunks of ${size}`)
  })
}

t.test('the offset of an error counts from the start of the text', async t => {
  const utf8 = new Utf8Check()
  t.equal(utf8.push(Buffer.from('abc')), -1)
  t.equal(utf8.push(Buffer.alloc(0)), -1)
  t.equal(utf8.push(Buffer.from([0xe7])), -1)
  t.equal(utf8.end(), 3)
  t.equal(utf8.push(Buffer.from([0x41])), 3)
})
