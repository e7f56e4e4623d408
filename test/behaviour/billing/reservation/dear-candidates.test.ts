import { once } from 'node:events'
import t from 'tap'
import { WebSocket } from 'ws'
import { KEY } from '../../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../../support/upstream.ts'
import { openBooks } from '../books.ts'

/*
 * If a request has several candidates, the budget reserves the cost of the most expensive, because
 * the candidate that responds is known only later.
 */

const HEADERS = { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json' }
const BODY = JSON.stringify({ model: 'm', messages: [], max_tokens: 1000 })
const ANSWER = JSON.stringify({ usage: { prompt_tokens: 1, completion_tokens: 1000 } })
const REFUSAL = JSON.stringify({ error: { code: 'context_length_exceeded', message: 'too long' } })
const MODELS = `models:
  cheap: { price: { input: 0, output: 1 } }
  dear: { price: { input: 0, output: 10 } }`

const ROUTES = [
  ['the second target of the route is more expensive', 'to: [{ upstream: ill, model: cheap }, { upstream: up, model: dear }]', 3],
  [
    'the target of on.context_length is more expensive',
    'to: { upstream: ill, model: cheap }, retries: 0, on: { context_length: { upstream: up, model: dear } }', 3,
  ],
  [
    'with retries: 0, the more expensive second target is not used',
    'to: [{ upstream: up, model: cheap }, { upstream: up, model: dear }], retries: 0', 12,
  ],
] as const

for (const [what, route, served] of ROUTES) {
  t.test(`simultaneous requests with failover do not overspend: ${what}`, async t => {
    const held: (() => void)[] = []
    let refused = 0
    const { promise: decided, resolve: decide } = Promise.withResolvers<void>()
    const count = () => {
      if (held.length + refused === 12) decide()
    }
    const ill = await startUpstream(t, (req, res) => {
      const status = route.includes('context_length') ? 400 : 503
      void bodyOf(req).then(() => res.writeHead(status, { 'content-type': 'application/json' }).end(REFUSAL))
    })
    const up = await startUpstream(t, (req, res) => {
      void bodyOf(req).then(() => {
        held.push(() => res.setHeader('content-type', 'application/json').end(ANSWER))
        count()
      })
    })
    const books = await openBooks(t, `
upstreams: { ill: { url: "${ill.url}" }, up: { url: "${up.url}" } }
routes: [{ ${route} }]
limits: { budget: { usd: 0.0315, per: total } }
${MODELS}`)
    const ask = async (): Promise<void> => {
      const answer = await fetch(`${books.gateway.url}/v1/chat/completions`, {
        method: 'POST', headers: HEADERS, body: BODY,
      })
      await answer.text()
      if (answer.status !== 200) refused++
      count()
    }
    const all = Array.from({ length: 12 }, ask)
    await decided
    t.equal(held.length, served)
    for (const answer of held) answer()
    await Promise.all(all)
  })
}

t.test('a key with a budget cannot use a route with an unpriced target', async t => {
  const up = await startUpstream(t, (_req, res) => res.writeHead(503).end())
  const books = await openBooks(t, `
upstreams: { up: { url: "${up.url}", websocket: true } }
routes: [{ to: [{ upstream: up, model: cheap }, { upstream: up, model: nobody-knows }] }]
limits: { budget: { usd: 1, per: total } }
${MODELS}`)
  const { url } = books.gateway
  const answer = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers: HEADERS, body: BODY })
  t.equal(answer.status, 403)
  t.match(await answer.json(), { error: { message: /price/ } })
  const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/realtime?model=m`, { headers: HEADERS })
  const [, refused] = await once(socket, 'unexpected-response')
  t.equal(refused.statusCode, 403)
  const rows = [...(await books.close()).values()]
  t.strictSame(rows.map(({ end, error }) => [end, error]), [
    ['refused', 'model_unpriced'], ['refused', 'model_unpriced'],
  ])
})
