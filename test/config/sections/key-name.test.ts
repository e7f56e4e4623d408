import t from 'tap'
import { generateKey } from '../../../src/base/secrets/key-format.ts'
import { keyNameError } from '../../../src/config/sections/key-name.ts'

const CASES: readonly (readonly [what: string, name: string, expected: RegExp | null])[] = [
  ['a plain name', 'team-a', null],
  ['one character', 'a', null],
  ['128 characters', 'a'.repeat(128), null],
  ['129 characters', 'a'.repeat(129), /^needs 1 to 128 characters/],
  ['nothing', '', /^needs 1 to 128 characters/],
  ['a line break', 'a\nb', /no control characters/],
  ['a delete character', 'a\x7f', /no control characters/],
  ['letters of any script', 'équipe 研究', null],
  ['spaces', ' \u00a0\u2003', /^needs something that can be seen/],
  ['invisible letters', '\u3164\u200b\ufeff', /^needs something that can be seen/],
  ['an invisible letter beside visible letters', 'a\u200b', null],
  ['half a character', 'a\ud83d', /lone surrogate/],
  ['a character outside the basic plane', 'a\u{1f600}', null],
  ['one dot', '.', /^cannot be one or two dots/],
  ['two dots', '..', /^cannot be one or two dots/],
  ['three dots', '...', null],
  ['a user of the console', 'console:ops', /^cannot be: names that begin with "console:"/],
  ['a key', generateKey(size => new Uint8Array(size).fill(7)), /^is a key/],
  ['a name of the prototype', '__proto__', null],
]

for (const [what, name, expected] of CASES) {
  t.test(`${what} is ${expected === null ? 'accepted' : 'refused'} as the name of a key`, async t => {
    const error = keyNameError(name)
    if (expected === null) t.equal(error, null)
    else t.match(error, expected)
  })
}
