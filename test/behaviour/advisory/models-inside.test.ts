import t from 'tap'
import { startTestGateway } from '../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'

/* Models that a request names inside of its body, and batches, whose requests the gateway does not read. */

const LIMITED = 'sk-limited-0123456789abcdef'
const BUDGET = 'sk-budget-0123456789abcdef'
const MODEL_BUDGET = 'sk-model-budget-0123456789abcdef'
const ANY = 'sk-any-0123456789abcdef'
let seen: string[] = []
const upstream = await startUpstream(t, async (req, res) => {
  seen.push(`${req.method} ${req.url}`)
  await bodyOf(req)
  res.setHeader('content-type', 'application/json').end('{}')
})
const gateway = await startTestGateway(t, `
upstreams:
  up: { url: "${upstream.url}" }
routes: [{ to: up }]
keys:
  - { name: limited, key: ${LIMITED}, models: ["a*"] }
  - { name: budget, key: ${BUDGET}, limits: { budget: { usd: 5, per: day } } }
  - { name: model-budget, key: ${MODEL_BUDGET}, limits: { models: { "x*": { budget: { usd: 5, per: day } } } } }
  - { name: any, key: ${ANY} }
`)

async function ask(path: string, body: object, key = LIMITED) {
  seen = []
  const headers = { 'x-api-key': key, 'content-type': 'application/json' }
  const answer = await fetch(gateway.url + path, { method: 'POST', headers, body: JSON.stringify(body) })
  return { status: answer.status, text: await answer.text() }
}

const BATCHES = [
  ['/v1beta/models/a1:batchGenerateContent', { batch: { inputConfig: { fileName: 'files/f' } } }],
  ['/v1beta/models/a1:BATCHGENERATECONTENT/', { batch: { inputConfig: { fileName: 'files/f' } } }],
  ['/v1beta/models/a1:asyncBatchEmbedContent', { batch: { inputConfig: { fileName: 'files/f' } } }],
  ['/v1beta/models/a1%3AasyncBatchEmbedContent', { batch: { inputConfig: { fileName: 'files/f' } } }],
  ['/v1beta/models/a1:batchUnheardOf', {}],
  ['/v1beta1/publishers/google/models/a1:batchUnheardOf', {}],
  ['/v1/projects/p/locations/l/batchPredictionJobs', { model: 'a1', inputConfig: { gcsSource: { uris: ['gs://f'] } } }],
  ['/v1beta1/projects/p/locations/l/BatchPredictionJobs/', { model: 'a1' }],
  ['/v1/batches', { model: 'a1', input_file_id: 'file-1' }],
  ['/v1/messages/batches', { model: 'a1', requests: [] }],
] as const

for (const [path, body] of BATCHES) {
  t.test(`only a key for all models and without a budget can create a batch: ${path}`, async t => {
    const limited = await ask(path, body)
    t.equal(limited.status, 403)
    t.match(limited.text, /a batch may be for any/)
    for (const key of [BUDGET, MODEL_BUDGET]) {
      const budgeted = await ask(path, body, key)
      t.equal(budgeted.status, 403)
      t.match(budgeted.text, /its cost is unknown/)
    }
    t.strictSame(seen, [])
    t.equal((await ask(path, body, ANY)).status, 200)
  })
}

t.test('a key with a budget can read and cancel batches', async t => {
  const headers = { 'x-api-key': BUDGET }
  for (const path of ['/v1/batches/b1', '/v1/messages/batches/b1/results']) {
    t.equal((await fetch(gateway.url + path, { headers })).status, 200, path)
  }
  t.equal((await ask('/v1/batches/b1/cancel', {}, BUDGET)).status, 200)
})

t.test('the requests in a body of batchEmbedContents or countTokens must name the same model as the path', async t => {
  for (const key of [LIMITED, ANY]) {
    for (const [path, inner] of [
      ['/v1beta/models/a1:batchEmbedContents', { requests: [{ model: 'models/a1' }, { model: 'models/b' }] }],
      ['/v1beta/models/a1:batchEmbedContents', { requests: [{ model: 'models/a2' }] }],
      ['/v1beta/models/a1:countTokens', { generateContentRequest: { model: 'models/b', contents: [] } }],
    ] as const) {
      const { status, text } = await ask(path, inner, key)
      t.equal(status, 400, path)
      t.match(text, /more than once, with different values/)
      t.strictSame(seen, [])
    }
    for (const [path, inner] of [
      ['/v1beta/models/a1:batchEmbedContents', { requests: [{ model: 'models/a1' }, { content: {} }] }],
      ['/v1beta/models/a1:countTokens', { generateContentRequest: { model: 'models/a1', contents: [] } }],
      [
        '/v1beta/models/a1:countTokens',
        { contents: [{ parts: [{ functionCall: { name: 'f', args: { model: 'car' } } }] }] },
      ],
    ] as const) t.equal((await ask(path, inner, key)).status, 200, path)
  }
})

t.test('on an unknown path, every "model" member of the body is checked, at any depth', async t => {
  for (const body of [
    { model: 'a1', session: { audio: { input: { transcription: { model: 'b' } } } } },
    { model: 'a1', graders: [{ type: 'score_model', Model: 'b' }] },
    { model: 'a1', routing: { modelName: 'b' } },
    { model: 'a1', routing: { model_name: 'b' } },
    { model: 'a1', router: { models: ['a1', 'b'] } },
  ]) {
    const { status, text } = await ask('/v1/unheard-of', body)
    t.equal(status, 403, JSON.stringify(body))
    t.match(text, /may not use the model 'b'/)
    t.strictSame(seen, [])
    t.equal((await ask('/v1/unheard-of', body, ANY)).status, 200)
  }
  t.equal((await ask('/v1/unheard-of', { model: 'a1', session: { model: 'a2' } })).status, 200)
  t.equal((await ask('/v1beta/models/a1:predict', { instances: [{ model: 'models/a2' }] })).status, 200)
  t.equal((await ask('/v1beta/models/a1:predict', { instances: [{ model: 'models/b' }] })).status, 403)
})

t.test('a tool argument with the name "model" is not checked', async t => {
  const call = { type: 'tool_use', id: 't', name: 'f', input: { model: 'car' } }
  const messages = [{ role: 'assistant', content: [call] }]
  t.equal((await ask('/v1/messages', { model: 'a1', max_tokens: 1, messages })).status, 200)
  t.equal((await ask('/v1/messages/count_tokens', { model: 'a1', messages })).status, 200)
})
