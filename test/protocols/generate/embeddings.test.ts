import OpenAI from 'openai'
import t from 'tap'
import { KEY } from '../../support/gateway.ts'
import { genaiClient, openaiClient, startTranslating } from '../../support/translating-gateway.ts'

const VECTORS = [[0.5, -0.25, 1], [0, 2, -3.5]]
const GEMINI = { speaks: 'generate', responses: [{ body: { embeddings: VECTORS.map(values => ({ values })) } }] }
const CHAT = { speaks: 'chat', responses: [{ body: {
  object: 'list', model: 'up', usage: { prompt_tokens: 6, total_tokens: 6 },
  // Not in the order of `index`.
  data: VECTORS.map((embedding, index) => ({ object: 'embedding', index, embedding })).toReversed(),
} }] }
const failureOf = (promise: PromiseLike<unknown>): Promise<unknown> => Promise.resolve(promise).then(() => null, (error: unknown) => error)

t.test('an OpenAI client gets embeddings from Gemini, as base64 and as numbers', async t => {
  const { gateway, seen } = await startTranslating(t, { up: GEMINI })
  for (const format of [undefined, 'base64', 'float'] as const) {
    const { data: list, response } = await openaiClient(gateway).embeddings.create({
      model: 'm', input: ['one', 'two'], dimensions: 3, user: 'u', ...format && { encoding_format: format },
    }).withResponse()
    // By default the SDK requests base64 and decodes the response.
    if (format !== 'base64') t.strictSame(list.data.map(({ embedding }) => embedding), VECTORS)
    else t.equal(Buffer.from(String(list.data[0]?.embedding), 'base64').readFloatLE(4), -0.25)
    t.match(list, { object: 'list', model: 'm', data: [{ index: 0 }, { index: 1 }] })
    t.ok(list.usage.prompt_tokens > 0, 'estimated: the upstream reports none')
    t.equal(response.headers.get('x-gateway-translated'), 'chat->generate')
    t.equal(response.headers.get('x-gateway-dropped'), 'user')
  }
  t.match(seen['up']?.[0], {
    path: '/v1beta/models/up-model:batchEmbedContents',
    body: { requests: [
      { model: 'models/up-model', content: { parts: [{ text: 'one' }] }, outputDimensionality: 3 },
      { model: 'models/up-model', content: { parts: [{ text: 'two' }] }, outputDimensionality: 3 },
    ] },
  })
})

t.test('a Gemini client gets one or several embeddings from an OpenAI upstream', async t => {
  const { gateway, seen } = await startTranslating(t, { up: CHAT })
  const { embeddings } = await genaiClient(gateway).models.embedContent({ model: 'm', contents: ['one', 'two'], config: { taskType: 'RETRIEVAL_QUERY', outputDimensionality: 3 } })
  t.strictSame(embeddings?.map(({ values }) => values), VECTORS)
  t.match(seen['up']?.[0], { path: '/v1/embeddings', body: { model: 'up-model', input: ['one', 'two'], encoding_format: 'float', dimensions: 3 } })
  t.match(await gateway.waitForLog(line => line['msg'] === 'exchange'), { input_tokens: 6 })
  const single = await startTranslating(t, { up: { speaks: 'chat', responses: [{ body: { data: [{ index: 0, embedding: VECTORS[0] }], usage: { prompt_tokens: 1 } } }] } })
  const response = await fetch(`${single.gateway.url}/v1beta/models/m:embedContent`, {
    method: 'POST', headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ content: { parts: [{ text: 'one' }, { text: 'more' }] }, task_type: 'CLUSTERING' }),
  })
  t.strictSame(await response.json(), { embedding: { values: VECTORS[0] }, usageMetadata: { promptTokenCount: 1 } })
  t.equal(response.headers.get('x-gateway-dropped'), 'taskType')
  t.match(single.seen['up']?.[0]?.body, { input: ['one\nmore'] })
})

t.test('embeddings that the target does not support are refused with the reason', async t => {
  const { gateway, seen } = await startTranslating(t, { up: GEMINI })
  t.match(await failureOf(openaiClient(gateway).embeddings.create({ model: 'm', input: [[1, 2]] })), { status: 400, param: 'input', message: /token ids/ })
  t.equal(seen['up']?.length, 0)
  const claude = await startTranslating(t, { up: { speaks: 'messages', responses: [{ body: {} }] } })
  t.match(await failureOf(openaiClient(claude.gateway).embeddings.create({ model: 'm', input: 'x' })), { status: 400, code: 'not_translatable', message: /no embeddings/ })
})

t.test('errors of embeddings have the shape of the client\'s protocol', async t => {
  const down = await startTranslating(t, { up: { speaks: 'generate', responses: [{ status: 429, body: { error: { code: 429, message: 'slow down', status: 'RESOURCE_EXHAUSTED' } } }] } })
  const limited = await failureOf(openaiClient(down.gateway).embeddings.create({ model: 'm', input: 'a' }))
  t.ok(limited instanceof OpenAI.RateLimitError)
  t.match(limited, { message: /slow down/ })
})

t.test('a request without input is refused, and the error names the missing field', async t => {
  const { gateway, seen } = await startTranslating(t, { up: CHAT })
  for (const [verb, body, param] of [['batchEmbedContents', {}, 'content'], ['batchEmbedContents', { requests: [{}] }, 'requests[0].content'], ['embedContent', {}, 'content']] as const) {
    const response = await fetch(`${gateway.url}/v1beta/models/m:${verb}`, {
      method: 'POST', headers: { 'x-api-key': KEY, 'content-type': 'application/json' }, body: JSON.stringify(body),
    })
    t.equal(response.status, 400)
    t.match(await response.json(), { error: { message: new RegExp(param.replaceAll(/[[\].]/g, '\\$&')) } })
  }
  t.equal(seen['up']?.length, 0)
})

for (const [name, embedding] of [['an object', [{}, 1]], ['infinity as base64', Buffer.from(new Float32Array([Infinity]).buffer).toString('base64')]] as const) {
  t.test(`a vector with ${name} in it is an invalid response`, async t => {
    const { gateway } = await startTranslating(t, { up: { speaks: 'chat', responses: [{ body: { data: [{ index: 0, embedding }] } }] } })
    t.match(await failureOf(genaiClient(gateway).models.embedContent({ model: 'm', contents: 'one' })), { status: 502, message: /not numbers/ })
  })
}
