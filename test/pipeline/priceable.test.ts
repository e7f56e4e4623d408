import { once } from 'node:events'
import t from 'tap'
import { WebSocket } from 'ws'
import { startTestGateway } from '../support/gateway.ts'
import { bodyOf, startUpstream } from '../support/upstream.ts'

/* A key or group with a budget is refused requests that the gateway cannot price; requests without cost are served. */

const BUDGET = 'sk-budget-0123456789abcdef'
const GROUP = 'sk-group-0123456789abcdef'
const MODEL_BUDGET = 'sk-model-budget-0123456789'
const FREE = 'sk-free-0123456789abcdef'

let requests = 0
const upstream = await startUpstream(t, async (req, res) => {
  requests++
  await bodyOf(req)
  res.setHeader('content-type', 'application/json').end('{}')
})
const ROUTES = {
  'a route of a model': '[{ model: "gpt-*", to: up }, { to: up }]',
  'a route with a path': '[{ path: "/*", to: up }]',
}
const gateways = new Map(await Promise.all(Object.entries(ROUTES).map(async ([what, routes]) => [what, await startTestGateway(t, `
upstreams: { up: { url: "${upstream.url}", websocket: true } }
routes: ${routes}
groups: { team: { limits: { budget: { usd: 5, per: day } } } }
keys:
  - { name: budget, key: ${BUDGET}, limits: { budget: { usd: 5, per: total } } }
  - { name: group, key: ${GROUP}, group: team }
  - { name: model-budget, key: ${MODEL_BUDGET}, limits: { models: { "gpt-*": { budget: { usd: 5, per: day } } } } }
  - { name: free, key: ${FREE} }
models:
  gpt-1: { price: { input: 1, output: 1 } }
  gpt-each: { price: { per_request: 2 } }
  gpt-zero: { price: { input: 0, output: 0 } }
`)] as const)))

async function ask(url: string, key: string, method: string, path: string, body: string | null, headers = {}) {
  requests = 0
  const response = await fetch(url + path, {
    method, body, headers: { 'x-api-key': key, ...body !== null && { 'content-type': 'application/json' }, ...headers },
  })
  return { status: response.status, text: await response.text(), requests }
}

const NAMED = JSON.stringify({ model: 'gpt-1' })
const UNNAMED = JSON.stringify({ input: 'x' })
const VERTEX = '/v1/projects/p/locations/l'
const UNPRICED: readonly (readonly [method: string, path: string, body: string | null])[] = [
  ['POST', '/v1/fine_tuning/jobs', NAMED],
  ['POST', '/v1/videos', NAMED],
  ['POST', '/v1/videos', UNNAMED],
  ['POST', '/v1/videos/v1/remix', UNNAMED],
  ['POST', '/v1/rerank', NAMED],
  ['POST', '/v1/evals', UNNAMED],
  ['POST', '/v1/evals/e1/runs', UNNAMED],
  ['POST', '/v1/containers', UNNAMED],
  ['POST', '/v1/threads/runs', UNNAMED],
  ['POST', '/v1/threads/t1/runs', UNNAMED],
  ['POST', '/v1/images/variations', NAMED],
  ['POST', '/v1/vector_stores', UNNAMED],
  ['POST', '/v1/vector_stores/v1/search', UNNAMED],
  ['POST', '/v1/realtime/client_secrets', UNNAMED],
  ['POST', '/v1/anything/else', NAMED],
  ['POST', '/v1/anything/else', UNNAMED],
  ['POST', '/v1/anything/else', null],
  ['PUT', '/v1/anything/else', NAMED],
  ['PATCH', '/v1/anything/else', UNNAMED],
  ['POST', '/v1/Videos/', NAMED],
  ['POST', '/v1/chat/completions/c1', NAMED],
  ['POST', '/v1/files/f1/else', UNNAMED],
  ['POST', '/v1/skills', UNNAMED],
  ['POST', '/v1/messages/batches', NAMED],
  ['POST', '/v1/messages/else', NAMED],
  ['POST', '/v1beta/models/gpt-1:predict', UNNAMED],
  ['POST', '/v1beta/models/gpt-1:predictLongRunning', UNNAMED],
  ['POST', '/v1beta/models/gpt-1%3Apredict', UNNAMED],
  ['POST', '/v1beta/models/gpt-1:batchGenerateContent', UNNAMED],
  ['POST', '/v1beta/models/gpt-1:unheardOf', UNNAMED],
  ['POST', '/v1beta/models/gpt-1/operations/o:generate', UNNAMED],
  ['POST', '/v1beta/tunedModels', UNNAMED],
  ['POST', '/v1beta/cachedContents', UNNAMED],
  ['PATCH', '/v1beta/cachedContents/c1', UNNAMED],
  ['POST', '/upload/v1beta/fileSearchStores/s:uploadToFileSearchStore', UNNAMED],
  ['POST', `${VERTEX}/publishers/google/models/gpt-1:predict`, UNNAMED],
  ['POST', `${VERTEX}/publishers/google/models/gpt-1`, UNNAMED],
  ['POST', `${VERTEX}/endpoints/gpt-1:predict`, UNNAMED],
  ['POST', `${VERTEX}/batchPredictionJobs`, NAMED],
  ['POST', `${VERTEX}/tuningJobs`, UNNAMED],
  ['POST', '/openai/deployments/gpt-1/unheard-of?api-version=1', UNNAMED],
  ['POST', '/openai/v1/videos', NAMED],
  ['POST', '/openai/fine_tuning/jobs?api-version=1', NAMED],
]

