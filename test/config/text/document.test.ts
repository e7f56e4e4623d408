import t from 'tap'
import { locate, parseYaml } from '../../../src/config/text/document.ts'
import { SourceText } from '../../../src/config/text/source-text.ts'

const parse = (text: string, env = {}) => parseYaml(new SourceText(text), env)
const valueOf = (text: string, env = {}) => JSON.stringify(parse(text, env).root.value)
const faultsOf = (text: string) => {
  const { faults } = parse(text)
  return faults.map(({ offset, message }) => [offset, message])
}

for (const [text, expected] of [
  ['', 'null'], ['a: 1\nb: [x, 2, true, null]\n', '{"a":1,"b":["x",2,true,null]}'], ['a: 0x10', '{"a":16}'], ['a: yes', '{"a":"yes"}'], ['a: "1"', '{"a":"1"}'], ['a:\nb: ~', '{"a":null,"b":null}'],
  ['base: &b { x: 1, y: 2 }\nc: { <<: *b, y: 3 }', '{"base":{"x":1,"y":2},"c":{"y":3,"x":1}}'],
  ['a: &a { x: 1 }\nb: &b { x: 2, y: 2 }\nc: { <<: [*a, *b] }', '{"a":{"x":1},"b":{"x":2,"y":2},"c":{"x":1,"y":2}}'],
  ['"<<": 1', '{"<<":1}'],
] as const) {
  t.test(`YAML is read: ${JSON.stringify(text)}`, async t => {
    t.equal(valueOf(text), expected)
    t.strictSame(faultsOf(text), [])
  })
}

for (const [text, offset, message] of [
  ['a: 1\na: 2', 5, 'this key stands here a second time; the first is on line 1'],
  ['? [x]\n: 1', 2, 'a key must be a name'],
  ['"": 1', 0, 'a key must be a name'],
  ['a: *x', 3, /^no anchor of this name stands above/],
  ['a: &x [1, *x]', 10, 'this refers to the value that it is a part of'],
  ['<<: 1', 4, '<< takes a map, or a list of maps'],
  ['a: {\n', 3, /opens here is not closed/],
] as const) {
  t.test(`a syntax error is reported at its offset: ${JSON.stringify(text)}`, async t => t.match(faultsOf(text), [[offset, message]]))
}

t.test('the first value of a repeated key is used', async t => {
  const { root } = parse('a: 1\na: 2')
  t.equal(JSON.stringify(root.value), '{"a":1}')
  t.match(root.ignored, [['a', { value: 2 }], ['', { text: 'a' }]])
})

t.test('names such as __proto__ and constructor are ordinary keys', async t => {
  const { root } = parse('__proto__: { a: 1 }\nconstructor: 2')
  t.strictSame(Object.keys(root.value as object), ['__proto__', 'constructor'])
  t.equal(({} as Record<string, unknown>)['a'], undefined)
  t.equal(locate(root, ['__proto__', 'a'])?.value, 1)
  t.equal(locate(root, ['toString']), undefined)
})

t.test('a number keeps its text', async t => {
  t.match(locate(parse('a: 0.40').root, ['a']), { value: 0.4, text: '0.40', referenced: false })
  t.match(locate(parse('a: 1e3').root, ['a']), { value: 1000, text: '1e3' })
})

t.test('a value of an alias has the place of the alias, and the place of the anchor as `origin`', async t => {
  const { root } = parse('a: &x one\nb: *x')
  t.match(locate(root, ['b']), { value: 'one', at: { start: 13, end: 15 }, key: { start: 10 }, origin: { start: 6 } })
  t.equal(locate(root, ['a'])?.origin, null)
})

t.test('the value of a variable is text, even if the value looks like YAML', async t => {
  const { root } = parse('a: "${A}"\nb: x-${B:-two}\nc: ${A}', { A: 'k: [1]' })
  t.match(locate(root, ['a']), { value: 'k: [1]', referenced: true, defaulted: false, faulty: false })
  t.match(locate(root, ['b']), { value: 'x-two', defaulted: true })
  t.equal(locate(root, ['c'])?.value, 'k: [1]')
})

t.test('an unset variable is reported at the place of the reference', async t => {
  const { root, faults, isInvalid } = parse('a: "x ${NONE} ${NONE}"')
  t.match(faults, [{ offset: 6, isUnset: true }, { offset: 14, isUnset: true }])
  t.equal(isInvalid, false, 'the file itself is valid')
  t.equal(locate(root, ['a'])?.faulty, true)
})

t.test('a file whose aliases expand to too many values is refused', async t => {
  const lines = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]']
  for (let n = 1; n < 9; n++) lines.push(`a${n}: &a${n} [${Array.from({ length: 10 }, () => `*a${n - 1}`).join(', ')}]`)
  const { faults } = parse(lines.join('\n'))
  t.strictSame(faults.map(({ message }) => message), ['aliases multiply the values beyond reason'])
})

t.test('values can be nested at most 64 deep', async t => {
  t.strictSame(faultsOf(`${'['.repeat(64)}${']'.repeat(64)}`), [])
  t.strictSame(faultsOf(`${'['.repeat(65)}${']'.repeat(65)}`), [[64, 'values are nested too deeply']])
  t.match(parse('['.repeat(100_000)), { isInvalid: true })
})
