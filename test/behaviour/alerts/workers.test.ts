import { readFileSync } from 'node:fs'
import t from 'tap'
import { listening } from '../../cli/command.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'

interface Event {
  readonly id: string
  readonly type: string
  readonly data: { readonly key: string, readonly share: number, readonly spent_usd: string }
}

/** Many keys, because the first check of a budget does not report earlier spend, and keys are used up until then. */
const KEYS = Array.from({ length: 300 }, (_, n) => ({ name: `key-${n}`, key: `sk-test-key-${n}-0123456789` }))
const PACE_MS = 100

t.test('each share of a budget is reported, also after the reporting worker is killed', { skip: process.platform !== 'linux' }, async t => {
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
limits: { budget: { usd: 20, per: total } }
ledger: { file: gateway.db }
alerts: { webhook: { url: "${hook.url}" }, budget: [15, 35, 55] }
`,
  })
  const { base, child, logged } = await listening(t, ['serve', '--config', `${dir}/gateway.yaml`])
  const spend = async (key: string) => {
    const response = await fetch(`${base}/v1/chat/completions`, {
      method: 'POST', body: '{"model":"sim","messages":[]}',
      // On a new connection, so that both workers get requests.
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
  t.match(first.data, { share: 15, spent_usd: '4' })
  const nextShare = async (share: number, spent: string) => {
    await spend(KEYS.find(({ name }) => name === first.data.key)?.key ?? '')
    const isNext = ({ data }: Event) => data.key === first.data.key && data.share === share
    while (!events.some(isNext)) await new Promise<void>(resolve => (heard = resolve))
    t.match(events.find(isNext)?.data, { spent_usd: spent })
  }
  await nextShare(35, '8')
  t.equal(new Set(events.map(({ data: { key, share } }) => `${key} ${share}`)).size, events.length, 'no report twice')
  // What it is just sending arrives twice.
  const [reporter] = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim().split(' ').map(Number) as [number]
  process.kill(reporter, 'SIGKILL')
  await logged('worker ended: starting another')
  await nextShare(55, '12')
})
