import type { IncomingHttpHeaders } from 'node:http'
import t from 'tap'
import { problems } from '../behaviour/config/loading.ts'
import { PASSWORD, SECOND_KEY, YAML, chat, startConsole } from '../behaviour/console/console.ts'
import { KEY } from '../support/gateway.ts'
import { bodyOf, startUpstream } from '../support/upstream.ts'
import { connect } from '../support/wire.ts'

const OPS = { name: 'ops', password: PASSWORD }
const CHAT = '/playground/v1/chat/completions'
const body = { model: 'demo', messages: [{ role: 'user', content: 'hello' }] }

t.test('a request of a console user in the playground is logged with the user as its key, and no limit applies', async t => {
  const gateway = await startConsole(t, `${YAML}\nlimits: { requests_per_minute: 1 }\n`)
  const admin = await gateway.login(OPS)
  for (const { path, ask } of [
    { path: '/v1/chat/completions', ask: body },
    { path: '/v1/responses', ask: { model: 'demo', input: 'hello' } },
    { path: '/v1/messages', ask: { ...body, max_tokens: 5 } },
    { path: '/v1beta/models/demo:generateContent', ask: { contents: [{ parts: [{ text: 'hello' }] }] } },
  ]) {
    const answer = await admin.ask(`/playground${path}`, { method: 'POST', body: ask })
    t.equal(answer.status, 200, `${path}: no limit applies`)
    t.equal(answer.headers.get('x-gateway-upstream'), 'sim')
    const line = await gateway.waitForLog(
      ({ request }) => request === answer.headers.get('x-gateway-request-id'),
    )
    t.match(line, { key: 'console:ops', path, model: 'demo', status: 200 })
  }
})

t.test('in the playground the holder of a key can use only the models of that key, within the limits of that key', async t => {
  const gateway = await startConsole(
    t, YAML.replace('models: [demo] }', 'models: [demo], limits: { requests_per_minute: 1 } }'),
  )
  const holder = await gateway.login({ key: SECOND_KEY })
  t.equal((await holder.ask(CHAT, { method: 'POST', body: { ...body, model: 'sim' } })).status, 403)
  const answer = await holder.ask(CHAT, { method: 'POST', body })
  t.equal(answer.status, 200)
  const line = await gateway.waitForLog(
    ({ request }) => request === answer.headers.get('x-gateway-request-id'),
  )
  t.match(line, { key: 'second' })
  t.equal((await holder.ask(CHAT, { method: 'POST', body })).status, 429)
  const elsewhere = { method: 'POST', body, headers: { authorization: `Bearer ${KEY}` } }
  t.equal((await holder.ask(CHAT, elsewhere)).status, 429, 'a key in the Authorization header does not replace the key of the session')
})

t.test('only administrators and holders of keys can use the playground', async t => {
  const gateway = await startConsole(t)
  const post = { method: 'POST', body }
  t.equal((await gateway.browser().ask(CHAT, post)).status, 401)
  t.equal(
    (await gateway.browser().ask(CHAT, { ...post, headers: { authorization: `Bearer ${KEY}` } })).status, 401,
  )
  t.equal((await (await gateway.login({ ...OPS, name: 'eye' })).ask(CHAT, post)).status, 403)
  const admin = await gateway.login(OPS)
  t.equal((await admin.ask(CHAT, { ...post, headers: { origin: 'https://evil.example' } })).status, 403)
  const { csrf } = admin
  admin.csrf = null
  t.equal((await admin.ask(CHAT, post)).status, 403)
  admin.csrf = csrf
  for (const path of [
    '/playground/console/api/session', '/playground/api/status', '/playground/', '/playground/..%2fv1/models',
  ]) {
    t.equal((await admin.ask(path, post)).status, 404, path)
  }
  t.equal((await admin.ask(CHAT)).status, 404, 'only POST')
  gateway.clock.advance(31 * 60_000)
  t.equal((await admin.ask(CHAT, post)).status, 401)
})

t.test('headers for the console, such as cookie and origin, are not sent to the upstream', async t => {
  const seen: IncomingHttpHeaders[] = []
  const upstream = await startUpstream(t, (req, res) => {
    seen.push(req.headers)
    void bodyOf(req).then(sent => res.writeHead(200, { 'content-type': 'application/json' }).end(sent))
  })
  const gateway = await startConsole(
    t, YAML.replace('sim: { simulator: true }', `sim: { url: "${upstream.url}", auth: { bearer: up } }`),
  )
  const admin = await gateway.login(OPS)
  const answer = await admin.ask(CHAT, {
    method: 'POST', body, headers: {
      'origin': gateway.console, 'sec-fetch-site': 'same-origin', 'referer': `${gateway.console}/console/`,
      'x-live': '1', 'x-api-key': KEY, 'openai-beta': 'x',
    },
  })
  t.equal(answer.status, 200)
  t.same(JSON.parse(answer.text), body, 'the upstream gets the body unchanged')
  const [headers] = seen
  t.match(headers, { 'authorization': 'Bearer up', 'openai-beta': 'x' })
  for (
    const name of ['cookie', 'x-csrf-token', 'x-live', 'origin', 'referer', 'sec-fetch-site', 'x-api-key']
  ) {
    t.equal(headers?.[name], undefined, name)
  }
})

