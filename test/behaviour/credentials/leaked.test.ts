import type { ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import type { Test } from 'tap'
import { WebSocket } from 'ws'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'
import { chunk, connect, post, startWireUpstream } from '../../support/wire.ts'

const SECRET = 'sk-operator-0123456789'
const MASK = '*'.repeat(SECRET.length)
const LEAK = JSON.stringify({ error: { message: `Incorrect API key provided: ${SECRET}.`, type: 'invalid_request_error', code: 'x' } })
const MASKED = LEAK.replace(SECRET, MASK)

type Answer = (res: ServerResponse) => void

/** An upstream that responds as the test says, and a function that returns what the client gets. */
async function start(t: Test, answer: Answer, route = '{ to: up }') {
  const { url, server } = await startUpstream(t, async (req, res) => {
    t.equal(req.headers.authorization, `Bearer ${SECRET}`)
    await bodyOf(req)
    res.setHeader('content-type', 'application/json')
    answer(res)
  })
  server.on('upgrade', (_, socket) => {
    socket.end(`HTTP/1.1 403 Forbidden\r\ncontent-type: application/json\r\ncontent-length: ${LEAK.length}\r\nx-echo: ${SECRET}\r\n\r\n${LEAK}`)
  })
  const gateway = await startTestGateway(t, `
upstreams:
  up: { url: "${url}", websocket: true, auth: { bearer: ${SECRET} } }
routes: [${route}]
`)
  const ask = async (more: object = {}) => {
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x' }], ...more }),
    })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }
  return { gateway, ask }
}

const ROUTES = {
  'with one target': '{ to: up }',
  'with two targets': '{ to: [up, up], retries: 1 }',
  'with resume: hold': '{ to: up, resume: hold }',
  'with resume: continue': '{ to: up, resume: continue }',
}

for (const [name, route] of Object.entries(ROUTES)) {
  for (const status of [400, 404, 429, 500]) {
    t.test(`the credential is masked in an error ${status}, ${name}`, async t => {
      const { ask, gateway } = await start(t, res => res.writeHead(status, { 'x-echo': `<${SECRET}>` }).end(LEAK), route)
      for (const stream of [false, true]) {
        const { status: got, headers, text } = await ask({ stream })
        t.equal(got, status)
        t.equal(text, MASKED)
        t.equal(headers.get('x-echo'), `<${MASK}>`)
      }
      t.notMatch(JSON.stringify(gateway.logged), SECRET)
    })
  }
}

t.test('the credential is masked in an error that arrives in pieces', async t => {
  const { ask } = await start(t, async res => {
    res.writeHead(400)
    for (const byte of LEAK) {
      res.write(byte)
      await new Promise(resolve => setImmediate(resolve))
    }
    res.end()
  })
  t.equal((await ask()).text, MASKED)
})

t.test('the credential is masked in a compressed error', async t => {
  const { ask } = await start(t, res => res.writeHead(400, { 'content-encoding': 'gzip' }).end(gzipSync(LEAK)))
  const { headers, text } = await ask()
  t.equal(text, MASKED)
  t.equal(headers.get('content-encoding'), null)
})

t.test('the credential is masked in a translated error', async t => {
  const error = JSON.stringify({ type: 'error', error: { type: 'invalid_request_error', message: `no ${SECRET}` } })
  const { url } = await startUpstream(t, async (req, res) => {
    await bodyOf(req)
    res.writeHead(400, { 'content-type': 'application/json' }).end(error)
  })
  const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${url}", speaks: [messages], auth: { bearer: ${SECRET} } } }
routes: [{ to: up }]
`)
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x' }] }),
  })
  const text = await response.text()
  t.ok(text.includes(MASK))
  t.notMatch(text, SECRET)
})

t.test('the credential is masked in the response to a refused WebSocket', async t => {
  const { gateway } = await start(t, res => res.end())
  const { promise, resolve } = Promise.withResolvers<string>()
  const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}/v1/realtime?model=m`, { headers: { authorization: `Bearer ${KEY}` } })
  socket.on('error', () => {}).on('unexpected-response', (_, res) => {
    void bodyOf(res).then(body => resolve(JSON.stringify(res.headers) + String(body)))
  })
  t.notMatch(await promise, SECRET)
})

t.test('the credential is masked in a header of a successful response, and the body is forwarded unchanged', async t => {
  const body = JSON.stringify({ choices: [], text: SECRET })
  const { ask } = await start(t, res => res.writeHead(200, { 'x-echo': SECRET }).end(body))
  const { headers, text } = await ask()
  t.equal(headers.get('x-echo'), MASK)
  t.equal(text, body)
})

t.test('a compressed error without the credential is forwarded byte for byte', async t => {
  const bytes = gzipSync('{"error":{"message":"no"}}')
  const head = `HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\n`
  for (const [framing, body] of [
    [`content-length: ${bytes.length}`, bytes.toString('latin1')],
    ['transfer-encoding: chunked', `${chunkOf(bytes)}0\r\n\r\n`],
  ] as const) {
    const upstream = await startWireUpstream(t, async wire => {
      await wire.request()
      wire.send(`${head}${framing}\r\n\r\n${body}`)
    })
    const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${upstream.url}", auth: { bearer: ${SECRET} } } }
routes: [{ to: up }]
`)
    const client = await connect(t, gateway.url)
    client.send(post('/v1/chat/completions', { model: 'm', messages: [] }, ['Accept-Encoding: gzip']))
    const text = await client.until(new RegExp(RegExp.escape(bytes.toString('latin1'))))
    t.match(text, /content-encoding: gzip/)
  }
})

t.test('a compressed error that is too large to be searched is forwarded', async t => {
  const bytes = Buffer.alloc(300_000, 'no gzip at all ')
  const { ask } = await start(t, res => res.writeHead(400, { 'content-encoding': 'unknown' }).end(bytes))
  t.equal((await ask()).text.length, bytes.length)
})

function chunkOf(bytes: Buffer): string {
  return chunk(bytes.toString('latin1'))
}

t.test('a credential in the configured headers of an upstream is masked, and other configured headers are not', async t => {
  const { url } = await startUpstream(t, async (req, res) => {
    await bodyOf(req)
    res.writeHead(400, { 'content-type': 'application/json' })
    res.end(JSON.stringify({ error: { message: `${req.headers['cf-access-client-secret']} ${req.headers['x-region']}` } }))
  })
  for (const auth of ['', `, auth: { bearer: ${SECRET} }`]) {
    const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${url}", headers: { cf-access-client-secret: front-door-0123456789, x-region: region-of-the-operator }${auth} } }
routes: [{ to: up }]
`)
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST', body: '{"model":"m","messages":[]}',
      headers: { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json' },
    })
    const text = await response.text()
    t.match(text, `${'*'.repeat('front-door-0123456789'.length)} region-of-the-operator`)
  }
})
