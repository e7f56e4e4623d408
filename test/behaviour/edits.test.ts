import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { startTestGateway } from '../support/gateway.ts'
import { startUpstream } from '../support/upstream.ts'

interface Seen { readonly headers: Record<string, unknown>, readonly body: string }
const seen: Seen[] = []
const upstream = await startUpstream(t, async (req, res) => {
  const chunks: Buffer[] = []
  for await (const chunk of req) chunks.push(chunk as Buffer)
  seen.push({ headers: req.headers, body: Buffer.concat(chunks).toString() })
  res.setHeader('content-type', 'application/json').setHeader('server', 'secret/1').setHeader('x-kept', 'yes')
  res.end('{"id":"1","object":"chat.completion","model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"ok"}}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}')
})
const KEYS = { plain: 'sk-plain-0123456789abcdef', edited: 'sk-edited-0123456789abcdef' }
const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${upstream.url}", speaks: [chat] }, own: { url: "${upstream.url}" } }
ledger: { file: gateway.db }
models: { m: { price: { input: 1, output: 1000000 } }, other: { price: { input: 1, output: 1 } } }
attribution: { tags: { project: [header] } }
groups: { team: { edit: { body: { set: { seed: 1 }, default: { temperature: 0.5 } } } } }
keys:
  - { name: plain, key: ${KEYS.plain} }
  - name: edited
    key: ${KEYS.edited}
    group: team
    limits: { budget: { usd: 100, per: day } }
    edit:
      request_headers: { set: { x-team: "{key}/{group}", x-project: "{tag:project}", x-id: "{request_id}" }, default: { x-mode: safe }, remove: [x-debug] }
      response_headers: { set: { x-served: us }, remove: [server] }
      body: { cap: { max_output_tokens: 50 } }
routes:
  - { model: m, to: up, edit: { system: { prepend: Be brief. }, body: { set: { seed: 2 } } } }
  - { model: other, to: own }
`)

function ask(key: string, body: object, headers: Record<string, string> = {}, path = '/v1/chat/completions'): Promise<Response> {
  return fetch(gateway.url + path, { method: 'POST', headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) })
}
t.beforeEach(() => { seen.length = 0 })

t.test('rules of the top, the group, the key and the route change a request in this order', async t => {
  const response = await ask(KEYS.edited, { model: 'm', max_tokens: 900, messages: [{ role: 'user', content: 'hi' }] }, { 'x-debug': '1', 'x-gateway-tags': 'project=alpha' })
  t.equal(response.status, 200, await response.text())
  t.strictSame(JSON.parse(seen[0]!.body), {
    temperature: 0.5, seed: 2, model: 'm', max_tokens: 50, messages: [{ role: 'system', content: 'Be brief.' }, { role: 'user', content: 'hi' }],
  })
  t.match(seen[0]!.headers, { 'x-team': 'edited/team', 'x-project': 'alpha', 'x-mode': 'safe', 'x-id': response.headers.get('x-gateway-request-id') })
  t.notOk('x-debug' in seen[0]!.headers)
  t.equal(response.headers.get('x-served'), 'us')
  t.equal(response.headers.get('server'), null)
  t.equal(response.headers.get('x-kept'), 'yes')
})

t.test('a header whose value the request lacks is not sent, and one of the client stays', async t => {
  await (await ask(KEYS.edited, { model: 'other', messages: [] }, { 'x-mode': 'fast' })).text()
  t.notOk('x-project' in seen[0]!.headers)
  t.equal(seen[0]!.headers['x-mode'], 'fast')
})

t.test('what is reserved is what is sent: a request that its budget covers only after the cap is served', async t => {
  const response = await ask(KEYS.edited, { model: 'm', max_tokens: 1_000_000, messages: [{ role: 'user', content: 'hi' }] })
  t.equal(response.status, 200, await response.text())
  t.equal((JSON.parse(seen[0]!.body) as { max_tokens: number }).max_tokens, 50)
})

t.test('a request without rules passes byte for byte', async t => {
  const body = { model: 'other', temperature: 0.2, messages: [] }
  const response = await ask(KEYS.plain, body, { 'x-debug': '1' })
  t.equal(response.headers.get('server'), 'secret/1')
  t.equal(seen[0]!.body, JSON.stringify(body))
  t.equal(seen[0]!.headers['x-debug'], '1')
})

t.test('rules apply to translated requests before they are translated', async t => {
  const response = await ask(KEYS.edited, { model: 'm', max_tokens: 900, messages: [{ role: 'user', content: 'hi' }] }, { 'anthropic-version': '2023-06-01' }, '/v1/messages')
  t.equal(response.status, 200, await response.text())
  const sent = JSON.parse(seen[0]!.body) as { max_tokens: number, messages: { role: string, content: unknown }[] }
  t.equal(sent.max_tokens, 50)
  t.match(sent.messages[0], { role: 'system', content: 'Be brief.' })
  t.equal(seen[0]!.headers['x-team'], 'edited/team')
  t.equal(response.headers.get('x-served'), 'us')
})

t.test('a request with too many values to be changed gets 413, and one beside it is served', async t => {
  const many = { model: 'm', messages: [{ role: 'user', content: 'hi' }], x: Array.from({ length: 70_000 }, () => ({})) }
  const [refused, served] = await Promise.all([ask(KEYS.edited, many), ask(KEYS.edited, { model: 'm', messages: [{ role: 'user', content: 'hi' }] })])
  t.equal(refused.status, 413)
  t.match(await refused.json(), { error: { code: 'body_too_large', message: /too many values/ } })
  t.equal(served.status, 200, await served.text())
})

t.test('the ledger says which requests were edited', async t => {
  await gateway.close()
  using db = new DatabaseSync(join(dirname(gateway.file), 'gateway.db'))
  const rows = db.prepare('SELECT key, policy FROM requests WHERE status = 200 ORDER BY started_at').all()
  t.strictSame(rows.map(({ key, policy }) => [key, policy === null ? null : JSON.parse(String(policy))]), ['edited', 'edited', 'edited', 'plain', 'edited', 'edited'].map(key => [
    key, key === 'plain' ? null : [{ rule: 'edit', action: 'edit', count: 1 }],
  ]))
})
