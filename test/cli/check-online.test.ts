import type * as http from 'node:http'
import t from 'tap'
import type { Test } from 'tap'
import { startConnectProxy } from '../support/connect-proxy.ts'
import { freePort } from '../support/free-port.ts'
import { serviceAccountFile } from '../support/google-credentials.ts'
import { sendJson, startTokenServer } from '../support/token-server.ts'
import { bodyOf, startUpstream } from '../support/upstream.ts'
import { gateway } from './command.ts'

const GOOD = 'sk-good-0123456789'
const BAD = 'sk-bad-0123456789'

/** Runs `check --online`. @returns the cells of the table by the name of the upstream, without the milliseconds */
async function check(t: Test, upstreams: string, routes = 'routes: [{ to: one }]') {
  const cwd = t.testdir({ 'gateway.yaml': `upstreams:\n${upstreams}\n${routes}\nauth: open\n` })
  const { code, stdout, stderr } = await gateway(['check', '--online'], { cwd, env: { GOOD, BAD } })
  const lines = stdout.slice(stdout.indexOf('UPSTREAM')).trim().split('\n').slice(1)
  const rows = Object.fromEntries(lines.map(line => {
    const [name = '', verdict, ms = '', detail] = line.split(/ {2,}/)
    t.match(ms, /^[\d,]+$/)
    return [name, `${verdict}: ${detail}`]
  }))
  t.notMatch(stdout + stderr, /sk-(good|bad)/)
  return { code, rows, stderr }
}

/** An upstream that returns a list of models to requests with a valid key. */
async function startVendor(t: Test) {
  const asked: string[] = []
  const upstream = await startUpstream(t, async (req, res) => {
    await bodyOf(req)
    asked.push(`${req.method} ${req.url} ${req.headers['anthropic-version']}`)
    const { authorization = req.headers['x-api-key'] } = req.headers
    if (!String(authorization).includes(GOOD)) sendJson(res, 401, { error: { code: 'invalid_api_key', message: `Bad key ${authorization}` } })
    else if (['/v1/models', '/v1beta/models', '/elsewhere/none/models'].includes(req.url ?? '')) sendJson(res, 200, { data: [] })
    else sendJson(res, 404, {})
  })
  return { ...upstream, asked }
}

t.test('check --online tries each credential with a request for the list of models', async t => {
  const { url, asked } = await startVendor(t)
  const { code, rows, stderr } = await check(t, `
  one: { url: "${url}", auth: { bearer: "\${GOOD}" } }
  google: { url: "${url}", speaks: [generate], auth: { header: x-api-key, value: "\${GOOD}" } }
  azure: { azure: { endpoint: "${url}", api_version: 2025-04-01-preview }, auth: { bearer: "\${GOOD}" } }
  missing: { url: "${url}/elsewhere", v1: /none, auth: { bearer: "\${GOOD}" } }
  pool: { url: "${url}", auth: { pool: [{ bearer: "\${GOOD}" }, { bearer: "\${BAD}" }] } }
  simulated: { simulator: true }`)
  t.equal(code, 1)
  t.match(stderr, 'gateway.yaml: 1 credential failed')
  t.strictSame(rows, {
    'one': 'ok: list of models',
    'google': 'ok: list of models',
    'azure': 'unclear: list of models: 404: nothing is known of the credential',
    'missing': 'ok: list of models',
    'pool (1 of 2)': 'ok: list of models',
    'pool (2 of 2)': 'failed: list of models: 401 invalid_api_key: the credential is refused',
  })
  t.strictSame(asked.toSorted(), [
    'GET /elsewhere/none/models 2023-06-01', 'GET /openai/models?api-version=2025-04-01-preview 2023-06-01',
    'GET /v1/models 2023-06-01', 'GET /v1/models 2023-06-01', 'GET /v1/models 2023-06-01', 'GET /v1beta/models 2023-06-01',
  ])
})

t.test('check --online exits with 0 if all credentials work', async t => {
  const { url } = await startVendor(t)
  const { code, rows } = await check(t, `  one: { url: "${url}", auth: { bearer: "\${GOOD}" } }`)
  t.equal(code, 0)
  t.strictSame(rows, { one: 'ok: list of models' })
})

t.test('credentials of Vertex AI and Bedrock are tried by counting the tokens of a word with a model of a route', async t => {
  const tokens = await startTokenServer(t)
  const asked: string[] = []
  const upstream = await startUpstream(t, async (req, res) => {
    asked.push(`${req.url} ${(await bodyOf(req)).toString()}`)
    sendJson(res, 200, { totalTokens: 1, inputTokens: 1 })
  })
  const google = `vertex: { project: p, endpoint: "${upstream.url}" }, auth: { google: { credentials: ${serviceAccountFile(t, tokens.url)} } }`
  const { code, rows } = await check(t, `
  claude: { ${google} }
  gemini: { ${google} }
  bedrock: { bedrock: { region: us-east-1, endpoint: "${upstream.url}" }, auth: { bearer: "\${GOOD}" } }`, `
routes:
  - { model: fast, to: [{ upstream: claude, model: "claude-haiku-4-5@20251001" }, { upstream: bedrock, model: anthropic.claude-x }] }
  - { model: ["gemini-*", gemini-2.5-pro], to: gemini }`)
  t.equal(code, 0)
  t.strictSame(rows, {
    claude: 'ok: token count of claude-haiku-4-5@20251001',
    gemini: 'ok: token count of gemini-2.5-pro',
    bedrock: 'ok: token count of anthropic.claude-x',
  })
  t.equal(asked.length, 3)
  t.ok(asked.some(line => line.startsWith('/v1/projects/p/locations/global/publishers/anthropic/models/count-tokens:rawPredict {"model":"claude-haiku')))
  t.ok(asked.some(line => line.startsWith('/v1/projects/p/locations/global/publishers/google/models/gemini-2.5-pro:countTokens {"contents"')))
  t.ok(asked.some(line => line.startsWith('/model/anthropic.claude-x/count-tokens {"input"')))
})

