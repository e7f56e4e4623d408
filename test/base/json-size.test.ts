import t from 'tap'
import { jsonPath } from '../../src/protocols/json/json-path.ts'
import { scanJson } from '../../src/protocols/json/json-scan.ts'
import { measureJson, parseBounded } from '../../src/base/json-size.ts'

const TEXTS: readonly (readonly [text: string, size: object])[] = [
  ['0', { containers: 0, members: 0, values: 1 }],
  ['"a:,{["', { containers: 0, members: 0, values: 1 }],
  ['[0,1,2]', { containers: 1, members: 0, values: 4 }],
  ['{"a":1,"b":[{"c":2},"\\"}\\\\",null]}', { containers: 3, members: 3, values: 7 }],
]

for (const [text, size] of TEXTS) {
  t.test(`measureJson counts the values of ${text}`, async t => {
    t.match(measureJson(text), size)
    t.match(scanJson(Buffer.from(text), []), { ok: true, size }, 'scanJson returns the same counts')
  })
}

t.test('measureJson counts an empty object or array as two values', async t => {
  t.match(measureJson('[{},[]]'), { containers: 3, members: 0, values: 5 })
})

const REFUSED: Readonly<Record<string, string>> = {
  'objects': `[${'{},'.repeat(200_000)}{}]`,
  'lists': `[${'[],'.repeat(200_000)}[]]`,
  'members': `{"a":1${',"a":1'.repeat(500_000)}}`,
  'numbers': `[${'0,'.repeat(5_000_000)}0]`,
  'levels': '['.repeat(1_001) + ']'.repeat(1_001),
  'levels that do not end': '{"a":'.repeat(1_001),
}

for (const [what, text] of Object.entries(REFUSED)) {
  t.test(`a text with too many ${what} is refused`, async t => {
    t.throws(() => parseBounded(text), RangeError)
  })
}

t.test('a large text with few values is parsed', async t => {
  const picture = 'A'.repeat(20_000_000)
  t.equal((parseBounded(`{"data":"${picture}"}`) as { readonly data: string }).data.length, picture.length)
  t.equal((parseBounded(`[${'3.25,'.repeat(300_000)}0]`) as unknown[]).length, 300_001)
  t.ok(parseBounded('['.repeat(1_000) + ']'.repeat(1_000)))
  t.throws(() => parseBounded('{"a":'), SyntaxError)
})

const PATHS: readonly (readonly [text: string, path: string])[] = [
  ['{"a":1,"b":{"c":[0,[],', 'b.c[2]'],
  ['{"a":{"x":[1]},"messages":[{},{"content":"}]:,\\""},{"content":', 'messages[2].content'],
  ['[[', '[0][0]'],
  ['{"a":'.repeat(20), 'a.a.a.a.a.a'],
]

for (const [text, path] of PATHS) {
  t.test(`jsonPath finds the path at the end of ${text}`, async t => {
    t.equal(jsonPath(Buffer.from(text), text.length), path)
  })
}
