import t from 'tap'
import { classifyPath } from '../../../src/protocols/classify-path.ts'
import type { BodyKind } from '../../../src/protocols/endpoint/protocol.ts'
import { bodyFormat, inspectForm, inspectJson, jsonInspection, modelName, opaqueBody, singleModel } from '../../../src/protocols/request/inspect.ts'

const FORMATS: readonly (readonly [kind: BodyKind, type: string | null, expected: string])[] = [
  ['json', 'application/json', 'json'], ['json', null, 'json'], ['json', 'Application/JSON; charset=UTF-8', 'json'], ['json', 'application/vnd.x+json', 'json'], ['json', 'application/json; charset="latin1"', 'json'],
  ['json', `application/json; x=${'y'.repeat(1004)}`, 'json'], ['form', 'multipart/form-data; boundary=x', 'form'], ['json_or_form', 'multipart/form-data; boundary=x', 'form'], ['json_or_form', null, 'json'], ['json_or_form', 'application/json', 'json'],
  ['any', 'text/plain', 'opaque'], ['any', 'application/json', 'json'], ['any', 'multipart/form-data; boundary=x', 'form'], ['bytes', 'application/json; charset=utf-7', 'opaque'],
]

for (const [kind, type, expected] of FORMATS) {
  t.test(`a body for ${kind} of the type ${type} is read as ${expected}`, async t => t.equal(bodyFormat(kind, type), expected))
}

const REFUSED: readonly (readonly [kind: BodyKind, type: string | null, message: RegExp])[] = [
  ['json', 'text/plain', /^content-type must be application\/json; got 'text\/plain'/], ['json', 'multipart/form-data; boundary=x', /must be application\/json/], ['form', null, /must be multipart\/form-data; none was sent/],
  ['form', 'application/json', /must be multipart\/form-data; got/], ['json_or_form', 'text/plain', /application\/json or multipart\/form-data/], ['json', 'application/json; charset=utf-7', /^JSON must be in UTF-8/],
  ['json', 'application/json; charset=utf-8; charset=utf-7', /^JSON must be in UTF-8/], ['form', 'multipart/form-data; boundary=x; charset=utf-16', /^a form must be in UTF-8/], ['any', 'application/json; charset*=utf-8', /^JSON must be in UTF-8/],
  ['json', `application/json; x=${'y'.repeat(1005)}`, /longer than 1024 characters/],
]

for (const [kind, type, message] of REFUSED) {
  t.test(`a body for ${kind} of the type ${type?.slice(0, 60)} is refused`, async t => t.throws(() => bodyFormat(kind, type), { code: 'wrong_content_type', message }))
}

function inspected(text: string | Buffer, path = '/v1/chat/completions') {
  const bytes = Buffer.from(text)
  const scan = jsonInspection()
  scan.push(bytes)
  return inspectJson(scan, bytes, null, classifyPath(path).endpoint)
}

const READ: readonly (readonly [text: string, expected: object, path?: string])[] = [
  ['{}', { model: null, stream: false, form: null }], ['{"model":"m","stream":true}', { model: 'm', stream: true }], ['{"stream":true,"stream":false}', { stream: false }], ['{"stream":"true"}', { stream: false }],
  ['{"model":null}', { model: null }], ['{"model":""}', { model: null }], ['{"MODEL":"m"}', { model: 'm' }], ['{"model":"m","Model":"m"}', { model: 'm' }], ['{"model":"\\u006d"}', { model: 'm' }], ['{"agent":"a"}', { model: null }],
  ['{"agent":"a"}', { model: 'a' }, '/v1beta/interactions'], ['{"model":null,"agent":"a"}', { model: 'a' }, '/v1beta/interactions'], ['{"model":"a","agent":null}', { model: 'a' }, '/v1beta/interactions'], ['{"x":{"model":"n"}}', { model: null }],
]

for (const [text, expected, path] of READ) {
  t.test(`the body ${text} at ${path ?? 'chat'} is read`, async t => t.match(inspected(text, path), expected))
}