for (const [routes, gateway] of gateways) {
  for (const [method, path, body] of UNPRICED) {
    t.test(`a budget refuses ${method} ${path} ${body} on ${routes}`, async t => {
      for (const key of [BUDGET, GROUP, MODEL_BUDGET]) {
        const refused = await ask(gateway.url, key, method, path, body)
        t.equal(refused.status, 403, key)
        t.match(refused.text, 'budget')
        t.match(refused.text, 'cost is unknown')
        t.match(refused.text, 'operator')
        t.equal(refused.requests, 0)
      }
      t.equal((await ask(gateway.url, FREE, method, path, body)).status, 200)
    })
  }
}

const [gateway] = gateways.values()
const url = gateway?.url ?? ''

const FREE_OF_CHARGE: readonly (readonly [method: string, path: string, body: string | null])[] = [
  ['GET', '/v1/videos/v1/content', null],
  ['HEAD', '/v1/anything/else', null],
  ['DELETE', '/v1/anything/else', null],
  ['GET', '/v1beta/models/gpt-1/operations/o', null],
  ['POST', '/v1/files', UNNAMED],
  ['POST', '/v1/uploads/u1/complete', UNNAMED],
  ['POST', '/upload/v1beta/files', UNNAMED],
  ['POST', '/openai/v1/files', UNNAMED],
  ['POST', '/v1/conversations', UNNAMED],
  ['POST', '/v1/responses/r1/cancel', null],
  ['POST', '/v1/fine_tuning/jobs/j1/cancel', null],
  ['POST', '/v1/messages/batches/b1/cancel', null],
  ['POST', `${VERTEX}/operations/o1:cancel`, null],
  ['POST', `${VERTEX}/publishers/google/models/gpt-1:fetchPredictOperation`, UNNAMED],
  ['POST', '/v1/messages/count_tokens', NAMED],
]
for (const [method, path, body] of FREE_OF_CHARGE) {
  t.test(`a budget allows ${method} ${path}, which costs nothing`, async t => {
    t.equal((await ask(url, BUDGET, method, path, body)).status, 200)
  })
}

t.test('a budget refuses a GET with a method override header', async t => {
  for (const name of ['x-http-method-override', 'x-http-method', 'x-method-override']) {
    t.equal((await ask(url, BUDGET, 'GET', '/v1/anything/else', null, { [name]: 'POST' })).status, 403, name)
  }
})

t.test('a budget of other models does not apply to the named model', async t => {
  const body = JSON.stringify({ model: 'other' })
  t.equal((await ask(url, MODEL_BUDGET, 'POST', '/v1/rerank', body)).status, 200)
})

t.test('a budget allows a model with only a price per request, or with a price of 0', async t => {
  for (const model of ['gpt-each', 'gpt-zero']) {
    t.equal((await ask(url, BUDGET, 'POST', '/v1/rerank', JSON.stringify({ model }))).status, 200, model)
  }
  await Promise.all(Array.from({ length: 4 }, () => ask(url, BUDGET, 'POST', '/v1/rerank', JSON.stringify({ model: 'gpt-each' }))))
  t.equal((await ask(url, BUDGET, 'POST', '/v1/rerank', JSON.stringify({ model: 'gpt-each' }))).status, 429, 'the budget is spent')
})

for (const path of ['/v1/anything/else', '/v1/chat/completions', '/v1beta/models/gpt-1:generateContent',
  '/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent'.replace('/ws/', '/v1beta/'), '/v1/realtime']) {
  t.test(`a budget refuses a WebSocket on ${path}`, async t => {
    for (const key of [BUDGET, GROUP]) {
      const socket = new WebSocket(url.replace('http', 'ws') + path, { headers: { 'x-api-key': key } })
      const [, refused] = await once(socket, 'unexpected-response')
      t.equal(refused.statusCode, 403)
    }
  })
}
