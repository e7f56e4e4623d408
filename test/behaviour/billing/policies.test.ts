import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import { CONSOLE, operatorOf } from '../../support/operator.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'
import { connect, post, startWireUpstream } from '../../support/wire.ts'
import type { Wire } from '../../support/wire.ts'
import { costOf, openBooks, priced } from './books.ts'

const HEADERS = { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json' }
const MESSAGES = [{ role: 'user', content: 'hello' }]
const CONTENT = 'data: {"choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n'
const USAGE = 'data: {"choices":[],"usage":{"prompt_tokens":70,"completion_tokens":7,"total_tokens":77}}\n\n'
const DONE = 'data: [DONE]\n\n'

const NO = { stream_options: { include_usage: false } }
const YES = { stream_options: { include_usage: true } }

const ASKING = [
  { name: 'the gateway requests usage and hides it from the client', options: {}, usage: 'ask', asked: true, seen: false },
  { name: 'the gateway requests usage even if include_usage is false', options: NO, usage: 'ask', asked: true, seen: false },
  { name: 'a client that sends include_usage: true gets usage', options: YES, usage: 'ask', asked: true, seen: true },
  { name: 'the gateway does not request usage', options: {}, usage: 'as_is', asked: false, seen: false },
  { name: 'a client that sends include_usage: true gets usage', options: YES, usage: 'as_is', asked: true, seen: true },
] as const

for (const { name, options, usage, asked, seen } of ASKING) {
  t.test(`with usage: ${usage}, ${name}`, async t => {
    let wasAsked: unknown
    const upstream = await startUpstream(t, (req, res) => {
      void bodyOf(req).then(body => {
        const { stream_options: told } = JSON.parse(body.toString()) as {
          stream_options?: { include_usage?: boolean }
        }
        wasAsked = told?.include_usage === true
        res.writeHead(200, { 'content-type': 'text/event-stream' })
        res.end(CONTENT + (wasAsked === true ? USAGE : '') + DONE)
      })
    })
    const books = await openBooks(t, `
upstreams: { up: { url: "${upstream.url}", usage: ${usage} } }
routes: [{ to: up }]
${priced('m')}`)
    const answer = await fetch(`${books.gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: HEADERS,
      body: JSON.stringify({ model: 'm', stream: true, messages: MESSAGES, ...options }),
    })
    t.equal(await answer.text(), CONTENT + (seen ? USAGE : '') + DONE)
    t.equal(wasAsked, asked)
    const [row] = [...(await books.close()).values()]
    const [input, output] = asked ? [70, 7] : [8, 1]
    t.match(row, {
      end: 'complete', source: asked ? 'reported' : 'estimated', costPico: costOf({ input, output }),
    })
  })
}

for (const abandoned of ['prompt', 'none'] as const) {
  t.test(`with billing.abandoned: ${abandoned}, a client that disconnects before any response pays for: ${abandoned}`, async t => {
    const reached = Promise.withResolvers<void>()
    const upstream = await startWireUpstream(t, async wire => {
      await wire.request()
      reached.resolve()
      await wire.ended
    })
    const books = await openBooks(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
billing: { abandoned: ${abandoned} }
${priced('m')}`)
    const client = await connect(t, books.gateway.url)
    client.send(post('/v1/chat/completions', { model: 'm', messages: MESSAGES }))
    await reached.promise
    client.socket.destroy()
    await books.gateway.waitForLog(line => line.msg === 'exchange')
    const rows = [...(await books.close()).values()]
    const paid = abandoned === 'prompt'
    t.equal(rows.length, 1)
    t.match(rows[0], {
      end: 'client_gone', source: paid ? 'estimated' : 'none',
      costPico: costOf({ input: paid ? 8 : 0, output: 0 }),
    })
    t.equal(rows[0]?.usage.inputTokens, paid ? 8 : null)
  })
}

/** Cases in which a client disconnects while no upstream works on its request; each calls `leave` at that moment. */
const IDLE: Record<string, { https?: boolean, play(wire: Wire, leave: () => void): Promise<void> }> = {
  'before its request is sent upstream': {
    https: true,
    async play(wire, leave) {
      leave()
      await wire.ended
    },
  },
  'while an error response arrives': {
    async play(wire, leave) {
      await wire.request()
      wire.socket.write('HTTP/1.1 503 Busy\r\nContent-Length: 9\r\n\r\n{', leave)
      await wire.ended
    },
  },
  'between a failed attempt and its retry': {
    async play(wire) {
      await wire.request()
      wire.socket.end('HTTP/1.1 200 OK\r\nRetry-After: 5\r\nContent-Length: 9\r\n\r\n{')
    },
  },
}
for (const [when, { https, play }] of Object.entries(IDLE)) {
  t.test(`a client that disconnects ${when} pays nothing`, async t => {
    const moment = Promise.withResolvers<void>()
    const upstream = await startWireUpstream(t, wire => play(wire, moment.resolve))
    const url = https ? upstream.url.replace('http:', 'https:') : upstream.url
    const books = await openBooks(t, `
upstreams: { up: { url: "${url}" } }
routes: [{ to: up, retries: 1 }]
${priced('m')}`)
    const failed = books.gateway.waitForLog(line => line.msg === 'attempt failed')
    const client = await connect(t, books.gateway.url)
    client.send(post('/v1/chat/completions', { model: 'm', messages: MESSAGES }))
    await Promise.race([moment.promise, failed])
    // After two further responses the gateway has processed all earlier data.
    for (let n = 0; n < 2; n++) await fetch(`${books.gateway.url}/v1/models`)
    client.socket.destroy()
    await books.gateway.waitForLog(line => line.endpoint === 'chat.completions')
    const [row] = [...(await books.close()).values()]
    t.match(row, { end: 'client_gone', source: 'none', costPico: 0n })
  })
}

t.test('responses to a limited key have rate limit headers, and a failed request costs nothing', async t => {
  const upstream = await startWireUpstream(t, async wire => {
    await wire.request()
    wire.socket.destroy()
  })
  const books = await openBooks(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up, retries: 0 }]
limits: { requests_per_minute: 1, tokens_per_minute: 100000 }
${priced('m')}`)
  const ask = () => fetch(`${books.gateway.url}/v1/chat/completions`, {
    method: 'POST', headers: HEADERS, body: JSON.stringify({ model: 'm', messages: MESSAGES }),
  })
  const failed = await ask()
  t.equal(failed.status, 502)
  const refused = await ask()
  t.equal(refused.status, 429)
  t.match(await refused.json(), { error: { code: 'rate_limit_exceeded' } })
  for (const [what, { headers }] of Object.entries({ failed, refused })) {
    t.equal(headers.get('x-ratelimit-limit-requests'), '1', what)
    t.equal(headers.get('x-ratelimit-remaining-requests'), '0', what)
    t.equal(headers.get('x-ratelimit-limit-tokens'), '100000', what)
  }
  t.equal(refused.headers.get('x-ratelimit-remaining-tokens'), '100000', 'the reservation is released')
  t.ok(Number(refused.headers.get('retry-after')) > 0)
  const rows = [...(await books.close()).values()]
  t.strictSame(rows.map(({ end }) => end), ['error', 'refused'])
  t.ok(rows.every(({ costPico, source }) => costPico === 0n && source === 'none'))
})

t.test('after an embedding, the part of the reservation that was not used is released', async t => {
  const upstream = await startUpstream(t, (req, res) => {
    void bodyOf(req).then(() => {
      res.writeHead(200, { 'content-type': 'application/json' }).end('{"data":[],"usage":{"prompt_tokens":5}}')
    })
  })
  const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
limits: { tokens_per_minute: 1000 }`)
  for (const n of [1, 2, 3]) {
    const answer = await fetch(`${gateway.url}/v1/embeddings`, {
      method: 'POST', headers: HEADERS, body: JSON.stringify({ model: 'm', input: 'to be or not to be '.repeat(180) }),
    })
    await answer.text()
    t.equal(answer.status, 200)
    await gateway.waitForLog(() => gateway.logged.filter(line => line.msg === 'exchange').length === n)
  }
})

