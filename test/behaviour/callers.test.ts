import { randomBytes, createHash } from 'node:crypto'
import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { callerDigest } from '../../src/auth/callers/caller-of.ts'
import { KeyFile, keyFileOf } from '../../src/auth/key-file.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { CLIENT_ID, CLIENT_SECRET, startIdentityProvider } from '../support/identity-provider.ts'
import { makeKey, startTokenIssuer } from '../support/token-issuer.ts'
import { startRawUpstream, startUpstream } from '../support/upstream.ts'
import { connect } from '../support/wire.ts'

const COMPLETION = { model: 'm', choices: [{ message: { role: 'assistant', content: 'x' } }], usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } }
const ANSWER = JSON.stringify(COMPLETION)

interface Asked { readonly path?: string, readonly header?: string, readonly body?: object }

async function ask(gateway: TestGateway, token: string, { path = '/v1/chat/completions', header = 'authorization', body = { model: 'm', max_tokens: 1 } }: Asked = {}) {
  const value = header === 'authorization' ? `Bearer ${token}` : token
  const response = await fetch(gateway.url + path, {
    method: 'POST', body: JSON.stringify(body), headers: { [header]: value, 'content-type': 'application/json' },
  })
  return { status: response.status, headers: response.headers, body: await response.json() as { readonly error?: { readonly code?: string } }, id: response.headers.get('x-gateway-request-id') }
}

interface Seen { readonly url: string | undefined, readonly headers: NodeJS.Dict<string | string[]> }

async function setUp(t: Test, rest: string, yaml = '') {
  const issuer = await startTokenIssuer(t)
  const seen: Seen[] = []
  const upstream = await startUpstream(t, (req, res) => {
    seen.push({ url: req.url, headers: req.headers })
    req.resume()
    res.setHeader('content-type', 'application/json').end(ANSWER)
  })
  const text = (more: string) => `
upstreams: { up: { url: "${upstream.url}", auth: { bearer: up-secret } } }
routes: [{ to: up }]
models: { m: { price: { input: 1000000, output: 0 } } }
callers:
  - { name: corp, issuer: "${issuer.issuer}", audience: gateway, ${more} }
${yaml}`
  const gateway = await startTestGateway(t, text(rest) + (/^(auth|keys):/m.test(yaml) ? '' : '\nauth: keys\n'))
  return { issuer, gateway, seen, text }
}

t.test('a token is accepted wherever a key is, and not forwarded', async t => {
  const { issuer, gateway, seen } = await setUp(t, 'require: { sub: "*" }')
  for (const header of ['authorization', 'x-api-key', 'x-goog-api-key', 'api-key']) {
    const token = await issuer.token({ jti: header })
    const first = await ask(gateway, token, { header })
    t.equal(first.status, 200, header)
    t.equal((await ask(gateway, token, { header })).status, 200, `${header}, again`)
    t.match(await gateway.waitForLog(line => line.request === first.id), { key: 'corp:alice' })
  }
  const token = await issuer.token({ jti: 'query', more: 'x'.repeat(10_000) })
  t.equal((await ask(gateway, 'foreign', { path: `/v1/chat/completions?key=${token}` })).status, 200)
  t.equal(seen.at(-1)?.url, '/v1/chat/completions')
  t.notMatch(JSON.stringify(seen), /eyJ/)
  t.notMatch(JSON.stringify(gateway.logged), /eyJ/)
})

t.test('a refusal has the shape of each protocol, and its message says nothing of the configuration', async t => {
  const { issuer, gateway } = await setUp(t, 'require: { department: ai }')
  const expired = await issuer.token({ exp: 1 })
  t.match((await ask(gateway, expired)).body, { error: { code: 'token_expired', message: /get a new one/ } })
  t.match(await ask(gateway, expired, { path: '/v1/messages', header: 'x-api-key' }), { status: 401, body: { type: 'error', error: { type: 'authentication_error' } } })
  t.match(await ask(gateway, expired, { path: '/v1beta/models/m:generateContent', header: 'x-goog-api-key' }), { status: 401, body: { error: { code: 401, status: 'UNAUTHENTICATED' } } })
  const refused = await ask(gateway, await issuer.token())
  t.match(refused, { status: 403, body: { error: { code: 'token_claims' } } })
  t.notMatch(JSON.stringify(refused.body), /department|corp/)
  t.match(await ask(gateway, await issuer.token(), { path: '/v1/messages' }), { status: 403, body: { error: { type: 'permission_error' } } })
  t.equal(refused.headers.get('x-should-retry'), 'false')
  t.match(await gateway.waitForLog(line => line.request === refused.id), { cause: /the claim department/ }, 'the log names the claim')
})

