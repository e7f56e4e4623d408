import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { WebSocket } from 'ws'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'

const GOOD = 'Bearer sk-good'
const DEAD = 'auth: { bearer: sk-dead }'
const REFUSED = "the upstream refused the gateway's own credential: check upstreams.up.auth"

interface Provider {
  readonly url: string
  /** The credential and the path of each request so far. */
  readonly seen: string[]
}

/** A provider that accepts one key. */
async function startProvider(t: Test, status = 401): Promise<Provider> {
  const seen: string[] = []
  const refuse = (headers: IncomingHttpHeaders, url = '') => {
    seen.push(`${headers.authorization} ${url}`)
    return headers.authorization !== GOOD
  }
  const { url, server } = await startUpstream(t, async (req, res) => {
    const isRefused = refuse(req.headers, req.url)
    await bodyOf(req)
    res.writeHead(isRefused ? status : 200, { 'content-type': 'application/json' })
    res.end(isRefused ? '{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}' : '{"choices":[]}')
  })
  server.on('upgrade', (req, socket) => {
    refuse(req.headers, req.url)
    socket.end(`HTTP/1.1 ${status} Unauthorized\r\ncontent-length: 0\r\n\r\n`)
  })
  return { url, seen }
}

function configuration(url: string, auth: string, routes = '[{ to: up }]'): string {
  return `upstreams: { up: { url: "${url}", websocket: true, ${auth} }, other: { url: "${url}", auth: { bearer: sk-good } } }
routes: ${routes}
`
}

async function ask(gateway: TestGateway, model = 'm', path = '/v1/chat/completions'): Promise<number> {
  const response = await fetch(gateway.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [], input: 'x' }),
  })
  const text = await response.text()
  if (response.status !== 200) t.match(text, 'upstream_rejected_key')
  if (response.status !== 200) t.equal(response.headers.get('x-should-retry'), 'false')
  return response.status
}

function errors({ logged }: TestGateway): readonly unknown[] {
  return logged.filter(({ level }) => level === 50).map(({ msg }) => msg)
}

t.test('a refused credential is sent once, and logged once', async t => {
  const { url, seen } = await startProvider(t)
  const gateway = await startTestGateway(t, configuration(url, DEAD))
  for (let n = 0; n < 30; n++) t.equal(await ask(gateway), 502)
  t.strictSame(seen, ['Bearer sk-dead /v1/chat/completions'])
  t.strictSame(errors(gateway), [REFUSED])
  t.equal(gateway.logged.filter(({ msg, error }) => msg === 'exchange' && error === 'upstream_rejected_key').length, 30)
})

t.test('a credential that is refused to simultaneous requests is logged once', async t => {
  const { url } = await startProvider(t)
  const gateway = await startTestGateway(t, configuration(url, DEAD))
  t.strictSame(await Promise.all(Array.from({ length: 10 }, () => ask(gateway))), Array(10).fill(502))
  t.strictSame(errors(gateway), [REFUSED])
})

t.test('a credential refused for one model is still sent for other models and endpoints', async t => {
  const { url, seen } = await startProvider(t)
  const gateway = await startTestGateway(t, configuration(url, DEAD))
  for (let n = 0; n < 2; n++) {
    await ask(gateway, 'm')
    await ask(gateway, 'n')
    await ask(gateway, 'n', '/v1/embeddings')
  }
  t.equal(seen.length, 3)
})

t.test('if the credential of one target is refused, another target of the route responds', async t => {
  const { url, seen } = await startProvider(t)
  const gateway = await startTestGateway(t, configuration(url, DEAD, '[{ to: [up, other], strategy: ordered }]'))
  for (let n = 0; n < 5; n++) t.equal(await ask(gateway), 200)
  t.equal(seen.filter(each => each.startsWith('Bearer sk-dead')).length, 1)
  t.equal(seen.filter(each => each.startsWith(GOOD)).length, 5)
})

