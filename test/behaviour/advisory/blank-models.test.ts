import t from 'tap'
import type { Test } from 'tap'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import { startUpstream } from '../../support/upstream.ts'

const heard: string[] = []
const upstream = await startUpstream(t, (req, res) => {
  heard.push(req.url as string)
  req.resume()
  res.setHeader('content-type', 'application/json')
  res.end('{}')
})
const BUDGETED = 'sk-budgeted-0123456789'
const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
keys:
  - { name: any, key: ${KEY} }
  - { name: budgeted, key: ${BUDGETED}, limits: { budget: { usd: 1, per: day } } }
`)

type ErrorBody = { error: { message: string; code?: string | number; details?: { reason: string }[] } }

async function ask(path: string, body: string | FormData, key: string): Promise<{ status: number; json: ErrorBody }> {
  const type = typeof body === 'string' ? { 'content-type': 'application/json' } : {}
  const response = await fetch(gateway.url + path, { method: 'POST', headers: { ...type, 'x-api-key': key }, body })
  return { status: response.status, json: await response.json() as ErrorBody }
}

async function isRefused(t: Test, path: string, body: string | FormData): Promise<void> {
  for (const key of [KEY, BUDGETED]) {
    const { status, json } = await ask(path, body, key)
    const what = `${path} ${typeof body === 'string' ? body : 'form'}`
    t.equal(status, 400, what)
    t.match(json.error.message, "the request must name a 'model'", what)
  }
}

const VERTEX = '/v1/projects/p/locations/l'
/** Names without a letter or a digit. */
const BLANK = ['%20', '..', '...', '%2F', '%2f%2F', '%C2%A0', '%E2%80%8B', '-', ':', ';']

t.test('a path with an empty model is refused', async t => {
  for (const name of ['', ...BLANK]) {
    for (const verb of [':generateContent', '%3AstreamGenerateContent', ':embedContent', ':predict', ':unheardOf']) {
      await isRefused(t, `/v1beta/models/${name}${verb}`, '{"contents":[]}')
    }
  }
  for (const path of [
    '/v1/models/:generateContent', '/v1beta/models//:generateContent/', '/v1beta/models/:generateContent;x=1',
    '/v1alpha/tunedModels/:generateContent', '/v1beta/models/:batchGenerateContent',
    '/v1beta1/publishers/google/models/:generateContent', `${VERTEX}/publishers/google/models/%20:countTokens`,
    `${VERTEX}/publishers/google/models/:unheardOf`, `${VERTEX}/publishers/anthropic/models/:rawPredict`,
    `${VERTEX}/endpoints/:predict`, `${VERTEX}/endpoints/%20/chat/completions`,
    '/openai/deployments/%20/chat/completions', '/openai/deployments/-/embeddings',
  ]) await isRefused(t, path, '{"contents":[]}')
  t.strictSame(heard, [])
})

t.test('the error for an empty model has the shape of the protocol of the client', async t => {
  const { json } = await ask('/v1beta/models/:generateContent', '{}', KEY)
  t.match(json, { error: { code: 400, status: 'INVALID_ARGUMENT', details: [{ reason: 'MODEL_REQUIRED' }] } })
  t.match((await ask('/v1/messages', '{"model":" "}', KEY)).json, { type: 'error', error: { type: 'invalid_request_error' } })
  t.match((await ask('/v1/responses', '{"model":" "}', KEY)).json, { error: { param: 'model', code: 'model_required' } })
})

t.test('an empty model is refused if the endpoint requires a model', async t => {
  for (const path of ['/v1/chat/completions', '/v1/completions', '/v1/messages', '/v1/embeddings', '/v1/audio/speech']) {
    await isRefused(t, path, '{"model":""}')
  }
  t.strictSame(heard, [])
})

t.test('a body whose model is not a name is refused', async t => {
  for (const path of [
    '/v1/chat/completions', '/v1/completions', '/v1/responses', '/v1/messages', '/v1/messages/count_tokens', '/v1/embeddings',
    '/v1/images/generations', '/v1/images/edits', '/v1/audio/speech', '/v1beta/interactions', '/v1/other',
  ]) {
    for (const model of [' ', '\\t', '\\u0000', '.', '..', '/', '//', '../', '-']) await isRefused(t, path, `{"model":"${model}"}`)
    for (const model of ['5', 'true', '[]', '{}']) {
      const { status, json } = await ask(path, `{"model":${model}}`, KEY)
      t.equal(status, 400, `${path} ${model}`)
      t.match(json.error.message, "'model' must be a string", path)
    }
  }
  t.strictSame(heard, [])
})

t.test('a form whose model is not a name is refused', async t => {
  for (const path of ['/v1/images/edits', '/v1/images/variations', '/v1/audio/transcriptions', '/v1/other']) {
    for (const model of [' ', '..']) {
      const form = new FormData()
      form.append('model', model)
      form.append('file', new Blob(['x']), 'x')
      await isRefused(t, path, form)
    }
  }
  t.strictSame(heard, [])
})

t.test('model names in any script are accepted, and an endpoint that requires no model accepts an empty or missing model', async t => {
  for (const model of ['m', '7', '模型', 'é', '@cf/x', '-m']) {
    t.equal((await ask('/v1/chat/completions', JSON.stringify({ model }), KEY)).status, 200, model)
    t.equal((await ask(`/v1beta/models/${encodeURIComponent(model)}:generateContent`, '{}', KEY)).status, 200, model)
  }
  t.equal((await ask('/v1/images/generations', '{"model":null}', KEY)).status, 200)
  t.equal((await ask('/v1/images/generations', '{"model":""}', KEY)).status, 200)
  t.equal((await ask('/v1/images/generations', '{}', KEY)).status, 200)
  t.equal((await ask('/v1/other', '{}', KEY)).status, 200)
})

// Ends the test file, because the shared gateway keeps the process alive.
t.end()