t.test('without the keys of the issuer: 503, and later 200', async t => {
  const issuer = await startTokenIssuer(t)
  issuer.fault = res => res.writeHead(500).end()
  const gateway = await startTestGateway(t, `
upstreams: { demo: { simulator: true } }
routes: [{ to: demo }]
callers: [{ name: corp, issuer: "${issuer.issuer}", audience: gateway, require: { sub: "*" } }]
`)
  const refused = await ask(gateway, await issuer.token())
  t.match(refused, { status: 503, body: { error: { code: 'token_keys_unavailable' } } })
  t.match(refused.headers.get('retry-after'), /^\d+$/)
  t.match(await gateway.waitForLog(({ issuer }) => issuer === 'corp'), { issuer: 'corp', why: /responded 500/ })
  issuer.fault = null
  await gateway.waitForLog(({ msg }) => /can be read again/.test(String(msg)))
  t.equal((await ask(gateway, await issuer.token())).status, 200)
})

t.test('a key that looks like a token is a key', async t => {
  const { issuer } = await setUp(t, 'require: { sub: "*" }')
  const key = await issuer.token({ iss: 'https://example.com', exp: 1 })
  const { gateway } = await setUp(t, 'require: { sub: "*" }', `keys: [{ name: odd, key: "${key}" }]\n`)
  const { status, id } = await ask(gateway, key)
  t.equal(status, 200)
  t.match(await gateway.waitForLog(line => line.request === id), { key: 'odd' })
})

t.test('each caller has limits of its own, and shares those of its group', async t => {
  const { issuer, gateway } = await setUp(t, 'groups: { map: { "team-*": research } }, limits: { requests_per_minute: 2 }',
    'groups: { research: { limits: { requests_per_minute: 3 }, models: [m] } }\n')
  const token = (sub: string, jti = '') => issuer.token({ sub, jti, groups: ['x', 'team-a'] })
  const [alice, other, bob] = [await token('alice'), await token('alice', '2'), await token('bob')]
  t.equal((await ask(gateway, alice)).status, 200)
  t.equal((await ask(gateway, other)).status, 200)
  t.match(await ask(gateway, alice), { status: 429, body: { error: { code: 'rate_limit_exceeded' } } })
  t.equal((await ask(gateway, bob)).status, 200)
  t.match(await ask(gateway, bob), { status: 429, body: { error: { message: /group/ } } })
  t.match(await ask(gateway, bob, { body: { model: 'x' } }), { status: 403, body: { error: { code: 'model_not_allowed' } } })
  t.match(await ask(gateway, await issuer.token()), { status: 403, body: { error: { code: 'token_group' } } })
})

t.test('budgets of callers go on after a restart, and start from the ledger when a reload adds them', async t => {
  const folder = t.testdir({})
  const ledger = `ledger: { file: "${join(folder, 'ledger.db')}" }\n`
  const { issuer, gateway, text } = await setUp(t, 'require: { sub: "*" }', ledger)
  const [alice, bob] = [await issuer.token(), await issuer.token({ sub: 'bob' })]
  // The prompt of each request costs 1 USD.
  for (let n = 0; n < 3; n++) t.equal((await ask(gateway, alice)).status, 200)
  const budget = 'require: { sub: "*" }, limits: { budget: { usd: 3, per: total } }'
  t.match(await gateway.change(`${text(budget)}\nauth: keys\n`), { applied: true })
  t.match(await ask(gateway, alice), { status: 429, body: { error: { code: 'insufficient_quota' } } })
  await gateway.close()
  const again = await startTestGateway(t, `${text(budget)}\nauth: keys\n`)
  t.match(await ask(again, alice), { status: 429, body: { error: { code: 'insufficient_quota' } } })
  t.not((await ask(again, bob)).body.error?.code, 'token_expired')
  using db = new DatabaseSync(join(folder, 'ledger.db'), { readOnly: true })
  t.strictSame(db.prepare("SELECT DISTINCT key FROM requests WHERE key IS NOT NULL AND status = 200").all().map(({ key }) => key), ['corp:alice'])
})

t.test('a blocked caller is refused, and its running requests are stopped', async t => {
  const folder = t.testdir({})
  const file = join(folder, 'ledger.db')
  const issuer = await startTokenIssuer(t)
  const upstream = await startUpstream(t, (req, res) => {
    req.resume()
    res.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {"choices":[{"delta":{"content":"x"}}]}\n\n')
  })
  const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
ledger: { file: "${file}" }
callers: [{ name: corp, issuer: "${issuer.issuer}", audience: gateway, require: { sub: "*" } }]
`)
  const token = await issuer.token()
  const running = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST', body: '{"model":"m","stream":true}', headers: { 'authorization': `Bearer ${token}`, 'content-type': 'application/json' },
  })
  const reader = running.body!.getReader()
  t.match(Buffer.from((await reader.read()).value!).toString(), /"x"/)
  using store = new KeyFile(keyFileOf(file))
  const caller = { name: 'corp:alice', digest: callerDigest('corp:alice') }
  store.block(caller, Date.now(), { actor: 'test', address: null })
  await t.rejects(async () => { while (!(await reader.read()).done); }, 'the stream is cut')
  t.match(await gateway.waitForLog(({ error }) => error === 'key_revoked'), { key: 'corp:alice', status: 200 })
  t.match(await ask(gateway, token), { status: 401, body: { error: { code: 'key_revoked' } } })
  t.match(await ask(gateway, await issuer.token({ jti: 'new' })), { status: 401, body: { error: { code: 'key_revoked' } } })
  store.unblock(caller, Date.now(), { actor: 'test', address: null })
  const models = () => fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${token}` } })
  let status = 401
  while (status === 401) status = (await models()).status
  t.equal(status, 200)
})

