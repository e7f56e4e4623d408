import fc from 'fast-check'
import t from 'tap'
import { withIncludeUsage } from '../../../src/protocols/chat/usage-option.ts'
import { scanJson } from '../../../src/protocols/json/json-scan.ts'
import type { ValidJson } from '../../../src/protocols/json/json-scan.ts'
import { spliceBytes } from '../../../src/protocols/json/splice.ts'
import { untouched } from '../json/edits.ts'
import { objectText } from '../json/json-texts.ts'

function scan(body: Buffer): ValidJson {
  const result = scanJson(body, ['stream_options'])
  if (!result.ok) throw new Error(`${body.toString()}: ${result.message}`)
  return result
}

type Parsed = Record<string, unknown>

/** @returns the body with include_usage, or null if no edit is needed */
function asking(text: string): string | null {
  const body = Buffer.from(text)
  const edits = withIncludeUsage(body, scan(body))
  return edits && spliceBytes(body, edits).toString()
}

t.test('include_usage is added if stream_options is missing or null', async t => {
  t.equal(asking('{}'), '{"stream_options":{"include_usage":true}}')
  t.equal(asking('\n{ }'), '\n{"stream_options":{"include_usage":true} }')
  t.equal(asking('{ "model":"a"}'), '{"stream_options":{"include_usage":true}, "model":"a"}')
  t.equal(asking('{"stream_options": null ,"a":1}'), '{"stream_options": {"include_usage":true} ,"a":1}')
})

t.test('include_usage is added to existing stream_options', async t => {
  t.equal(asking('{"stream_options":{}}'), '{"stream_options":{"include_usage":true}}')
  t.equal(asking('{"stream_options":{ "x":1.0}}'), '{"stream_options":{"include_usage":true, "x":1.0}}')
  t.equal(
    asking('{"a":1,"stream_options":{"include_usage": false}}'),
    '{"a":1,"stream_options":{"include_usage": true}}')
  t.equal(
    asking('{"stream_options":{"include\\u005fusage":null}}'),
    '{"stream_options":{"include\\u005fusage":true}}')
  t.equal(
    asking('{"stream_options":{"x":{"include_usage":true}}}'),
    '{"stream_options":{"include_usage":true,"x":{"include_usage":true}}}')
})

t.test('each repetition of include_usage or stream_options is set', async t => {
  t.equal(
    asking('{"stream_options":{"include_usage":true,"include_usage":0},"stream_options":null}'),
    '{"stream_options":{"include_usage":true,"include_usage":true},"stream_options":{"include_usage":true}}')
})

t.test('a body that already asks for usage, or is invalid, is not changed', async t => {
  t.equal(asking('{"stream_options":{"include_usage": true}}'), null)
  for (const options of ['1', '"x"', '[]', 'true', 'false']) {
    t.equal(asking(`{"stream_options":${options}}`), null, options)
  }
  for (const root of ['[]', 'null', '"{}"', '1']) t.equal(asking(root), null, root)
})

t.test('property: asking for usage changes only include_usage', async t => {
  const options = fc.oneof(
    objectText,
    fc.constantFrom('null', '{"include_usage":false}', '{"include_usage" : true}', '1', '{"a":1}'))
  const given = fc.tuple(objectText, options).map(([text, inner]) => {
    const comma = text.includes(':') ? ',' : ''
    return text.replace(/\}\s*$/, end => `${comma}"stream_options":${inner}${end}`)
  })
  const bodies = fc.oneof(objectText, given)
  fc.assert(fc.property(bodies, text => {
    const body = Buffer.from(text)
    const edits = withIncludeUsage(body, scan(body))
    const before = JSON.parse(text) as Parsed
    const given = before['stream_options']
    const settled = given !== undefined && given !== null
      && (typeof given !== 'object' || Array.isArray(given))
    const asked = !settled && (given as Parsed | null | undefined)?.['include_usage'] === true
    const spliced = spliceBytes(body, edits ?? [])
    const after = JSON.parse(spliced.toString()) as Parsed
    if (!untouched(body, edits ?? [], spliced)) return false
    if (!settled && !asked && edits === null) return false
    if (!settled) before['stream_options'] = { ...given as Parsed | null, include_usage: true }
    return sorted(after) === sorted(before)
  }), { numRuns: 1000 })
  t.pass()
})

/** Equal for equal values, whatever the order of their members. */
function sorted(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    inner !== null && typeof inner === 'object' && !Array.isArray(inner)
      ? Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1))
      : inner)
}
