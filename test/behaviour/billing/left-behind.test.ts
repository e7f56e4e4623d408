import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { KEY } from '../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'
import { costOf, openBooks, priced } from './books.ts'

const HEADERS = { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json' }
const PIECE = 'data: {"choices":[{"index":0,"delta":{"content":"hello there "}}]}\n\n'
const LAST = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
const USAGE = 'data: {"choices":[],"usage":{"prompt_tokens":70,"completion_tokens":7}}\n\n'

const ANSWERS = [
  {
    what: 'a held stream', route: 'to: up, resume: hold', stream: true,
    type: 'text/event-stream', answer: PIECE.repeat(100), paid: { input: 8, output: 201 }, source: 'estimated',
  },
  {
    what: 'a held stream with reported usage', route: 'to: up, resume: hold', stream: true,
    type: 'text/event-stream', answer: PIECE + USAGE, paid: { input: 70, output: 7 }, source: 'reported',
  },
  {
    what: 'a held stream without its end marker', route: 'to: up, resume: hold', stream: true,
    type: 'text/event-stream', answer: PIECE + LAST + USAGE, paid: { input: 70, output: 7 }, source: 'reported',
  },
  {
    what: 'half a response of a route with two targets', route: 'to: [up, { upstream: up, model: n }]', stream: false,
    type: 'application/json', answer: `{"choices":[{"message":{"content":"${'hello there '.repeat(200)}`,
    paid: { input: 8, output: 609 }, source: 'estimated',
  },
] as const

async function heldBytes(url: string): Promise<number> {
  const status = (await (await fetch(`${url}/api/status`)).json()) as { body_bytes: number }
  return status.body_bytes
}

for (const { what, route, stream, type, answer, paid, source } of ANSWERS) {
  t.test(`${what}: a client that disconnects pays for the part that has arrived`, async t => {
    const upstream = await startUpstream(t, (req, res) => {
      void bodyOf(req).then(() => {
        res.writeHead(200, { 'content-type': type }).write(answer)
      })
    })
    const books = await openBooks(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ ${route} }]
${priced('m')}`)
    const leaving = new AbortController()
    const asked = fetch(`${books.gateway.url}/v1/chat/completions`, {
      method: 'POST', headers: HEADERS, signal: leaving.signal,
      body: JSON.stringify({ model: 'm', stream, messages: [{ role: 'user', content: 'hello' }] }),
    })
    // The gateway holds the response back, and the client gets nothing.
    while (await heldBytes(books.gateway.url) < answer.length) await setImmediate()
    leaving.abort()
    await t.rejects(asked)
    await books.gateway.waitForLog(line => line.msg === 'exchange')
    const [row] = [...(await books.close()).values()]
    t.match(row, { end: 'client_gone', status: 499, source, costPico: costOf(paid), bytesOut: 0 })
    t.match(row?.usage, { inputTokens: paid.input, outputTokens: paid.output })
  })
}

t.test('concurrency is released before the tokens of a stream whose client disconnected are counted', async t => {
  const left = Promise.withResolvers<void>()
  const upstream = await startUpstream(t, (req, res) => {
    void bodyOf(req).then(() => {
      res.writeHead(200, { 'content-type': 'text/event-stream' }).write(PIECE.repeat(20_000))
      res.on('close', left.resolve)
    })
  })
  const books = await openBooks(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
limits: { concurrent: 1 }
${priced('m')}`)
  const ask = (signal: AbortSignal) => fetch(`${books.gateway.url}/v1/chat/completions`, {
    method: 'POST', headers: HEADERS, signal,
    body: JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content: 'hello' }] }),
  })
  const leaving = new AbortController()
  const answer = await ask(leaving.signal)
  await answer.body?.getReader().read()
  leaving.abort()
  await left.promise
  const again = new AbortController()
  t.equal((await ask(again.signal)).status, 200)
  t.notOk(books.gateway.logged.some(line => line.msg === 'exchange'), 'the first request is not settled yet')
  again.abort()
})

t.test('a client that disconnects while the body of an error response arrives pays nothing', async t => {
  const refusal = `{"error":{"message":"${'too many '.repeat(200)}`
  const upstream = await startUpstream(t, (req, res) => {
    void bodyOf(req).then(() => {
      res.writeHead(429, { 'content-type': 'application/json' }).write(refusal)
    })
  })
  const books = await openBooks(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: [up, { upstream: up, model: n }], retries: 20 }]
${priced('m', 'n')}`)
  const leaving = new AbortController()
  const asked = fetch(`${books.gateway.url}/v1/chat/completions`, {
    method: 'POST', headers: HEADERS, signal: leaving.signal,
    body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hello' }] }),
  })
  while (await heldBytes(books.gateway.url) < refusal.length) await setImmediate()
  leaving.abort()
  await t.rejects(asked)
  await books.gateway.waitForLog(line => line.msg === 'exchange')
  const [row] = [...(await books.close()).values()]
  t.match(row, { end: 'client_gone', source: 'none', costPico: 0n })
})

t.test('a client that disconnects after an error event pays nothing', async t => {
  const upstream = await startUpstream(t, (req, res) => {
    void bodyOf(req).then(() => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      res.write('data: {"error":{"message":"overloaded"}}\n\n')
    })
  })
  const books = await openBooks(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
${priced('m')}`)
  const leaving = new AbortController()
  const answer = await fetch(`${books.gateway.url}/v1/chat/completions`, {
    method: 'POST', headers: HEADERS, signal: leaving.signal,
    body: JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content: 'hello' }] }),
  })
  await answer.body?.getReader().read()
  leaving.abort()
  await books.gateway.waitForLog(line => line.msg === 'exchange')
  const [row] = [...(await books.close()).values()]
  t.match(row, { end: 'error', source: 'none', costPico: 0n })
})
