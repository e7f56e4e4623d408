import t from 'tap'
import { classifyPath } from '../../../src/protocols/classify-path.ts'
import { vertex } from '../../../src/providers/vertex/vertex.ts'

const { addressOf, bodyOf, speaks } = vertex({ kind: 'vertex', project: 'my-project', location: 'us-east5' })
const HERE = 'projects/my-project/locations/us-east5'
const CLAUDE = `/v1/${HERE}/publishers/anthropic/models`
const GEMINI = `${HERE}/publishers/google/models`

function requestOf(target: string, model: string | null, stream = false) {
  const [path = '', query] = target.split('?')
  return { endpoint: classifyPath(path).endpoint, path, query: query === undefined ? '' : `?${query}`, model, stream }
}

for (const [target, model, stream, there] of [
  ['/v1/messages?beta=true', 'claude-haiku-4-5@20251001', false, `${CLAUDE}/claude-haiku-4-5@20251001:rawPredict`],
  ['/v1/messages', 'claude-haiku-4-5', true, `${CLAUDE}/claude-haiku-4-5:streamRawPredict`],
  ['/v1/messages/count_tokens?beta=true', 'claude-haiku-4-5', false, `${CLAUDE}/count-tokens:rawPredict`],
  ['/v1/projects/p/locations/l/publishers/anthropic/models/other:streamRawPredict', 'claude-opus', true, `${CLAUDE}/claude-opus:streamRawPredict`],
  ['/v1beta/models/gemini-2.5-pro:generateContent', 'gemini-2.5-pro', false, `/v1/${GEMINI}/gemini-2.5-pro:generateContent`],
  ['/v1/models/gemini-2.5-pro:generateContent', 'gemini-2.5-pro', false, `/v1/${GEMINI}/gemini-2.5-pro:generateContent`],
  ['/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse', 'gemini-2.5-pro', true, `/v1/${GEMINI}/gemini-2.5-pro:streamGenerateContent?alt=sse`],
  ['/v1beta/models/gemini-2.5-pro:countTokens', 'gemini-2.5-pro', false, `/v1/${GEMINI}/gemini-2.5-pro:countTokens`],
  ['/v1beta/models/gemini-embedding-001:embedContent', 'gemini-embedding-001', false, `/v1/${GEMINI}/gemini-embedding-001:predict`],
  ['/v1beta/models/text-embedding-005:batchEmbedContents', 'text-embedding-005', false, `/v1/${GEMINI}/text-embedding-005:predict`],
  ['/v1beta/models/gemini-embedding-2:embedContent', 'gemini-embedding-2', false, `/v1/${GEMINI}/gemini-embedding-2:embedContent`],
  ['/v1beta1/publishers/google/models/m:generateContent', 'm', false, `/v1beta1/${GEMINI}/m:generateContent`],
  ['/v1beta1/projects/p/locations/l/publishers/google/models/m:predict', 'm', false, `/v1beta1/${GEMINI}/m:predict`],
  ['/v1/projects/p/locations/l/publishers/mistralai/models/m:rawPredict', 'm', false, `/v1/${HERE}/publishers/mistralai/models/m:rawPredict`],
  ['/v1beta1/projects/p/locations/l/cachedContents?pageSize=1', null, false, `/v1beta1/${HERE}/cachedContents?pageSize=1`],
  ['/v1beta/cachedContents', null, false, `/v1/${HERE}/cachedContents`],
] as const) {
  t.test(target, async t => {
    const { path, query } = addressOf(requestOf(target, model, stream))
    t.equal(path + query, there)
  })
}

t.test('an endpoint that Vertex AI does not have is refused', async t => {
  t.throws(() => addressOf(requestOf('/v1/messages/batches', null)), { code: 'not_translatable' })
})

t.test('without a project, the path has a placeholder for the project of the credentials', async t => {
  const { path } = vertex({ kind: 'vertex', project: null, location: 'global' }).addressOf(requestOf('/v1beta/models/m:countTokens', 'm'))
  t.equal(path, '/v1/projects/{project}/locations/global/publishers/google/models/m:countTokens')
})

t.test('the model name decides the protocol', async t => {
  t.strictSame(speaks?.('claude-haiku-4-5@20251001'), ['messages'])
  t.strictSame(speaks?.('gemini-2.5-pro'), ['generate'])
  t.equal(speaks?.(null), null)
})

for (const [body, there] of [
  ['{"model":"m","max_tokens":5}', '{"max_tokens":5,"anthropic_version":"vertex-2023-10-16"}'],
  ['{ "max_tokens": 5, "model": "m" }', '{ "max_tokens": 5,  "anthropic_version":"vertex-2023-10-16"}'],
  ['{"max_tokens":5,"model":"m","stream":true}', '{"max_tokens":5,"stream":true,"anthropic_version":"vertex-2023-10-16"}'],
  ['{"model":"m"}', '{"anthropic_version":"vertex-2023-10-16"}'],
  ['{"model":"m","a":1,"model":"m"}', '{"a":1,"anthropic_version":"vertex-2023-10-16"}'],
  ['{"anthropic_version":"bedrock-2023-05-31","model":"m","a":1}', '{"a":1,"anthropic_version":"vertex-2023-10-16"}'],
  ['{"anthropic_version":"vertex-2023-10-16","a":1}', '{"anthropic_version":"vertex-2023-10-16","a":1}'],
  ['{}', '{"anthropic_version":"vertex-2023-10-16"}'],
] as const) {
  t.test(`a body for Claude is adapted: ${body}`, async t => {
    const sent = bodyOf?.(requestOf('/v1/messages', 'm'), Buffer.from(body), []).toString()
    t.equal(sent, there)
    t.doesNotThrow(() => JSON.parse(there))
  })
}

t.test('bodies for Gemini are not changed, and a count request for Claude keeps its model', async t => {
  const body = Buffer.from('{"model":"m"}')
  t.equal(bodyOf?.(requestOf('/v1beta/models/m:generateContent', 'm'), body, []), body)
  t.equal(bodyOf?.(requestOf('/v1/messages/count_tokens', 'm'), body, []).toString(), '{"model":"m","anthropic_version":"vertex-2023-10-16"}')
})