t.test('if the ledger file belongs to another program, requests are served, and log and status report the error', async t => {
  const upstream = await startUpstream(t, (_req, res) => {
    res.writeHead(200, { 'content-type': 'application/json' }).end('{"choices":[]}')
  })
  const directory = mkdtempSync(join(tmpdir(), 'gateway-foreign-'))
  t.teardown(() => rmSync(directory, { recursive: true }))
  const file = join(directory, 'foreign.db')
  const foreign = new DatabaseSync(file)
  foreign.exec('CREATE TABLE notes (text TEXT)')
  foreign.close()
  const gateway = await startTestGateway(t, `
server: { listen: 127.0.0.1:0 }
${CONSOLE}
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
ledger: { file: ${JSON.stringify(file)} }`)
  const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST', headers: HEADERS, body: JSON.stringify({ model: 'm', messages: MESSAGES }),
  })
  t.equal(answer.status, 200)
  t.equal(await answer.text(), '{"choices":[]}')
  await gateway.waitForLog(line => line.msg === 'the ledger cannot be written')
  const status = await operatorOf(gateway.addresses.console)
  t.match(await status(), { success: true, ledger: { healthy: false, waiting: Number, lost: 0, error: /^foreign: / } })
  t.match(await (await fetch(`${gateway.url}/api/status`)).json(), { success: true, ledger: { healthy: false, error: /^foreign$/ } })
})

t.test('the status shows whether the ledger works or is missing', async t => {
  const CONFIG = 'upstreams: { demo: { simulator: true } }\nroutes: [{ to: demo }]\n'
  for (const [more, expected] of [
    [`ledger: { file: ${JSON.stringify(`${t.testdir({})}/l.db`)} }`,
      { healthy: true, waiting: 0, lost: 0, error: null }],
    ['', null],
  ] as const) {
    const gateway = await startTestGateway(t, CONFIG + more)
    const { ledger } = await (await fetch(`${gateway.url}/api/status`)).json() as { ledger: unknown }
    t.strictSame(ledger, expected)
  }
})
