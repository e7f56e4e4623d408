import t from 'tap'
import type { Test } from 'tap'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { sendJson, startTokenServer } from '../../support/token-server.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'

/** How the upstream responds to a credential: status and headers. */
type Treatment = readonly [status: number, headers?: Record<string, string>]

t.test('requests use the credentials of a pool in turn', async t => {
  const { gateway, uses } = await start(t)
  for (let i = 0; i < 30; i++) t.equal((await ask(gateway)).status, 200)
  t.strictSame(Object.fromEntries(uses), { 'key-1': 10, 'key-2': 10, 'key-3': 10 })
})

t.test('only the credential at its rate limit is paused, and the request is sent with the next credential', async t => {
  const { gateway, uses, treat } = await start(t)
  treat('key-2', [429, { 'retry-after': '60' }])
  for (let i = 0; i < 30; i++) t.equal((await ask(gateway)).status, 200)
  t.equal(uses.get('key-2'), 1)
  const resting = gateway.logged.filter(({ msg }) => msg === 'credentials: one of the pool is paused')
  t.match(resting, [{ upstream: 'up', credential: 2, of: 3, status: 429, rest_ms: 60_000 }])
  t.equal(resting.length, 1)
})

t.test('only the refused credential is paused', async t => {
  const { gateway, uses, treat } = await start(t)
  treat('key-1', [401])
  for (let i = 0; i < 9; i++) t.equal((await ask(gateway)).status, 200)
  t.equal(uses.get('key-1'), 1)
})

t.test('a stream is also sent with the next credential', async t => {
  const { gateway, treat } = await start(t)
  treat('key-1', [429])
  const { status, body } = await ask(gateway, { stream: true })
  t.equal(status, 200)
  t.match(body, /data: \[DONE\]/)
})

t.test('if all credentials are paused, the client gets 429 with Retry-After and no request is sent upstream', async t => {
  const { gateway, uses, treat } = await start(t)
  for (const key of ['key-1', 'key-2', 'key-3']) treat(key, [429, { 'retry-after': '30' }])
  const first = await ask(gateway)
  t.equal(first.status, 429)
  t.equal(first.headers.get('retry-after'), '30', 'the response of the upstream')
  t.equal([...uses.values()].reduce((a, b) => a + b), 3)
  const second = await ask(gateway)
  t.equal(second.status, 429)
  t.match(Number(second.headers.get('retry-after')), 30)
  t.match(JSON.parse(second.body), { error: { code: 'upstream_rate_limited', type: 'rate_limit_error' } })
  t.equal([...uses.values()].reduce((a, b) => a + b), 3)
})

t.test('the next target is tried if all credentials are paused', async t => {
  const { gateway, treat } = await start(t, ', other')
  for (const key of ['key-1', 'key-2', 'key-3']) treat(key, [429, { 'retry-after': '30' }])
  for (let i = 0; i < 3; i++) {
    const { status, headers } = await ask(gateway)
    t.equal(status, 200)
    t.equal(headers.get('x-gateway-upstream'), 'other')
  }
})

t.test('a credential near its rate limit is used only if all other credentials are paused', async t => {
  const { gateway, uses, treat } = await start(t)
  treat('key-1', [200, { 'x-ratelimit-limit-requests': '100', 'x-ratelimit-remaining-requests': '1', 'x-ratelimit-reset-requests': '60s' }])
  for (let i = 0; i < 9; i++) await ask(gateway)
  t.equal(uses.get('key-1'), 1)
  for (const key of ['key-2', 'key-3']) treat(key, [429])
  t.equal((await ask(gateway)).status, 200)
  t.equal(uses.get('key-1'), 2)
})

t.test('a refusal because of the content pauses no credential', async t => {
  const { gateway, uses, treat } = await start(t)
  for (const key of ['key-1', 'key-2', 'key-3']) treat(key, [403, {}])
  t.equal((await ask(gateway, { metadata: { moderated: 'yes' } })).status, 403)
  t.equal(uses.size, 1)
})

t.test('a credential whose source fails is skipped', async t => {
  const { gateway, uses } = await start(t, '', '{ bearer: key-1 }, { bearer: { command: ["false"] } }, { bearer: { file: /does/not/exist } }')
  for (let i = 0; i < 9; i++) t.equal((await ask(gateway)).status, 200)
  t.strictSame(Object.fromEntries(uses), { 'key-1': 9 })
})

t.test('requests share one token of a token server, and a 401 fetches a new one', async t => {
  const server = await startTokenServer(t)
  const { gateway, uses, treat } = await start(t, '', '', `{ oauth2: { token_url: "${server.url}", client_id: me, client_secret: s } }`)
  t.strictSame((await Promise.all(Array.from({ length: 10 }, () => ask(gateway)))).map(({ status }) => status), Array(10).fill(200))
  t.equal(server.requests.length, 1)
  treat('token-1', [401])
  t.equal((await ask(gateway)).status, 200)
  t.strictSame(Object.fromEntries(uses), { 'token-1': 11, 'token-2': 1 })
})

t.test('if a token server fails or does not respond, only its target fails', async t => {
  const server = await startTokenServer(t)
  server.fault = res => sendJson(res, 400, { error: 'invalid_scope' })
  const { gateway } = await start(t, ', other', '', `{ oauth2: { token_url: "${server.url}", client_id: me, client_secret: s } }`)
  for (let i = 0; i < 5; i++) t.equal((await ask(gateway)).headers.get('x-gateway-upstream'), 'other')
  t.match(gateway.logged.find(({ level }) => level === 50), { reason: 'the token server responded 400 (invalid_scope)' })
  t.equal(server.requests.length, 1, 'the token server does not get a request for each client request')
})

async function start(
  t: Test, more = '', members = '{ bearer: key-1 }, { bearer: key-2 }, { bearer: key-3 }', auth = `{ pool: [${members}] }`,
) {
  const uses = new Map<string, number>()
  const treatments = new Map<string, Treatment>()
  const upstream = await startUpstream(t, (req, res) => {
    const key = req.headers.authorization?.replace('Bearer ', '') ?? ''
    uses.set(key, (uses.get(key) ?? 0) + 1)
    const [status, headers = {}] = treatments.get(key) ?? [200]
    void bodyOf(req).then(body => {
      const { stream, metadata } = JSON.parse(body.toString()) as { stream?: boolean, metadata?: object }
      if (status !== 200) {
        const said = metadata === undefined ? 'refused' : 'Your input was flagged'
        res.writeHead(status, { 'content-type': 'application/json', ...headers })
        res.end(JSON.stringify({ error: { message: said, code: status, metadata: metadata && { reasons: ['violence'], flagged_input: 'x' } } }))
      } else if (stream) {
        res.writeHead(200, { 'content-type': 'text/event-stream', ...headers })
        res.end('data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n')
      } else {
        res.writeHead(200, { 'content-type': 'application/json', ...headers })
        res.end(JSON.stringify({ choices: [{ message: { content: 'Hi' } }] }))
      }
    })
  })
  const gateway = await startTestGateway(t, `
upstreams:
  up: { url: "${upstream.url}", auth: ${auth} }
  other: { url: "${upstream.url}", auth: { bearer: other-key } }
routes: [{ to: [up${more}] }]
`)
  return { gateway, uses, treat: (key: string, treatment: Treatment) => void treatments.set(key, treatment) }
}

async function ask(gateway: TestGateway, more: object = {}) {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hi' }], ...more }),
  })
  return { status: response.status, headers: response.headers, body: await response.text() }
}
