import { chmodSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import t from 'tap'
import type { Test } from 'tap'
import { KEY, startTestGateway } from '../support/gateway.ts'
import type { TestGateway } from '../support/gateway.ts'
import { postH2, openSession } from '../support/http2.ts'
import { CONSOLE, operatorOf } from '../support/operator.ts'
import { startUpstream } from '../support/upstream.ts'
import { STREAM_HEAD, chunk, connect, post, startWireUpstream } from '../support/wire.ts'
import type { Wire } from '../support/wire.ts'

const EVENT = chunk('data: {"choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n')
const END = `${chunk('data: [DONE]\n\n')}0\r\n\r\n`
const CHAT = { model: 'm', messages: [] }
const STREAM = { ...CHAT, stream: true }

/** An upstream whose responses contain its name; `closed` resolves when one of its `sockets` closes. */
async function named(t: Test, name: string) {
  const sockets: Socket[] = []
  const closed = Promise.withResolvers<void>()
  const upstream = await startUpstream(t, (req, res) => {
    req.resume().once(
      'end', () => res.setHeader('content-type', 'application/json').end(JSON.stringify({ name })),
    )
  })
  // Only the gateway closes connections, even on a slow machine.
  upstream.server.keepAliveTimeout = 0
  upstream.server.on('connection', (socket: Socket) => {
    sockets.push(socket)
    socket.once('close', () => closed.resolve())
  })
  return { url: upstream.url, sockets, closed: closed.promise }
}

async function ask(gateway: TestGateway, model = 'm', headers: Record<string, string> = {}) {
  const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ ...CHAT, model }),
  })
  const body = await answer.json() as { name?: string; error?: { code: string } }
  return { status: answer.status, name: body.name, code: body.error?.code }
}

async function status(url: string): Promise<Record<string, unknown>> {
  const { config } = await (await fetch(`${url}/api/status`)).json() as { config: Record<string, unknown> }
  return config
}

function twoUpstreams(first: string, second: string, routes: string, rest = ''): string {
  return `upstreams: { one: { url: "${first}" }, two: { url: "${second}" } }\nroutes: ${routes}\n${rest}\n`
}

