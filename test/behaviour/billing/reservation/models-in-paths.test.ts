import t from 'tap'
import { KEY } from '../../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../../support/upstream.ts'
import { openBooks, priced } from '../books.ts'

const ANY = 'sk-any-0123456789abcdef'

t.test('the model in the path of a batch, prediction or operation selects the route and the price', async t => {
  const asked: string[] = []
  const upstream = await startUpstream(t, (req, res) => {
    asked.push(`${req.method} ${req.url}`)
    void bodyOf(req).then(() => {
      res.setHeader('content-type', 'application/json').end('{"name":"models/m1/operations/o"}')
    })
  })
  const books = await openBooks(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ model: m, to: { upstream: up, model: m1 } }, { model: [m1, other], to: up }]
keys: [{ name: some, key: ${KEY}, models: [m, m1] }, { name: any, key: ${ANY} }]
${priced('m1')}`)
  const ask = async (method: string, path: string, key = KEY) => {
    const answer = await fetch(books.gateway.url + path, {
      method,
      headers: { 'x-goog-api-key': key, 'content-type': 'application/json' },
      ...method === 'POST' ? { body: '{"batch":{}}' } : {},
    })
    await answer.text()
    return answer.status
  }
  t.equal(await ask('POST', '/v1beta/models/m:predictLongRunning'), 200)
  t.equal(await ask('POST', '/v1/models/m:batchGenerateContent', ANY), 200)
  t.equal(await ask('GET', '/v1beta/models/m1/operations/o'), 200)
  t.equal(await ask('POST', '/v1/models/m:batchGenerateContent'), 403, 'a batch may be for any model')
  t.strictSame(asked, [
    'POST /v1beta/models/m1:predictLongRunning',
    'POST /v1/models/m1:batchGenerateContent',
    'GET /v1beta/models/m1/operations/o',
  ])
  const rows = [...(await books.close()).values()]
  t.strictSame(
    rows.map(({ endpoint, model, costPico }) => [endpoint, model, costPico]),
    [
      ['other', 'm', null],
      ['other', 'm', null],
      ['generate.operation', 'm1', 0n],
      ['other', 'm', 0n],
    ],
    'the usage of a batch or prediction is unknown, and reading an operation is free',
  )
})

t.test('the model in a path of Vertex AI selects route and price, and must be in the allow-list of the key', async t => {
  const asked: string[] = []
  const usageMetadata = { promptTokenCount: 7, candidatesTokenCount: 5, totalTokenCount: 12 }
  const gemini = { candidates: [{ content: { parts: [{ text: 'x' }] }, finishReason: 'STOP' }], usageMetadata }
  const claude = { type: 'message', content: [], usage: { input_tokens: 7, output_tokens: 5 } }
  const chat = { choices: [], usage: { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 } }
  const upstream = await startUpstream(t, (req, res) => {
    asked.push(req.url as string)
    void bodyOf(req).then(() => {
      const answer = /chat/.test(req.url as string) ? chat : /raw/.test(req.url as string) ? claude : gemini
      res.setHeader('content-type', 'application/json').end(JSON.stringify(answer))
    })
  })
  const books = await openBooks(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ model: m, to: { upstream: up, model: m1 } }, { to: up }]
keys: [{ name: some, key: ${KEY}, models: [m] }]
${priced('m1')}`)
  const ask = async (path: string) => {
    const answer = await fetch(books.gateway.url + path, {
      method: 'POST',
      headers: { 'x-goog-api-key': KEY, 'content-type': 'application/json' },
      body: '{"model":"m","contents":[],"messages":[]}',
    })
    await answer.text()
    return answer.status
  }
  const at = '/v1/projects/p/locations/l'
  t.equal(await ask(`${at}/publishers/google/models/m:generateContent`), 200)
  t.equal(await ask(`${at}/publishers/anthropic/models/m:rawPredict`), 200)
  t.equal(await ask(`${at}/endpoints/openapi/chat/completions`), 200)
  t.equal(await ask(`${at}/endpoints/m/chat/completions`), 200)
  t.equal(await ask(`${at}/publishers/google/models/other:generateContent`), 403, 'the model in the path is checked')
  t.equal(await ask(`/v1/publishers/google/models/other:predict?model=m`), 403)
  t.strictSame(asked, [
    `${at}/publishers/google/models/m1:generateContent`,
    `${at}/publishers/anthropic/models/m1:rawPredict`,
    `${at}/endpoints/openapi/chat/completions`,
    `${at}/endpoints/m1/chat/completions`,
  ])
  const rows = [...(await books.close()).values()].slice(0, 4)
  t.strictSame(
    rows.map(({ endpoint, usage }) => [endpoint, usage.inputTokens, usage.outputTokens]),
    [
      ['generate.content', 7, 5], ['messages', 7, 5], ['chat.completions', 7, 5], ['chat.completions', 7, 5],
    ],
  )
  t.ok(rows.every(({ costPico }) => costPico !== null && costPico > 0n))
})
