import t from 'tap'
import { beginsJson, endOfPlainText, hexUnit, isBlank, matchesName, withoutByteOrderMark } from '../../../src/protocols/json/json-text.ts'

t.test('plain text ends at a quote, a backslash or a control character, at any offset', async t => {
  const wrong: string[] = []
  for (let length = 0; length < 20; length++) {
    for (let byte = 0; byte < 256; byte++) {
      const bytes = Buffer.concat([Buffer.alloc(length, 0x7f), Buffer.from([byte]), Buffer.alloc(9, 0xff)])
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
      const isEnd = byte < 0x20 || byte === 0x22 || byte === 0x5c
      const expected = isEnd ? length : bytes.length
      if (endOfPlainText(bytes, view, 0, bytes.length) !== expected) wrong.push(`${byte} at ${length}`)
    }
  }
  t.strictSame(wrong, [])
})

t.test('plain text is searched only between two offsets', async t => {
  const bytes = Buffer.from('"aaaaaaaaaaaaaaaa"aaaaaaaaaaaaaaa')
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  t.equal(endOfPlainText(bytes, view, 1, 33), 17)
  t.equal(endOfPlainText(bytes, view, 1, 12), 12)
  t.equal(endOfPlainText(bytes, view, 5, 5), 5)
  t.equal(endOfPlainText(bytes, view, 18, 33), 33)
})

const NAMES: readonly (readonly [written: string, name: string, anyCase: boolean, expected: boolean])[] = [
  ['model', 'model', false, true], ['model2', 'model', false, false], ['mode', 'model', false, false], ['', 'model', false, false], ['', '', false, true],
  ['Model', 'model', false, false], ['MoDeL', 'model', true, true], ['m\\u006fdel', 'model', false, true], ['M\\u004FDEL', 'model', true, true], ['\\u004dodel', 'model', false, false],
  ['mod\\u00e9l', 'modél', false, true], ['modél', 'modél', false, true], ['\\ud83d\\ude00', '\u{1f600}', false, true], ['a\\/b', 'a/b', false, true], ['a\\nb', 'a\nb', false, true],
  ['a\\"b', 'a"b', false, true], ['a\\\\b', 'a\\b', false, true], ['[odel', '{odel', true, false], ['@', '`', true, false],
]

for (const [written, name, anyCase, expected] of NAMES) {
  t.test(`the key "${written}" ${expected ? 'spells' : 'does not spell'} ${JSON.stringify(name)}${anyCase ? ' in any case' : ''}`, async t => {
    const bytes = Buffer.from(`"${written}"`)
    t.equal(matchesName(bytes, 1, bytes.length - 1, Buffer.from(name), anyCase), expected)
  })
}

t.test('the case of names counts by default', async t => t.equal(matchesName(Buffer.from('Model'), 0, 5, Buffer.from('model')), false))

for (const [digits, expected] of [['0000', 0], ['ffff', 0xffff], ['FfAa', 0xffaa], ['00e9', 0xe9], ['00g0', -1], ['12', -1], ['/000', -1], [':000', -1], ['@000', -1], ['`000', -1]] as const) {
  t.test(`the hexadecimal digits ${digits} give ${expected}`, async t => t.equal(hexUnit(Buffer.from(digits), 0), expected))
}

for (const [text, begins, blank] of [
  ['{', true, false], ['[', true, false], ['\ufeff \n\r\t{', true, false], ['"a"', false, false], ['', false, true], [' \n\r\t', false, true], ['\ufeff', false, true], ['\f{', false, false], ['<', false, false],
] as const) {
  t.test(`a body of ${JSON.stringify(text)} ${begins ? 'begins' : 'does not begin'} like JSON and is ${blank ? '' : 'not '}blank`, async t => {
    t.strictSame([beginsJson(Buffer.from(text)), isBlank(Buffer.from(text))], [begins, blank])
  })
}

t.test('only one byte order mark is removed', async t => {
  t.equal(withoutByteOrderMark(Buffer.from('\ufeff\ufeffa')).toString(), '\ufeffa')
  t.strictSame(withoutByteOrderMark(Buffer.from([0xef, 0xbb])), Buffer.from([0xef, 0xbb]))
})
