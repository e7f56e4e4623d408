import t from 'tap'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'

interface Event {
  readonly type: string
  readonly subject: string | null
  readonly message: string
  readonly data: Readonly<Record<string, unknown>>
}

t.test('circuits, budgets and rejected reloads are reported', async t => {
  const events: Event[] = []
  let heard = (): void => {}
  const hook = await startUpstream(t, async (req, res) => {
    events.push(JSON.parse(String(await bodyOf(req))) as Event)
    res.end()
    heard()
  })
  const reported = async (type: string): Promise<Event> => {
    for (;;) {
      const found = events.find(each => each.type === type)
      if (found) return found
      await new Promise<void>(resolve => (heard = resolve))
    }
  }
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
alerts: { webhook: { url: "${hook.url}" }, budget: [80, 20] }
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
    data: { model: 'm', failures: 3, first: { requestId: first, reason: 'status 503 overloaded' } },
  })
  isDown = false
  while (!events.some(({ type }) => type === 'circuit.closed')) await ask()
  t.match(await reported('circuit.closed'), { severity: 'info', subject: 'up', message: 'Circuit closed: m on up' })

  for (let n = 0; n < 3; n++) await ask()
  t.match(await reported('budget.reached'), { subject: 'test', data: { key: 'test', limit_usd: '10', per: 'total' } })
})