t.test('the report of a failure contains no text of the response', async t => {
  const tokens = await startTokenServer(t)
  tokens.fault = res => sendJson(res, 400, { error: 'invalid_client', error_description: BAD })
  const answers: Record<string, (res: http.ServerResponse) => void> = {
    '/busy/v1/models': res => sendJson(res, 429, { error: { type: 'rate_limit_error' } }),
    '/broken/v1/models': res => sendJson(res, 500, `<p>${BAD}`),
    '/cut/v1/models': res => res.writeHead(200, { 'content-length': '10' }).end('{', () => res.destroy()),
    '/long/v1/models': res => { res.writeHead(200).write('x'.repeat(200_000)) },
  }
  const { url } = await startUpstream(t, (req, res) => answers[req.url ?? '']?.(res))
  const { code, rows } = await check(t, `
  one: { url: "${url}", auth: { bearer: { file: none } } }
  tokens: { url: "${url}", auth: { oauth2: { token_url: "${tokens.url}", client_id: me, client_secret: "\${BAD}" } } }
  away: { url: "http://127.0.0.1:${await freePort()}" }
  busy: { url: "${url}/busy" }
  broken: { url: "${url}/broken" }
  cut: { url: "${url}/cut" }
  long: { url: "${url}/long" }`)
  t.equal(code, 1)
  t.match(rows, {
    one: 'failed: credentials: the file cannot be read: ENOENT',
    tokens: 'failed: credentials: the token server responded 400 (invalid_client)',
    away: /^failed: .*ECONNREFUSED/,
    busy: 'ok: list of models: 429 rate_limit_error: the credential is at its rate limit',
    broken: 'failed: list of models: 500',
    cut: /^failed: /,
    long: 'ok: list of models',
  })
})

t.test('all upstreams are tried at the same time', async t => {
  const waiting: http.ServerResponse[] = []
  const { url } = await startUpstream(t, (_req, res) => {
    waiting.push(res)
    if (waiting.length === 3) for (const each of waiting) sendJson(each, 200, {})
  })
  const { code } = await check(t, ['one', 'two', 'three'].map(name => `  ${name}: { url: "${url}" }`).join('\n'))
  t.equal(code, 0)
})

t.test("a client's own credential is not tried", async t => {
  const { url, asked } = await startVendor(t)
  const { code, rows } = await check(t, `  one: { url: "${url}", auth: { client: true } }`)
  t.equal(code, 0)
  t.match(JSON.stringify(rows), 'each client sends its own credential')
  t.strictSame(asked, [])
})

t.test('simulators are not tried, because they have no credential', async t => {
  const cwd = t.testdir({ 'gateway.yaml': 'upstreams: { one: { simulator: true } }\nroutes: [{ to: one }]\nauth: open\n' })
  t.match(await gateway(['check', '--online'], { cwd }), { code: 0, stdout: /\nnothing to try: all upstreams are simulated\n$/ })
})

t.test('check --online shows the proxy of each upstream', async t => {
  const { url } = await startVendor(t)
  const proxy = await startConnectProxy(t)
  const cwd = t.testdir({ 'gateway.yaml': `
proxy: { url: "${proxy.url.replace('//', '//me:pw-secret@')}" }
upstreams:
  direct: { url: "${url}", auth: { bearer: "\${GOOD}" } }
  tunnel: { url: "${url.replace('127.0.0.1', 'vendor.test')}", auth: { bearer: "\${GOOD}" } }
  closed: { url: "${url.replace('127.0.0.1', 'vendor.test')}", proxy: "http://127.0.0.1:1" }
routes: [{ to: direct }]
auth: open
` })
  const { stdout } = await gateway(['check', '--online'], { cwd, env: { GOOD } })
  t.match(stdout, /^direct +ok +\d+ +direct +list of models$/m)
  t.match(stdout, new RegExp(`^tunnel +ok +\\d+ +${proxy.url} +list of models$`, 'm'))
  t.match(stdout, /^closed +failed +\d+ +http:\/\/127\.0\.0\.1:1 +the upstream cannot be reached through its proxy: PROXY_FAILED: proxy http:\S+ ECONNREFUSED$/m)
  t.notMatch(stdout, 'pw-secret')
})