t.test('headers that set cookies or browser state reach API clients and not the playground', async t => {
  const kept = { 'set-cookie': 'gateway_console=x; Path=/console/', 'clear-site-data': '"*"', 'nel': '{}' }
  const upstream = await startUpstream(t, (req, res) => {
    void bodyOf(req).then(() => res.writeHead(200, {
      ...kept, 'content-type': 'application/json', 'x-ratelimit-limit-requests': '7',
    }).end('{}'))
  })
  const gateway = await startConsole(
    t, YAML.replace('sim: { simulator: true }', `sim: { url: "${upstream.url}" }`),
  )
  const admin = await gateway.login(OPS)
  const tried = (await admin.ask(CHAT, { method: 'POST', body })).headers
  const { headers } = await chat(gateway)
  for (const [name, value] of Object.entries(kept)) {
    t.equal(tried.get(name), null, name)
    t.equal(headers.get(name), value)
  }
  t.equal(tried.get('x-ratelimit-limit-requests'), '7')
})

t.test('a response of an upstream at the address of the console gets a sandbox and sets no cookie', async t => {
  const upstream = await startUpstream(t, (_, res) => {
    res.writeHead(200, {
      'content-type': 'text/html', 'set-cookie': 'gateway_console=x; Path=/console/',
      'content-security-policy': 'report-uri /v1/reports', 'x-content-type-options': 'off',
    }).end('<script>fetch("/console/api/keys")</script>')
  })
  const gateway = await startConsole(t, YAML.replace(
    'sim: { simulator: true } }\nroutes: [',
    `sim: { simulator: true }, up: { url: "${upstream.url}" } }\nroutes: [{ path: /v1/files*, to: up }, `,
  ))
  const page = `/v1/files/a/content?key=${KEY}`
  const { headers } = await fetch(gateway.console + page)
  t.equal(headers.get('content-security-policy'), "default-src 'none'; sandbox")
  t.equal(headers.get('x-content-type-options'), 'nosniff')
  t.equal(headers.get('set-cookie'), null)
  t.match((await fetch(gateway.url + page)).headers.get('set-cookie'), 'gateway_console', 'clients get the cookie')
  const refused = await fetch(`${gateway.console}/v1/files`)
  t.equal(refused.status, 401)
  t.equal(refused.headers.get('content-security-policy'), "default-src 'none'; sandbox", 'error responses get the same headers')
})

t.test('a streamed response reaches the playground as a stream', async t => {
  const gateway = await startConsole(t)
  const admin = await gateway.login(OPS)
  const answer = await admin.ask(CHAT, { method: 'POST', body: { ...body, stream: true } })
  t.match(answer.headers.get('content-type'), 'text/event-stream')
  t.match(answer.text, /data: \[DONE\]\n\n$/)
})

t.test('a key cannot have the name of a console user', async t => {
  const told = problems(t, YAML.replace('name: second', 'name: "console:ops"'))
  t.match(told, [{ severity: 'error', message: /names that begin with "console:"/, line: /\d+/ }])
})

t.test('a stream in the playground can complete during a drain', async t => {
  const { promise: finished, resolve: finish } = Promise.withResolvers<void>()
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
  const upstream = await startUpstream(t, async (_req, res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    res.write('data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n')
    begin()
    await finished
    res.end('data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n')
  })
  const yaml = YAML.replace('sim: { simulator: true }', `sim: { url: "${upstream.url}" }`)
    .replace('listen: 127.0.0.1:0 }', 'listen: 127.0.0.1:0, drain: 10m }')
  const gateway = await startConsole(t, yaml, {}, { drainTimeout: 10 })
  const admin = await gateway.login(OPS)
  const asked = admin.ask(CHAT, { method: 'POST', body: { ...body, stream: true } })
  await begun
  const wire = await connect(t, gateway.console)
  // The drain does not wait for an incomplete request.
  wire.send(`POST /console/api/session HTTP/1.1\r\nhost: ${new URL(gateway.console).host}\r\n` +
    'content-type: application/json\r\ncontent-length: 10\r\n\r\n')
  await admin.ask('/session')
  const drained = gateway.drain()
  await wire.ended
  finish()
  t.match((await asked).text, /\[DONE\]/)
  t.equal(await drained, 0)
})