t.test('after a reload, requests go upstream again only if the refused credential was replaced', async t => {
  const { url, seen } = await startProvider(t)
  const gateway = await startTestGateway(t, configuration(url, DEAD))
  t.equal(await ask(gateway), 502)
  t.match(await gateway.change(configuration(url, `${DEAD}, headers: { x-a: b }`)), { applied: true })
  t.equal(await ask(gateway), 502)
  t.equal(seen.length, 1)
  t.match(await gateway.change(configuration(url, 'auth: { bearer: sk-good }')), { applied: true })
  t.equal(await ask(gateway), 200)
  t.equal(seen.length, 2)
})

t.test('after a change of the secret file, requests go upstream again', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'credentials-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'key')
  writeFileSync(file, 'sk-dead')
  const { url, seen } = await startProvider(t)
  const gateway = await startTestGateway(t, configuration(url, `auth: { bearer: { file: ${file} } }`))
  for (let n = 0; n < 3; n++) t.equal(await ask(gateway), 502)
  t.equal(seen.length, 1)
  writeFileSync(file, 'sk-good')
  t.equal(await ask(gateway), 200)
})

t.test('a 403 does not stop further requests, because the upstream may have refused the prompt', async t => {
  const { url, seen } = await startProvider(t, 403)
  const gateway = await startTestGateway(t, configuration(url, DEAD))
  for (let n = 0; n < 3; n++) t.equal(await ask(gateway), 502)
  t.equal(seen.length, 3)
})

t.test('after a refused credential, further WebSocket handshakes do not go upstream', async t => {
  const { url, seen } = await startProvider(t)
  const gateway = await startTestGateway(t, configuration(url, DEAD))
  for (let n = 0; n < 3; n++) {
    const { promise, resolve } = Promise.withResolvers<number>()
    const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}/v1/realtime?model=m`, { headers: { authorization: `Bearer ${KEY}` } })
    socket.on('unexpected-response', (_, { statusCode }) => resolve(statusCode ?? 0)).on('error', () => {})
    t.equal(await promise, 502)
  }
  t.equal(seen.length, 1)
  t.strictSame(errors(gateway), [REFUSED])
})

t.test('a credential that is refused for one client is still sent for other clients', async t => {
  const { url, seen } = await startProvider(t)
  const gateway = await startTestGateway(t, `${configuration(url, DEAD)}keys:
  - { name: a, key: ${KEY} }
  - { name: b, key: sk-other-0123456789abcdef }
`)
  const askWith = async (key: string) => {
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST', body: '{"model":"m","messages":[]}',
      headers: { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' },
    })
    await response.text()
    return response.status
  }
  for (const key of [KEY, KEY, 'sk-other-0123456789abcdef', 'sk-other-0123456789abcdef']) t.equal(await askWith(key), 502)
  t.equal(seen.length, 2)
  t.strictSame(errors(gateway), [REFUSED], 'one line is logged')
})

t.test('a client that chooses a wrong account neither disables a pooled credential nor opens a circuit', async t => {
  const credentials: string[] = []
  const { url } = await startUpstream(t, async (req, res) => {
    credentials.push(String(req.headers.authorization))
    await bodyOf(req)
    res.writeHead(req.headers['openai-organization'] ? 401 : 200, { 'content-type': 'application/json' })
    res.end(req.headers['openai-organization'] ? '{"error":{"message":"mismatched_organization"}}' : '{"choices":[]}')
  })
  const gateway = await startTestGateway(t, configuration(url, 'auth: { pool: [{ bearer: sk-one-12345 }, { bearer: sk-two-12345 }] }'))
  for (let n = 0; n < 4; n++) {
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST', body: '{"model":"m","messages":[]}',
      headers: { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json', 'openai-organization': 'org-wrong' },
    })
    t.equal(response.status, 502)
    await response.text()
  }
  t.equal(credentials.length, 4)
  for (let n = 0; n < 2; n++) t.equal(await ask(gateway), 200)
  t.strictSame(new Set(credentials.slice(4)), new Set(['Bearer sk-one-12345', 'Bearer sk-two-12345']))
  t.notOk(gateway.logged.some(({ msg }) => msg === 'credentials: one of the pool is paused'))
})
