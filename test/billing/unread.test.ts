import { gzipSync } from 'node:zlib'
import t from 'tap'
import { KEY } from '../support/gateway.ts'
import { bodyOf, startUpstream } from '../support/upstream.ts'
import { openBooks, priced } from './books.ts'

const EVENTS = 'data: {"choices":[{"index":0,"delta":{"content":"hi"}}]}\n\ndata: [DONE]\n\n'

t.test('an answer that passes unread: its cost is unknown, and its reservation stands', async t => {
  const upstream = await startUpstream(t, (req, res) => {
    void bodyOf(req).then(() => {
      res.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' })
      res.end(gzipSync(EVENTS))
    })
  })
  const books = await openBooks(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
limits: { tokens_per_minute: 1000, budget: { usd: 0.01, per: total } }
${priced('m')}`)
  const ask = async (): Promise<number> => {
    const answer = await fetch(`${books.gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'm', stream: true, max_tokens: 600, messages: [{ role: 'user', content: 'hello' }],
      }),
    })
    await answer.text()
    return answer.status
  }
  t.equal(await ask(), 200)
  await books.gateway.waitForLog(line => line.msg === 'exchange')
  t.equal(await ask(), 429, 'it may have used what was set aside')
  const rows = [...(await books.close()).values()]
  t.match(rows[0], { end: 'complete', usage: { inputTokens: 8, outputTokens: null }, costPico: null })
})

t.test('where the price is by the request alone, it is known all the same', async t => {
  const upstream = await startUpstream(t, (req, res) => {
    void bodyOf(req).then(() => {
      res.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' })
      res.end(gzipSync(EVENTS))
    })
  })
  const books = await openBooks(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
models: { m: { price: { per_request: 0.5 } } }`)
  const answer = await fetch(`${books.gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', stream: true, messages: [] }),
  })
  await answer.text()
  const [row] = [...(await books.close()).values()]
  t.equal(row?.costPico, 500_000_000_000n)
})
