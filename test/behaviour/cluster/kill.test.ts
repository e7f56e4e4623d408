import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { listening } from '../../cli/command.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { startRedis, withoutRedis } from '../../support/redis.ts'

const KEYS = ['sk-places-0123456789abcdef', 'sk-budget-0123456789abcdef'] as const

function ask(url: string, key: string, behaviour: string): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'authorization': `Bearer ${key}`, 'content-type': 'application/json', 'x-simulate': behaviour },
    body: JSON.stringify({ model: 'demo', stream: true, max_tokens: 8, messages: [{ role: 'user', content: 'Hello' }] }),
  })
}

t.test('concurrency and reservations of a killed gateway are released within 30 s', { skip: withoutRedis, timeout: 90_000 }, async t => {
  const redis = await startRedis(t)
  // As if Valkey had limits before, so that the budget is not restored from the ledger.
  await redis.client.set('gateway:limits', '0')
  // Each request reserves 8 USD of a budget of 10 USD.
  const yaml = (instance: string) => `
server: { listen: 127.0.0.1:0 }
upstreams: { demo: { simulator: true } }
routes: [{ to: demo }]
models: { demo: { price: { input: 0, output: 1000000 } } }
groups: { company: { limits: { budget: { usd: 10, per: month } } } }
keys:
  - { name: places, key: ${KEYS[0]}, limits: { concurrent: 1 } }
  - { name: budget, key: ${KEYS[1]}, group: company }
cluster: { instance: ${instance}, valkey: "${redis.url()}", valkey_timeout: 5s }
`
  const file = join(t.testdir({}), 'killed.yaml')
  writeFileSync(file, `${yaml('killed')}ledger: { file: killed.db }\n`)
  const killed = await listening(t, ['serve', '--config', file])
  const other = await startTestGateway(t, yaml('other'))
  for (const key of KEYS) {
    t.equal((await ask(killed.base, key, 'first_delay=10m')).status, 200)
    const refused = await ask(other.url, key, '')
    t.equal(refused.status, 429, await refused.text())
  }
  killed.child.kill('SIGKILL')
  const started = performance.now()
  await Promise.all(KEYS.map(async key => {
    for (;;) {
      const response = await ask(other.url, key, '')
      await response.text()
      if (response.status === 200) break
      await new Promise(resolve => setTimeout(resolve, 250))
    }
    const seconds = Math.round((performance.now() - started) / 1_000)
    t.ok(seconds <= 30, `${key}: after ${seconds} seconds`)
  }))
})