const BROKEN: readonly (readonly [what: string, text: string | Buffer, expected: { readonly code: string, readonly message?: string | RegExp }, path?: string])[] = [
  ['a list', '[]', { code: 'invalid_json', message: 'the body must be a JSON object, not an array' }],
  ['null', 'null', { code: 'invalid_json', message: 'the body must be a JSON object, not null' }],
  ['a text', '"a"', { code: 'invalid_json', message: 'the body must be a JSON object, not a string' }],
  ['an incomplete object', '{"a":', { code: 'invalid_json', message: /^the body is not valid JSON: / }],
  ['a byte order mark', '\ufeff{}', { code: 'invalid_json', message: /byte order mark/ }],
  ['UTF-16', Buffer.from('{}', 'utf16le'), { code: 'invalid_json', message: /UTF-16/ }],
  ['UTF-16 with a byte order mark', Buffer.from('\ufeff{}', 'utf16le'), { code: 'invalid_json', message: /UTF-16/ }],
  ['UTF-16 in the other byte order', Buffer.from('\ufeff{}', 'utf16le').swap16(), { code: 'invalid_json', message: /UTF-16/ }],
  ['a byte that is not UTF-8', Buffer.from([0xff, 0x7b, 0x7d]), { code: 'invalid_json', message: /^the body is not valid JSON/ }],
  ['a model that is a number', '{"model":1}', { code: 'model_required', message: "'model' must be a string, not a number" }],
  ['a model that is an object', '{"model":{}}', { code: 'model_required', message: "'model' must be a string, not an object" }],
  ['a model that is true', '{"model":true}', { code: 'model_required', message: "'model' must be a string, not true" }],
  ['two models', '{"model":"a","model":"b"}', { code: 'model_ambiguous' }],
  ['a model and null', '{"model":"a","model":null}', { code: 'model_ambiguous' }],
  ['a model and an agent', '{"model":"a","agent":"b"}', { code: 'model_ambiguous' }, '/v1beta/interactions'],
  ['a name without a letter', '{"model":"../."}', { code: 'model_required' }],
  ['a very long name', `{"model":"${'x'.repeat(257)}"}`, { code: 'model_not_found' }],
  ['a name of more than 1,536 characters', `{"model":"${'x'.repeat(1540)}"}`, { code: 'model_not_found' }],
  ['endless repetition', `{${'"model":"a",'.repeat(101)}"b":1}`, { code: 'invalid_json', message: /gives 'model' more than \d+ times/ }],
  ['deep nesting', `{"a":${'['.repeat(2000)}${']'.repeat(2000)}}`, { code: 'invalid_json', message: /^a\[0\].*: it is nested more than \d+ levels deep$/ }],
]

for (const [what, text, expected, path] of BROKEN) {
  t.test(`a body with ${what} is refused`, async t => t.throws(() => inspected(text, path), expected))
}

t.test('the model and the number of responses are read from a form', async t => {
  const formOf = (...fields: readonly (readonly [string, string])[]) => {
    const text = fields.map(([name, value]) => `--x\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`).join('')
    return inspectForm(Buffer.from(`${text}--x--\r\n`), 'multipart/form-data; boundary=x', null)
  }
  t.match(formOf(['model', 'm'], ['stream', 'true'], ['n', '3']), { model: 'm', stream: true, form: { count: 3, fault: null }, json: null })
  t.match(formOf(['prompt', 'p']), { model: null, stream: false, form: { count: 1, fault: null } })
  t.match(formOf(['n', '2'], ['num_images', '5']), { form: { count: 5 } })
  t.match(formOf(['n', 'many']), { form: { fault: 'n' } })
  t.throws(() => formOf(['model', 'a'], ['model', 'b']), { code: 'model_ambiguous' })
  t.throws(() => inspectForm(Buffer.from('x'), 'multipart/form-data; boundary=x', null), { code: 'invalid_form' })
})

t.test('a body that is not read has no model', async t => {
  t.match(opaqueBody(Buffer.from('{"model":"m"}')), { model: null, json: null, form: null, stream: false })
})

t.test('a model name has at most 256 characters, and at least a letter or digit of any script', async t => {
  t.strictSame([modelName('x'.repeat(256)), modelName('研'), modelName('-1-')], ['x'.repeat(256), '研', '-1-'])
  t.throws(() => modelName(' '), { code: 'model_required' })
  t.equal(singleModel([]), null)
  t.equal(singleModel(['', '']), null)
  t.throws(() => singleModel(['a', '']), { code: 'model_ambiguous' })
})
