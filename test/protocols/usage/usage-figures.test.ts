import t from 'tap'
import { Figures, MAX_COUNT, clampTo, remainder } from '../../../src/protocols/usage/usage-figures.ts'

type Read = (figures: Figures) => unknown
const CASES: readonly (readonly [what: string, read: Read, expected: unknown, suspect: boolean])[] = [
  ['a count', f => f.count(7), 7, false], ['an explicit 0', f => f.count(0), 0, false], ['an absent count', f => f.count(undefined), null, false], ['a count of null', f => f.count(null), null, false],
  ['the largest count', f => f.count(MAX_COUNT), MAX_COUNT, false], ['a larger count', f => f.count(MAX_COUNT + 1), null, true], ['a negative count', f => f.count(-1), null, true], ['half a token', f => f.count(1.5), null, true],
  ['a count as text', f => f.count('7'), null, true], ['NaN', f => f.count(NaN), null, true], ['an object', f => f.count({}), null, true], ['true', f => f.count(true), null, true],
  ['a required count', f => f.required(7), 7, false], ['a missing required count', f => f.required(undefined), null, true], ['a required count of null', f => f.required(null), null, true], ['a required 0', f => f.required(0), 0, false],
  ['a part', f => f.part(3, 7), 3, false], ['a part that is the whole', f => f.part(7, 7), 7, false], ['a part above the whole', f => f.part(8, 7), null, true], ['a part of an unknown whole', f => f.part(8, null), 8, false],
  ['an absent part', f => f.part(undefined, 7), null, false], ['an impossible part', f => f.part(-1, 7), null, true],
  ['seconds', f => f.seconds(8.470000267028809), 8.47, false], ['0 seconds', f => f.seconds(0), 0, false], ['negative seconds', f => f.seconds(-0.1), null, true], ['absent seconds', f => f.seconds(undefined), null, true],
  ['seconds as text', f => f.seconds('8'), null, true], ['endless seconds', f => f.seconds(Infinity), null, true],
  ['an object', f => f.object({ a: 1 }), { a: 1 }, false], ['an absent object', f => f.object(null), {}, false], ['a list for an object', f => f.object([]), {}, true], ['a text for an object', f => f.object('a'), {}, true],
  ['a list', f => f.array([1]), [1], false], ['an absent list', f => f.array(undefined), [], false], ['an object for a list', f => f.array({}), [], true],
]

for (const [what, read, expected, suspect] of CASES) {
  t.test(`a figure is ${suspect ? 'suspect' : 'read'}: ${what}`, async t => {
    const figures = new Figures()
    t.strictSame(read(figures), expected)
    t.equal(figures.suspect, suspect)
  })
}

t.test('one suspect count keeps the usage suspect', async t => {
  const figures = new Figures()
  figures.count(-1)
  figures.count(1)
  t.ok(figures.suspect)
})

t.test('a remainder is never below 0', async t => {
  t.strictSame([remainder(7, 3), remainder(7, null), remainder(null, 3), remainder(3, 7)], [4, 7, null, 0])
  t.strictSame([clampTo(5, 3), clampTo(3, 5), clampTo(null, 3), clampTo(5, null)], [3, 3, null, 5])
})
