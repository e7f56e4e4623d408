import t from 'tap'
import { classifyPath } from '../../../src/protocols/classify-path.ts'
import { spliceBytes } from '../../../src/protocols/json/splice.ts'
import { bodyFormat, inspectForm, inspectJson, jsonInspection } from '../../../src/protocols/request/inspect.ts'
import { renameEdits, renamePath } from '../../../src/protocols/request/rename.ts'

const GENERATE = '/v1beta/models/old:generateContent'
const DEPLOYMENT = '/openai/deployments/old/chat/completions'

/** The body with the upstream's name for the model. */
function renamed(path: string, text: string, from: string | null, to: string | null): string {
  const bytes = Buffer.from(text)
  const classified = classifyPath(path)
  const scan = jsonInspection()
  scan.push(bytes)
  return spliceBytes(bytes, renameEdits(classified, inspectJson(scan, bytes, null, classified.endpoint), from, to)).toString()
}

const BODIES: readonly (readonly [what: string, path: string, body: string, expected: string])[] = [
  ['the member model', '/v1/chat/completions', '{"a":1,"model":"old","b":"old"}', '{"a":1,"model":"new/1","b":"old"}'],
  ['each spelling of the member model', '/v1/chat/completions', '{"model":"old","Model":"old"}', '{"model":"new/1","Model":"new/1"}'],
  ['a value with an escape', '/v1/chat/completions', '{"model":"\\u006fld"}', '{"model":"new/1"}'],
  ['a request with the model in its path only', GENERATE, '{"contents":[]}', '{"contents":[]}'],
  ['a body that repeats the path', GENERATE, '{"model":"models/old"}', '{"model":"models/new/1"}'],
  ['a body that repeats the path without a prefix', GENERATE, '{"model":"old"}', '{"model":"new/1"}'],
  ['a body except for other names', GENERATE, '{"model":"models/older"}', '{"model":"models/older"}'],
  ['requests of a batch', '/v1beta/models/old:batchEmbedContents', '{"requests":[{"model":"models/old","x":"{"},{"x":[{"model":"old"}]},{"model":"models/old"}]}', '{"requests":[{"model":"models/new/1","x":"{"},{"x":[{"model":"old"}]},{"model":"models/new/1"}]}'],
  ['a batch, except in a list inside it', '/v1beta/models/old:batchEmbedContents', '{"requests":[[{"model":"models/old"}],{"model":"old"}]}', '{"requests":[[{"model":"models/old"}],{"model":"new/1"}]}'],
  ['a request to count', '/v1beta/models/old:countTokens', '{"generateContentRequest":{"model":"models/old"}}', '{"generateContentRequest":{"model":"models/new/1"}}'],
]

for (const [what, path, body, expected] of BODIES) {
  t.test(`the model is renamed in ${what}`, async t => t.equal(renamed(path, body, 'old', 'new/1'), expected))
}

t.test('an unchanged name needs no edit', async t => {
  t.equal(renamed('/v1/chat/completions', '{"model":"\\u006fld"}', 'old', 'old'), '{"model":"\\u006fld"}')
  t.equal(renamed('/v1/chat/completions', '{"model":"old"}', 'old', null), '{"model":"old"}')
})

t.test('the model in the body of a deployment is set to the model of its path', async t => {
  t.equal(renamed(DEPLOYMENT, '{"model":"other"}', 'old', 'old'), '{"model":"old"}')
  t.equal(renamed(DEPLOYMENT, '{"a":1}', 'old', 'new'), '{"a":1}', 'the path names the model')
  t.equal(renamed(DEPLOYMENT, '{"model":"new"}', 'old', 'new'), '{"model":"new"}')
})

t.test('the model in a form is renamed without quotes', async t => {
  const type = 'multipart/form-data; boundary=x'
  const form = (model: string) => `--x\r\nContent-Disposition: form-data; name="model"\r\n\r\n${model}\r\n--x--\r\n`
  const bytes = Buffer.from(form('old'))
  t.equal(bodyFormat('form', type), 'form')
  const edits = renameEdits(classifyPath('/v1/audio/transcriptions'), inspectForm(bytes, type, null), 'old', 'new')
  t.equal(spliceBytes(bytes, edits).toString(), form('new'))
})

t.test('a batch of more requests than any provider accepts is refused', async t => {
  const batch = (count: number) => `{"requests":[${Array.from({ length: count }, () => '{}').join(',')}]}`
  const path = '/v1beta/models/old:batchEmbedContents'
  t.equal(renamed(path, batch(10_000), 'old', 'new'), batch(10_000))
  t.throws(() => renamed(path, batch(10_001), 'old', 'new'), { code: 'invalid_json', message: 'the batch has more than 10000 requests' })
})

for (const [path, expected] of [
  [GENERATE, '/v1beta/models/new%2F1:generateContent'], ['/v1/models/old', '/v1/models/new%2F1'], [DEPLOYMENT, '/openai/deployments/new%2F1/chat/completions'], ['/v1/chat/completions', '/v1/chat/completions'],
] as const) {
  t.test(`the model in ${path} is renamed`, async t => t.equal(renamePath(classifyPath(path), path, 'new/1'), expected))
}
