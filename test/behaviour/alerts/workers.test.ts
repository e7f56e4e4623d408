import t from 'tap'
import { listening } from '../../cli/command.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'

interface Event {
  readonly id: string
  readonly type: string
  readonly data: { readonly key: string, readonly share: number, readonly spent_usd: string }
}

/** What a key has spent when its budget is first looked at is not reported: there are keys enough for the time until then. */
const KEYS = Array.from({ length: 300 }, (_, n) => ({ name: `key-${n}`, key: `sk-test-key-${n}-0123456789` }))
const PACE_MS = 100

t.test('a budget that all workers share is reported once', async t => {
  const events: Event[] = []
  let heard = (): void => {}
  const hook = await startUpstream(t, async (req, res) => {
    const event = JSON.parse(String(await bodyOf(req))) as Event
    if (event.type === 'budget.reached') events.push(event)
    res.end()
    heard()
  })
  const dir = t.testdir({
    'gateway.yaml': `
server: { listen: 127.0.0.1:0, workers: 2 }
upstreams: { sim: { simulator: true } }
routes: [{ to: { upstream: sim, model: sim } }]
models: { sim: { price: { per_request: 4 } } }
keys: ${JSON.stringify(KEYS)}
limits: { budget: { usd: 10, per: total } }
ledger: { file: gateway.db }
alerts: { webhook: { url: "${hook.url}" }, budget: [30, 60] }
`,
  })
  const { base } = await listening(t, ['serve', '--config', `${dir}/gateway.yaml`])
  const spend = async (key: string) => {
    const response = await fetch(`${base}/v1/chat/completions`, {
      method: 'POST', body: '{"model":"sim","messages":[]}',
      // A connection of its own, so that both workers get some.
      headers: { 'authorization': `Bearer ${key}`, 'content-type': 'application/json', 'connection': 'close' },
    })
    await response.arrayBuffer()
  }
  for (const { key } of KEYS) {
    await spend(key)
    if (events.length > 0) break
    await new Promise(resolve => setTimeout(resolve, PACE_MS))
  }
  const [first] = events as [Event]
  t.match(first.data, { share: 30, spent_usd: '4' })
  await spend(KEYS.find(({ name }) => name === first.data.key)?.key ?? '')
  const isSecond = ({ data: { key, share } }: Event) => key === first.data.key && share === 60
  while (!events.some(isSecond)) await new Promise<void>(resolve => (heard = resolve))
  t.match(events.find(isSecond)?.data, { spent_usd: '8' })
  t.equal(new Set(events.map(({ data: { key, share } }) => `${key} ${share}`)).size, events.length, 'each share of each key once')
})
