import t from 'tap'
import { KEY } from '../../support/gateway.ts'
import { startUpstream } from '../../support/upstream.ts'
import { PASSWORD, cheapHash, startConsole } from '../console/console.ts'

/** Data that the holder of a key must not see: upstreams, their accounts and their prices. */
const SECRETS = /acme|backup|org_operator|proj_operator|0\.123/i
const BODY = JSON.stringify({ model: 'm', messages: [] })

const upstream = await startUpstream(t, (_req, res) => {
  res.writeHead(200, {
    'content-type': 'application/json', 'x-request-id': 'req_1', 'x-ratelimit-remaining-requests': '9',
    'openai-organization': 'org_operator', 'openai-project': 'proj_operator', 'anthropic-organization-id': 'org_operator',
  })
  res.end('{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}')
})

const yaml = (server = '') => `
server: { listen: 127.0.0.1:0${server} }
console:
  listen: 127.0.0.1:0
  users: [{ name: ops, password: "${cheapHash(PASSWORD)}", role: admin }, { name: eye, password: "${cheapHash(PASSWORD)}", role: viewer }]
upstreams: { acme: { url: "${upstream.url}" }, acme-down: { url: "http://127.0.0.1:9" }, backup: { url: "http://127.0.0.1:9" } }
routes:
  - { model: down, to: [acme-down, backup] }
  - { model: m, to: [acme-down, acme] }
models: { m: { price: { input: 0.123, output: 0.123 } } }
keys: [{ name: test, key: ${KEY} }]
ledger: { file: data/ledger.db }
`

const ask = (base: string, path: string, body?: string) => fetch(base + path, {
  headers: { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json' },
  ...body !== undefined && { method: 'POST', body },
})

async function everythingOf(response: Response): Promise<string> {
  return JSON.stringify([...response.headers]) + await response.text()
}

t.test('no response to a key holder names an upstream, its account or a price', async t => {
  const gateway = await startConsole(t, yaml())
  const answer = await ask(gateway.url, '/v1/chat/completions', BODY)
  t.equal(answer.status, 200)
  t.equal(answer.headers.get('x-request-id'), 'req_1', 'ids pass')
  t.equal(answer.headers.get('x-ratelimit-remaining-requests'), '9', 'rates pass')
  t.notOk(answer.headers.has('x-gateway-attempts'), 'the number of attempts tells which upstreams fail')
  t.notMatch(await everythingOf(answer), SECRETS)
  for (const base of [gateway.url, gateway.console]) {
    for (const [path, body] of [
      ['/v1/chat/completions', BODY.replace('"m"', '"down"')], ['/v1/chat/completions', '{}'], ['/v1/messages', BODY],
      ['/v1/models', undefined], ['/v1/models/m', undefined], ['/v1beta/models', undefined], ['/api/status', undefined],
      ['/v1/nothing', undefined],
    ] as const) {
      t.notMatch(await everythingOf(await ask(base, path, body)), SECRETS, `${base}${path}`)
    }
  }
})

t.test('the console shows a key holder no upstream, account or price', async t => {
  const gateway = await startConsole(t, yaml())
  const asked = await ask(gateway.url, '/v1/chat/completions', BODY)
  const id = asked.headers.get('x-gateway-request-id') ?? ''
  await asked.text()
  await gateway.waitForLog(({ request }) => request === id)
  const holder = await gateway.login({ key: KEY })
  for (const path of ['/live', '/panel', '/logs', `/logs/${id}`, '/models', '/billing', '/budgets', '/own', '/filters']) {
    const { status, text } = await holder.ask(path)
    t.equal(status, 200, path)
    t.notMatch(text, SECRETS, path)
  }
  const tried = await holder.ask('/playground/v1/chat/completions', { method: 'POST', body: JSON.parse(BODY) })
  t.equal(tried.status, 200)
  t.notMatch(JSON.stringify([...tried.headers]), SECRETS)
  const status = await fetch(`${gateway.console}/api/status`, { headers: { cookie: holder.cookie ?? '' } })
  t.equal(status.status, 200)
  t.notMatch(await everythingOf(status), SECRETS)
})

t.test('only users of the console see upstreams in the status', async t => {
  const gateway = await startConsole(t, yaml())
  await (await ask(gateway.url, '/v1/chat/completions', BODY)).text()
  for (const name of ['ops', 'eye']) {
    const { cookie } = await gateway.login({ name, password: PASSWORD })
    const status = await fetch(`${gateway.console}/api/status`, { headers: { cookie: cookie ?? '' } })
    t.match(await status.json(), { success: true, upstreams: [{ upstream: 'acme-down' }, { upstream: 'acme' }] }, name)
    const head = await fetch(`${gateway.console}/api/status`, { method: 'HEAD', headers: { cookie: cookie ?? '' } })
    t.equal(head.status, 200)
  }
  for (const cookie of ['', 'gateway_console=', 'gateway_console=forged', '__Host-gateway_console=forged']) {
    const status = await fetch(`${gateway.console}/api/status`, { headers: { cookie } })
    t.equal(status.status, 200)
    const told = await status.json() as object
    t.match(told, { success: true })
    t.notOk('upstreams' in told, cookie)
  }
})

t.test('server.reveal_upstream names the upstream, but not its account', async t => {
  const gateway = await startConsole(t, yaml(', reveal_upstream: true'))
  const answer = await ask(gateway.url, '/v1/chat/completions', BODY)
  t.equal(answer.headers.get('x-gateway-upstream'), 'acme')
  t.equal(answer.headers.get('x-gateway-attempts'), '2')
  t.notMatch(await everythingOf(answer), /_operator/)
})