t.test('a reload adds, removes and changes routes and upstreams', async t => {
  const [one, two] = [await named(t, 'one'), await named(t, 'two')]
  const gateway = await startTestGateway(
    t, `upstreams: { up: { url: "${one.url}" } }\nroutes: [{ to: up }]\n`,
  )
  t.match(await ask(gateway), { status: 200, name: 'one' })
  await gateway.change(twoUpstreams(one.url, two.url, '[{ model: [m], to: two }, { to: one }]'))
  t.match(await ask(gateway), { status: 200, name: 'two' })
  t.match(await ask(gateway, 'other'), { status: 200, name: 'one' })
  const list = await fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${KEY}` } })
  t.match(await list.json(), { data: [{ id: 'm' }] })
  await gateway.change(`upstreams: { two: { url: "${two.url}" } }\nroutes: [{ model: [x], to: two }]\n`)
  t.match(await ask(gateway), { status: 404, code: 'model_not_found' })
  t.match(await ask(gateway, 'x'), { status: 200, name: 'two' })
})

t.test('running requests keep the configuration with which they started', async t => {
  const wires: Wire[] = []
  const streaming = await startWireUpstream(t, async wire => {
    await wire.request()
    wires.push(wire)
    wire.send(STREAM_HEAD + EVENT)
    await wire.ended
  })
  const silent = await startWireUpstream(t, async wire => void await wire.ended)
  const before = `upstreams: { up: { url: "${streaming.url}", usage: as_is } }\nroutes: [{ to: up }]\n`
  const gateway = await startTestGateway(t, before)
  const client = await connect(t, gateway.url)
  client.send(post('/v1/chat/completions', STREAM))
  await client.until(/hi/)
  const session = await openSession(t, gateway.url)
  const stream = postH2(session, '/v1/chat/completions', STREAM)
  await stream.until(/hi/)
  const uploading = await connect(t, gateway.url)
  const bytes = post('/v1/chat/completions', STREAM)
  uploading.send(bytes.slice(0, -5))

  const running = async (): Promise<number> => {
    const { running } = await (await fetch(`${gateway.url}/api/status`)).json() as { running: number }
    return running
  }
  while (await running() < 3); // until the upload is counted
  await gateway.change(`
upstreams: { up: { url: "${silent.url}" } }
routes: [{ to: up }]
timeouts: { total: 50ms }
keys: [{ name: another, key: sk-another-0123456789abcdef }]
`)
  t.match(await ask(gateway), { status: 401 }, 'the removed key is refused')
  const headers = { authorization: 'Bearer sk-another-0123456789abcdef' }
  t.match(await ask(gateway, 'm', headers), { status: 504 }, 'the new timeout and the new upstream apply')
  uploading.send(bytes.slice(-5))
  await uploading.until(/hi/)
  for (const wire of wires) wire.send(EVENT + END)
  for (const each of [client, uploading]) t.match(await each.until(/0\r\n\r\n$/), /hi[^]*hi[^]*\[DONE\]/)
  t.equal(await stream.closed, 0)
  t.match(stream.text, /hi[^]*hi[^]*\[DONE\]/)
  t.equal(wires.length, 3)
  for (const wire of wires) {
    t.equal(await wire.ended, 'end', 'the connections to the previous upstream are closed after their last request')
  }
})

t.test('a reload keeps connections to unchanged upstreams and closes connections to removed upstreams', async t => {
  const [one, two] = [await named(t, 'one'), await named(t, 'two')]
  const gateway = await startTestGateway(
    t, twoUpstreams(one.url, two.url, '[{ model: one, to: one }, { to: two }]'),
  )
  for (const model of ['one', 'two', 'one', 'two']) t.match(await ask(gateway, model), { name: model })
  await gateway.change(twoUpstreams(
    one.url, `${two.url}/prefix`,
    '[{ path: /v1/*, model: [one], to: one, retries: 1 }, { to: two }]', 'log: { level: warn }',
  ))
  for (const model of ['one', 'two']) t.match(await ask(gateway, model), { name: model })
  t.equal(one.sockets.length, 1)
  t.equal(two.sockets.length, 1, 'a changed path prefix keeps the connections')
  await gateway.change(`upstreams: { one: { url: "${one.url}" } }\nroutes: [{ to: one }]\n`)
  await two.closed
  t.match(await ask(gateway, 'two'), { name: 'one' })
  t.equal(one.sockets.length, 1)
})

t.test('a reload of an invalid configuration changes nothing and is reported in log and status', async t => {
  const one = await named(t, 'one')
  const good =
    `${CONSOLE}\nupstreams: { up: { url: "${one.url}" } }\nroutes: [{ to: up }]\n`
  const gateway = await startTestGateway(t, `server: { listen: 127.0.0.1:0 }\n${good}`)
  const operator = await operatorOf(gateway.addresses.console)
  const { loaded_at: loadedAt } = await status(gateway.url)
  t.match(loadedAt, /^\d{4}-\d\d-\d\dT.*Z$/)
  t.match(await status(gateway.url), { error: null, failed_at: null, restart_needed: { length: 0 } })

  const secret = 'sk-secret-0123456789abcdef'
  t.match(
    await gateway.change(
      `${good}log: { level: loud }\nkeys: [{ name: new, key: ${secret} }, { name: new, key: x }]\n`,
    ),
    { applied: false, because: 'invalid', problems: [{ line: 7, column: 15 }, { line: 8, column: 64 }] },
  )
  t.match(await ask(gateway), { status: 200, name: 'one' })
  t.match(await ask(gateway, 'm', { authorization: `Bearer ${secret}` }), { status: 401 })
  const { problems } =
    await gateway.waitForLog(({ msg }) => /not reloaded/.test(String(msg))) as { problems: string[] }
  t.match(problems[0], /gateway\.yaml:7:15: error: log\.level/)
  t.notMatch(JSON.stringify(gateway.logged), secret)
  t.match(await status(gateway.url), {
    loaded_at: loadedAt, error: /^gateway\.yaml:7:15\n/, failed_at: /^\d/,
  })
  t.notMatch(await status(gateway.url), { error: /level/ }, 'the public status does not contain the names of configuration keys')
  const seen = await operator()
  t.match(seen, { config: { loaded_at: loadedAt, error: /^gateway\.yaml:7:15: log\.level/ } })
  t.notMatch(JSON.stringify(seen), secret)

  t.match(await gateway.change(`server: { listen: 127.0.0.1:0 }\n${good}`), { applied: true, pending: { length: 0 } })
  t.match(await status(gateway.url), { error: null, failed_at: null })
})

t.test('a reload of an empty, missing, unreadable or binary file changes nothing', async t => {
  const one = await named(t, 'one')
  const good = `upstreams: { up: { url: "${one.url}" } }\nroutes: [{ to: up }]\n`
  const gateway = await startTestGateway(t, good)
  const failures: [string, () => void, RegExp][] = [
    ['empty', () => writeFileSync(gateway.file, ''), /the file is empty/],
    ['half written', () => writeFileSync(gateway.file, good.slice(0, 20)), /error/],
    ['no text', () => writeFileSync(gateway.file, Buffer.from([0xff, 0x41, 0x80])), /not in UTF-8/],
    ['gone', () => rmSync(gateway.file), /no such file/],
  ]
  if (process.getuid?.() !== 0) {
    failures.push(['unreadable', () => {
      writeFileSync(gateway.file, good)
      chmodSync(gateway.file, 0)
    }, /may not be read/])
  }
  for (const [name, spoil, message] of failures) {
    spoil()
    t.match(await gateway.change(), { applied: false }, name)
    t.match(JSON.stringify(gateway.logged.at(-1)), message)
    t.match(await ask(gateway), { status: 200, name: 'one' })
  }
})

t.test('a reload keeps the counts of rate limits, running requests and budgets', async t => {
  const held = Promise.withResolvers<() => void>()
  const upstream = await startUpstream(t, (req, res) => {
    const usage = { prompt_tokens: 10, completion_tokens: 0, total_tokens: 10 }
    const answer = () => res.setHeader('content-type', 'application/json').end(JSON.stringify({ usage }))
    void text(req).then(body => (body.includes('held') ? held.resolve(answer) : answer()))
  })
  const yaml = (limits: string) => `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
models: { m: { price: { input: 100000, output: 0 } }, held: { price: { input: 0 , output: 0 } } }
keys: [{ name: team, key: ${KEY}, limits: ${limits} }]
ledger: { file: gateway.db }
`
  const gateway = await startTestGateway(t, yaml('{ requests_per_minute: 3 }'))
  t.match(await ask(gateway), { status: 200 })
  t.match(await ask(gateway), { status: 200 })
  await gateway.change(yaml('{ requests_per_minute: 3, tokens_per_minute: 100000 }'))
  t.match(await ask(gateway), { status: 200 })
  t.match(await ask(gateway), { status: 429 }, 'two requests before the reload and one after are counted')

  await gateway.change(yaml('{ concurrent: 1 }'))
  const running = ask(gateway, 'held')
  const release = await held.promise
  await gateway.change(yaml('{ concurrent: 2 }'))
  t.match(await ask(gateway), { status: 200 })
  await gateway.change(yaml('{ concurrent: 1, budget: { usd: 1000, per: day } }'))
  t.match(await ask(gateway), { status: 429, code: 'rate_limit_exceeded' }, 'the running request is counted')
  release()
  await running

  // Four requests of 1 USD each are in the ledger and count for new budgets.
  await gateway.change(yaml('{ budget: { usd: 4, per: month } }'))
  t.match(await ask(gateway), { status: 429, code: 'insufficient_quota' })
  await gateway.change(yaml('{ budget: { usd: 5, per: month } }'))
  t.match(await ask(gateway), { status: 200 }, 'the larger budget allows one more request')
  t.match(await ask(gateway), { status: 429, code: 'insufficient_quota' })
  await gateway.change(yaml('{ budget: { usd: 4, per: month }, requests_per_minute: 100 }'))
  t.match(await ask(gateway), { status: 429, code: 'insufficient_quota' }, 'past spend is counted')
})

t.test('a reload can change prices, trusted proxies, body limit and log level', async t => {
  const one = await named(t, 'one')
  const yaml = (server: string, rest: string) =>
    `server: { listen: 127.0.0.1:0${server} }\nupstreams: { up: { url: "${one.url}" } }\n` +
      `routes: [{ to: up }]\n${rest}\n`
  const gateway = await startTestGateway(t, yaml('', 'limits: { budget: { usd: 1, per: day } }'))
  const id = { 'x-gateway-request-id': 'given-by-a-proxy' }
  t.match(await ask(gateway), { status: 403 }, 'a request without a price is refused because of the budget')
  const priced = 'models: { m: { price: { input: 1, output: 1 } } }'
  await gateway.change(yaml('', `limits: { budget: { usd: 1, per: day } }\n${priced}`))
  t.match(await ask(gateway, 'm', id), { status: 200 })
  t.notOk(gateway.logged.some(({ request }) => request === 'given-by-a-proxy'))
  await gateway.change(yaml(', trusted_proxies: [127.0.0.1]', ''))
  t.match(await ask(gateway, 'm', id), { status: 200 })
  await gateway.waitForLog(({ request }) => request === 'given-by-a-proxy')
  await gateway.change(yaml(', body_limit: 20b', ''))
  t.match(await ask(gateway), { status: 413 })
  await gateway.change(yaml('', 'log: { level: error }'))
  const lines = gateway.logged.length
  t.match(await ask(gateway), { status: 200 })
  t.equal(gateway.logged.length, lines)
})

t.test('configuration keys that need a restart are listed, and other changes apply', async t => {
  const [one, two] = [await named(t, 'one'), await named(t, 'two')]
  const yaml = (server: string, url: string) =>
    `server: { ${server} }\nupstreams: { up: { url: "${url}" } }\nroutes: [{ to: up }]\n`
  const gateway = await startTestGateway(t, yaml('listen: 127.0.0.1:0', one.url))
  const changed = `${yaml('listen: 127.0.0.1:1, reuse_port: true', two.url)}
console: { listen: 127.0.0.1:0 }
ledger: { file: other.db }
`
  const pending = ['server.listen', 'server.reuse_port', 'console.listen', 'ledger.file']
  t.match(await gateway.change(changed), { applied: true, pending })
  t.match(await ask(gateway), { name: 'two' })
  for (const key of pending) {
    await gateway.waitForLog(line => line['key'] === key && /restart/.test(String(line['msg'])))
  }
  t.match(await status(gateway.url), { restart_needed: pending })
  t.match(await gateway.change(yaml('listen: 127.0.0.1:0', one.url)), { pending: { length: 0 } })
  t.match(await status(gateway.url), { restart_needed: { length: 0 } })
})

t.test('many concurrent reloads are merged, apply the last text, and fail no request', async t => {
  const one = await named(t, 'one')
  const yaml = (model: string) =>
    `upstreams: { up: { url: "${one.url}" } }\nroutes: [{ model: [m, "${model}"], to: up }]\n`
  const gateway = await startTestGateway(t, yaml('a'))
  const asked = Array.from({ length: 20 }, () => ask(gateway))
  const reloads = Array.from({ length: 100 }, (_, index) => gateway.change(yaml(`a${index}`)))
  for (const reload of reloads) t.match(await reload, { applied: true })
  for (const each of asked) t.match(await each, { status: 200 })
  t.match(await ask(gateway, 'a99'), { status: 200 })
  t.match(await ask(gateway, 'a98'), { status: 404 })
  t.ok(gateway.logged.filter(({ msg }) => msg === 'configuration reloaded').length < 5)
})

t.test('a draining gateway does not reload', async t => {
  const one = await named(t, 'one')
  const gateway = await startTestGateway(
    t, `upstreams: { up: { url: "${one.url}" } }\nroutes: [{ to: up }]\n`,
  )
  const under = gateway.change()
  await gateway.drain()
  t.same(await under, { applied: false, because: 'drain' })
  t.same(await gateway.change(), { applied: false, because: 'drain' })
})

t.test('a reload can add a simulator', async t => {
  const one = await named(t, 'one')
  const gateway = await startTestGateway(
    t, `upstreams: { up: { url: "${one.url}" } }\nroutes: [{ to: up }]\n`,
  )
  await gateway.change('upstreams: { demo: { simulator: true } }\nroutes: [{ to: demo }]\n')
  t.match(await ask(gateway, 'sim'), { status: 200 })
  renameSync(gateway.file, `${gateway.file}.old`)
  t.match(await gateway.change(), { applied: false })
  t.match(await ask(gateway, 'sim'), { status: 200 })
})

t.test('a reload keeps the health of an upstream unless its URL changes', async t => {
  const asked = { bad: 0 }
  const bad = await startUpstream(t, (req, res) => {
    asked.bad++
    req.resume().once('end', () => res.writeHead(503, { 'retry-after': '60' }).end())
  })
  const good = await named(t, 'good')
  const yaml = (url: string, rest = '') =>
    `upstreams: { bad: { url: "${url}" }, good: { url: "${good.url}" } }\nroutes: [{ to: [bad, good] }]\n` +
      `${rest}\n`
  const gateway = await startTestGateway(t, yaml(bad.url))
  for (let i = 0; i < 10; i++) t.match(await ask(gateway), { name: 'good' })
  const before = asked.bad
  t.ok(before < 10, 'the circuit of the upstream is open')
  for (const rest of ['log: { level: warn }', 'timeouts: { connect: 11s }']) {
    await gateway.change(yaml(bad.url, rest))
    t.match(await ask(gateway), { name: 'good' })
    t.equal(asked.bad, before, rest)
  }
  await gateway.change(yaml(`${bad.url}/elsewhere`))
  t.match(await ask(gateway), { name: 'good' })
  t.equal(asked.bad, before + 1)
})