t.test('a WebSocket ends with the token that opened it', async t => {
  const { url } = await startRawUpstream(t, socket => socket.once('data', () => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
  }))
  const issuer = await startTokenIssuer(t)
  const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${url}", websocket: true } }
routes: [{ to: up }]
callers: [{ name: corp, issuer: "${issuer.issuer}", audience: gateway, require: { sub: "*" } }]
`)
  // With 30 s of leeway, it is valid for about 2 s more.
  const token = await issuer.token({ exp: Math.floor(Date.now() / 1_000) - 28 })
  const client = await connect(t, gateway.url)
  client.send([
    'GET /v1/realtime?model=m HTTP/1.1', 'Host: gateway', `Authorization: Bearer ${token}`, 'Connection: Upgrade',
    'Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', '', '',
  ].join('\r\n'))
  const received = await client.until(/expired/)
  t.match(received, /^HTTP\/1\.1 101 /)
  const at = received.indexOf('the token of this session has expired')
  t.equal(Buffer.from(received, 'latin1').readUInt16BE(at - 2), 1008)
  await client.ended
  t.match(await gateway.waitForLog(line => line.msg === 'exchange'), { error: 'token_expired', status: 101, key: 'corp:alice' })
})

t.test('made-up tokens count as guesses, expired ones do not, and neither keeps a good one out', async t => {
  const { issuer, gateway } = await setUp(t, 'require: { sub: "*" }')
  const expired = await issuer.token({ exp: 1 })
  const statuses = new Set<number>()
  for (let n = 0; n < 150; n++) statuses.add((await ask(gateway, expired)).status)
  t.strictSame([...statuses], [401])
  const madeUp = makeKey('first')
  for (let n = 0; n < 150; n++) statuses.add((await ask(gateway, await issuer.token({ jti: `${n}` }, madeUp))).status)
  t.strictSame([...statuses], [401, 429])
  t.equal((await ask(gateway, await issuer.token())).status, 200)
})

t.test('an open gateway ignores tokens for others, but refuses expired ones of its callers', async t => {
  const { issuer, gateway } = await setUp(t, 'require: { sub: "*" }', 'auth: open\n')
  const foreign = await ask(gateway, await issuer.token({ iss: 'https://example.com' }))
  t.equal(foreign.status, 200)
  t.match(await gateway.waitForLog(line => line.request === foreign.id), { key: null })
  t.equal((await ask(gateway, await issuer.token({ exp: 1 }))).status, 401)
})

t.test('a WebSocket with an expired token is refused', async t => {
  const { issuer, gateway } = await setUp(t, 'require: { sub: "*" }')
  const wire = await connect(t, gateway.url)
  wire.send([
    'GET /v1/realtime?model=m HTTP/1.1', 'host: gateway', 'connection: upgrade', 'upgrade: websocket',
    'sec-websocket-version: 13', `sec-websocket-key: ${randomBytes(16).toString('base64')}`,
    `authorization: Bearer ${await issuer.token({ exp: 1 })}`, '', '',
  ].join('\r\n'))
  t.match(await wire.until(/token_expired/), /^HTTP\/1.1 401/)
})

t.test('an ID token of oidc-provider is a caller', async t => {
  const provider = await startIdentityProvider(t)
  const redirect = 'http://127.0.0.1:9'
  provider.accounts.set('ada', { email: 'ada@example.com', email_verified: true, groups: ['/platform/core'] })
  provider.register(redirect, { inToken: true })
  const verifier = randomBytes(32).toString('base64url')
  const authorize = new URL(`${provider.issuer}/auth`)
  authorize.search = new URLSearchParams({
    client_id: CLIENT_ID, response_type: 'code', scope: 'openid email groups', redirect_uri: `${redirect}/console/login/callback`,
    state: 'a-state', nonce: 'a-nonce', code_challenge: createHash('sha256').update(verifier).digest('base64url'), code_challenge_method: 'S256',
  }).toString()
  const back = new URL(await provider.logIn(authorize.href, 'ada'))
  const exchanged = await fetch(`${provider.issuer}/token`, {
    method: 'POST', headers: { authorization: `Basic ${Buffer.from(`${CLIENT_ID}:${CLIENT_SECRET}`).toString('base64')}` },
    body: new URLSearchParams({ grant_type: 'authorization_code', code: back.searchParams.get('code')!, redirect_uri: `${redirect}/console/login/callback`, code_verifier: verifier }),
  })
  const { id_token: token } = await exchanged.json() as { id_token: string }
  const gateway = await startTestGateway(t, `
upstreams: { demo: { simulator: true } }
routes: [{ to: demo }]
groups: { research: {} }
callers: [{ name: corp, issuer: "${provider.issuer}", audience: ${CLIENT_ID}, caller: email, groups: { map: { "/platform/*": research } } }]
`)
  const { status, id } = await ask(gateway, token)
  t.equal(status, 200)
  t.match(await gateway.waitForLog(line => line.request === id), { key: 'corp:ada@example.com' })
})
