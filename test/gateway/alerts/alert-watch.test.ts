import t from 'tap'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'
import { startHook } from '../../behaviour/alerts/hook.ts'

const ISO_TIME = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/

t.test('open circuits, used budgets and rejected reloads are sent to the webhook', async t => {
  const { url: hook, events, reported } = await startHook(t)
  let isDown = false
  const up = await startUpstream(t, async (req, res) => {
    await bodyOf(req)
    res.writeHead(isDown ? 503 : 200, { 'content-type': 'application/json' })
      .end(isDown ? '{"error":{"type":"overloaded"}}' : '{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}')
  })
  const yaml = `
upstreams: { up: { url: "${up.url}" } }
routes: [{ to: up, retries: 0 }]
models: { m: { price: { per_request: 1 } } }
limits: { budget: { usd: 10, per: total } }
ledger: { file: ledger.db }
alerts: { webhook: { url: "${hook}" }, budget: [80, 20] }
`
  const gateway = await startTestGateway(t, yaml)
  const ask = async () => {
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST', headers: { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json' }, body: '{"model":"m","messages":[]}',
    })
    await response.arrayBuffer()
    return response.headers.get('x-gateway-request-id') as string
  }
  t.equal((await gateway.change(`${yaml}log: { level: loud }\n`)).applied, false)
  t.match(await reported('reload.rejected'), { message: /^Reload rejected: .*gateway\.yaml:\d+:\d+: log\.level/, data: { problems: { length: 1 } } })

  isDown = true
  const first = await ask()
  for (let n = 0; n < 2; n++) await ask()
  t.match(await reported('circuit.opened'), {
    severity: 'error', subject: 'up', message: 'Circuit open: m on up: status 503 overloaded',
    data: { model: 'm', models: ['m'], failures: 3, first: { at: ISO_TIME, requestId: first, reason: 'status 503 overloaded' }, last: { at: ISO_TIME } },
  })
  isDown = false
  while (!events.some(({ type }) => type === 'circuit.closed')) await ask()
  t.match(await reported('circuit.closed'), { severity: 'info', subject: 'up', message: 'Circuit closed: m on up' })

  for (let n = 0; n < 3; n++) await ask()
  t.match(await reported('budget.reached'), { subject: 'test', data: { key: 'test', limit_usd: '10', per: 'total' } })
})

t.test('the circuits of all models of an upstream are reported in one event', async t => {
  const hook = await startHook(t)
  let isDown = true
  const up = await startUpstream(t, async (req, res) => {
    await bodyOf(req)
    res.writeHead(isDown ? 503 : 200, { 'content-type': 'application/json' }).end('{"choices":[]}')
  })
  const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${up.url}" } }
routes: [{ to: up, retries: 0 }]
alerts: { webhook: { url: "${hook.url}" } }
`)
  const models = ['a', 'b', 'c', 'd', 'e']
  const ask = async (model: string) => {
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST', headers: { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json' }, body: JSON.stringify({ model, messages: [] }),
    })
    await response.arrayBuffer()
    return response
  }
  const first = (await ask('a')).headers.get('x-gateway-request-id')
  for (const model of ['a', 'a', ...models.slice(1).flatMap(model => [model, model, model])]) await ask(model)
  t.match(await hook.reported('circuit.opened'), {
    severity: 'error', subject: 'up', message: 'Circuits open: 5 models on up: status 503',
    data: { upstream: 'up', model: 'a', models, failures: 3, first: { at: ISO_TIME, requestId: first }, last: { at: ISO_TIME } },
  })
  isDown = false
  for (const model of models) while ((await ask(model)).status !== 200);
  t.match(await hook.reported('circuit.closed'), { severity: 'info', message: 'Circuits closed: 5 models on up', data: { models } })
  t.strictSame(hook.events.map(({ type }) => type), ['circuit.opened', 'circuit.closed'])
})

t.test('the budget event of a group counts the spend of its child groups', async t => {
  const hook = await startHook(t)
  const gateway = await startTestGateway(t, `
upstreams: { sim: { simulator: true } }
routes: [{ to: { upstream: sim, model: sim } }]
models: { sim: { price: { per_request: 1 } } }
groups:
  test: { limits: { budget: { usd: 4, per: total } } }
  research: { parent: test }
keys: [{ name: a, key: sk-a-0123456789abcdef, group: research }]
ledger: { file: ledger.db }
alerts: { webhook: { url: "${hook.url}" }, budget: [50, 100] }
`)
  const ask = async () => {
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST', headers: { 'authorization': 'Bearer sk-a-0123456789abcdef', 'content-type': 'application/json' }, body: '{"model":"sim","messages":[]}',
    })
    await response.arrayBuffer()
    return response.status
  }
  for (let n = 0; n < 3; n++) t.equal(await ask(), 200)
  t.match(await hook.reported('budget.reached'), {
    severity: 'warning', subject: 'test', message: 'Group test has used 50 % of its budget: $3 of $4 in total',
    data: { group: 'test', share: 50, spent_usd: '3', limit_usd: '4', per: 'total' },
  })
  t.equal(await ask(), 200)
  t.match(await hook.reported('budget.reached', ({ data }) => data['share'] === 100), { severity: 'error', subject: 'test' })
  t.equal(hook.events.length, 2, 'each share of the budget is reported once')
  t.notOk(hook.events.some(({ data }) => 'key' in data), 'an event about a group names no key')
})
