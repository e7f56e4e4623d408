import t from 'tap'
import { jsonPath } from '../../../src/protocols/json/json-path.ts'

/** The offset is the place of ^, which is removed from the text. */
const CASES: readonly (readonly [text: string, expected: string])[] = [
  ['^{"a":1}', ''],
  ['{"a":^1}', 'a'],
  ['{"a":1,"b":^2}', 'b'],
  ['{"tools":[{"x":1},{"function":{"parameters":^{}}}]}', 'tools[1].function.parameters'],
  ['[[1,2],[3,^4]]', '[1][1]'],
  ['{"a":{"b":1},"c":^2}', 'c'],
  ['{"a":["x,y","{[",^1]}', 'a[2]'],
  ['{"a\\"b":{"c":^1}}', 'a\\"b.c'],
  ['{"a":"\\\\","b":^1}', 'b'],
  ['{ "a" : [ 1 , ^2 ] }', 'a[1]'],
  ['{"a":{"b":{"c":{"d":{"e":{"f":{"g":^1}}}}}}}', 'a.b.c.d.e.f'],
  [`{"${'x'.repeat(100)}":^1}`, 'x'.repeat(64)],
  ['{"é研":[^1]}', 'é研[0]'],
]

for (const [marked, expected] of CASES) {
  t.test(`the path of a value: ${expected || 'the root'}`, async t => {
    const [before = '', after = ''] = marked.split('^')
    t.equal(jsonPath(Buffer.from(before + after), Buffer.byteLength(before)), expected)
  })
}
