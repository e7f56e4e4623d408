import t from 'tap'
import { appendToList, fieldsOf, reduceLimits } from '../../../src/protocols/json/body-edits.ts'
import { spliceBytes } from '../../../src/protocols/json/splice.ts'

const valuesOf = (text: string, names: readonly string[], ...range: number[]) => {
  const body = Buffer.from(text)
  return Object.fromEntries(Array.from(fieldsOf(body, names, ...range), ([name, { start, end }]) => [name, body.toString('utf8', start, end)]))
}

t.test('the last value of a repeated member counts', async t => {
  t.strictSame(valuesOf('{"a":1,"b":[2],"a":{"x":3}}', ['a', 'b', 'c']), { a: '{"x":3}', b: '[2]' })
  t.strictSame(valuesOf('{"a":1', ['a']), {}, 'text that is not JSON has no values')
})

t.test('values can be read from an object inside the body', async t => {
  const text = '{"a":1,"config":{"a":2}}'
  t.strictSame(valuesOf(text, ['a'], text.indexOf('{', 1), text.length - 1), { a: '2' })
})

for (const [list, expected] of [
  ['[]', '[{"x":"é"}]'], ['[ ]', '[ {"x":"é"}]'], ['[1]', '[1,{"x":"é"}]'], ['[1,[2]]', '[1,[2],{"x":"é"}]'], ['"[]"', '"[]"'], ['{}', '{}'], ['null', 'null'],
] as const) {
  t.test(`a value is appended to ${list}: ${expected}`, async t => {
    const body = Buffer.from(`{"l":${list},"m":1}`)
    t.equal(spliceBytes(body, appendToList(body, fieldsOf(body, ['l']).get('l'), { x: 'é' })).toString(), `{"l":${expected},"m":1}`)
  })
}

t.test('nothing is appended if there is no list', async t => t.strictSame(appendToList(Buffer.from('{}'), undefined, 1), []))

for (const [limit, spent, expected] of [
  ['100', 30, '70'], ['100', 0, '100'], ['100', 100, '1'], ['100', 500, '1'], ['1', 1, '1'], ['10.9', 3, '7'], ['1e2', 1, '99'], ['0', 3, '0'], ['-1', 3, '-1'], ['0.5', 3, '0.5'], ['"100"', 3, '"100"'],
  ['9007199254740993', 3, '9007199254740993'], ['null', 3, 'null'],
] as const) {
  t.test(`a limit of ${limit} that is reduced by ${spent} is ${expected}`, async t => {
    const body = Buffer.from(`{"max":${limit}}`)
    t.equal(spliceBytes(body, reduceLimits(body, [fieldsOf(body, ['max']).get('max'), undefined], spent)).toString(), `{"max":${expected}}`)
  })
}
