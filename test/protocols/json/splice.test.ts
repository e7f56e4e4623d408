import fc from 'fast-check'
import t from 'tap'
import { withIncludeUsage } from '../../../src/protocols/chat/usage-option.ts'
import { JsonScan, scanJson } from '../../../src/protocols/json/json-scan.ts'
import type { ValidJson } from '../../../src/protocols/json/json-scan.ts'
import { replaceValues, spliceBytes } from '../../../src/protocols/json/splice.ts'
import type { Edit } from '../../../src/protocols/json/splice.ts'
import { chunksOf } from '../events/chunks.ts'
import { untouched } from './edits.ts'
import { objectText } from './json-texts.ts'

const KEYS = ['model', 'stream_options']

function modelEdits(fields: ValidJson['fields'], model: string): Edit[] {
  return replaceValues(fields.get('model') ?? [], Buffer.from(JSON.stringify(model)))
}

/** The body with every top-level `model` renamed. */
function renameModel(body: Buffer, fields: ValidJson['fields'], model: string): Buffer {
  return spliceBytes(body, modelEdits(fields, model))
}

function scan(body: Buffer): ValidJson {
  const result = scanJson(body, KEYS)
  if (!result.ok) throw new Error(`${body.toString()}: ${result.message}`)
  return result
}

function renamed(text: string, model: string): string {
  const body = Buffer.from(text)
  return renameModel(body, scan(body).fields, model).toString()
}

const edit = (start: number, end: number, text: string): Edit => ({ start, end, bytes: Buffer.from(text) })

t.test('spliceBytes replaces, inserts and removes, in any order', async t => {
  const body = Buffer.from('0123456789')
  const edits = [
    edit(8, 9, ''), edit(0, 0, 'a'), edit(2, 4, 'bcd'), edit(4, 4, 'e'), edit(10, 10, 'f'), edit(0, 0, 'g')
  ]
  t.equal(spliceBytes(body, edits).toString(), 'ag01bcde45679f')
  t.equal(body.toString(), '0123456789')
})

t.test('spliceBytes puts an insertion before a replacement at the same place', async t => {
  t.equal(spliceBytes(Buffer.from('abc'), [edit(1, 2, 'X'), edit(1, 1, '-')]).toString(), 'a-Xc')
})

t.test('spliceBytes without edits gives the body itself', async t => {
  const body = Buffer.from('abc')
  t.equal(spliceBytes(body, []), body)
})

t.test('spliceBytes throws on edits that overlap or leave the body', async t => {
  const body = Buffer.from('0123456789')
  const wrong: Edit[][] = [
    [edit(1, 3, ''), edit(2, 4, '')], [edit(1, 5, ''), edit(2, 2, 'x')], [edit(1, 2, ''), edit(1, 2, '')],
    [edit(-1, 1, '')], [edit(9, 11, '')], [edit(5, 4, '')], [edit(NaN, 4, '')], [edit(4, NaN, '')]
  ]
  for (const edits of wrong) t.throws(() => spliceBytes(body, edits), RangeError)
})

t.test('a renamed model is the only change', async t => {
  t.equal(
    renamed('{ "n":1.0,"model" : "fast" , "big":12345678901234567890,"e":1e5,"s":"\\u00e9\\/" }\n', 'gpt'),
    '{ "n":1.0,"model" : "gpt" , "big":12345678901234567890,"e":1e5,"s":"\\u00e9\\/" }\n')
  t.equal(
    renamed('{"model":"a","x":{"model":"a"},"m\\u006fdel":null}', 'b'),
    '{"model":"b","x":{"model":"a"},"m\\u006fdel":"b"}')
  t.equal(renamed('{"model":""}', 'a "quoted"\\\n😀 name'), '{"model":"a \\"quoted\\"\\\\\\n😀 name"}')
  t.equal(renamed('{"x":1}', 'b'), '{"x":1}')
  t.equal(renamed('[{"model":"a"}]', 'b'), '[{"model":"a"}]')
})

t.test('a model and include_usage are changed in one splice', async t => {
  const body = Buffer.from('{"model":"a","stream_options":{"x":1},"n":1.0}')
  const result = scan(body)
  const edits = [...withIncludeUsage(body, result) ?? [], ...modelEdits(result.fields, 'b')]
  t.equal(
    spliceBytes(body, edits).toString(),
    '{"model":"b","stream_options":{"include_usage":true,"x":1},"n":1.0}')
})

t.test('replaceValues replaces several values at once', async t => {
  const bytes = Buffer.from('x')
  const values = [{ start: 1, end: 2, value: 'a' }, { start: 5, end: 9, value: 'b' }]
  t.strictSame(replaceValues(values, bytes), [{ start: 1, end: 2, bytes }, { start: 5, end: 9, bytes }])
  t.strictSame(replaceValues([], bytes), [])
})

type Parsed = Record<string, unknown>

t.test('property: renaming the model changes only the model', async t => {
  fc.assert(fc.property(objectText, fc.string({ unit: 'binary' }), (text, model) => {
    const body = Buffer.from(text)
    const { fields } = scan(body)
    const spliced = renameModel(body, fields, model)
    const before = JSON.parse(text) as Parsed
    const after = JSON.parse(spliced.toString()) as Parsed
    if (Object.hasOwn(before, 'model')) before['model'] = model
    return JSON.stringify(after) === JSON.stringify(before)
      && untouched(body, modelEdits(fields, model), spliced)
  }), { numRuns: 1000 })
  t.pass()
})

t.test('property: the edits do not depend on the chunks of the body', async t => {
  const split = objectText.map(text => Buffer.from(text))
    .chain(body => fc.tuple(fc.constant(body), chunksOf(body)))
  fc.assert(fc.property(split, ([body, chunks]) => {
    const scanner = new JsonScan(KEYS)
    for (const chunk of chunks) scanner.push(chunk)
    const result = scanner.end()
    if (!result.ok) return false
    const whole = scan(body)
    return renameModel(body, result.fields, 'x').equals(renameModel(body, whole.fields, 'x'))
      && JSON.stringify(withIncludeUsage(body, result)) === JSON.stringify(withIncludeUsage(body, whole))
  }), { numRuns: 1000 })
  t.pass()
})
