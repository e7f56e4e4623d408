import t from 'tap'
import type { Test } from 'tap'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { startPostgres, withoutPostgres } from '../../support/postgres.ts'
import { REDIS_PASSWORD, startRedis, withoutRedis } from '../../support/redis.ts'
import { startTcpProxy } from '../../support/tcp-proxy.ts'
import { ask } from '../../behaviour/cluster/ask.ts'
import { withFolder } from '../../support/folder.ts'

/** Each request reserves 10 output tokens, each at 1 USD, and uses fewer tokens. */
const CONFIG = `
upstreams: { demo: { simulator: true } }
routes: [{ to: demo }]
models: { demo: { price: { input: 0, output: 1000000 } } }
ledger: { file: gateway.db }
`

/** @param group limits of the key's group */
function start(t: Test, instance: string, limits: string, cluster: string, group = '{ concurrent: 1000 }'): Promise<TestGateway> {
  return startTestGateway(withFolder(t), `${CONFIG}groups: { company: { limits: ${group} }, research: { parent: company } }
keys: [{ name: test, key: ${KEY}, group: research, limits: ${limits} }]
cluster: { instance: ${instance}, ${cluster} }
`)
}

async function count(gateways: readonly TestGateway[], requests: number): Promise<Record<number, number>> {
  const counts: Record<number, number> = {}
  for (const status of await Promise.all(Array.from({ length: requests }, (_, n) => ask(gateways[n % gateways.length]!)))) {
    counts[status] = (counts[status] ?? 0) + 1
  }
  return counts
}

t.test('gateways with shared limits', { skip: withoutPostgres || withoutRedis, timeout: 170_000 }, async t => {
  const [redis, postgres] = await Promise.all([startRedis(t), startPostgres(t)])

  t.test('requests per minute count across gateways; without Valkey each gateway has a share', async t => {
    await redis.client.flushall()
    const proxy = await startTcpProxy(t, redis.port)
    const cluster = `valkey: "${redis.url(proxy.port)}", valkey_timeout: 5s`
    const gateways = await Promise.all(['gw1', 'gw2'].map(name => start(t, name, '{ requests_per_minute: 20 }', cluster)))
    const started = performance.now()
    const { 200: all = 0 } = await count(gateways, 60)
    // On a slow machine the limit can be renewed while the requests run.
    const renewed = Math.ceil((performance.now() - started) / 3_000)
    t.ok(all >= 20 && all <= 20 + renewed, `${all} of 20, and ${renewed} more`)
    proxy.cut()
    const { 200: served = 0 } = await count(gateways, 60)
    t.ok(served <= 20, `${served} of 20`)
    const lost = await gateways[0]!.waitForLog(({ msg }) => msg === 'shared limits cannot be used: no usable connection to Valkey')
    t.notMatch(JSON.stringify(lost), REDIS_PASSWORD)
    proxy.heal()
    await gateways[0]!.waitForLog(({ msg }) => msg === 'shared limits can be used again')
  })

  for (const holder of ['key', 'group'] as const) t.test(`a shared budget of a ${holder} holds when Valkey is emptied and when all gateways restart`, async t => {
    await redis.client.flushall()
    await postgres.createDatabase()
    const cluster = `valkey: "${redis.url()}", valkey_timeout: 5s, postgres: "${postgres.url()}"`
    const budget = '{ budget: { usd: 200, per: month } }'
    const open = (name: string) => start(t, name, holder === 'key' ? budget : '{ concurrent: 1000 }', cluster, holder === 'group' ? budget : undefined)
    const gateways = [await open('gw1')]
    gateways.push(await open('gw2'))
    await count(gateways, 10)
    await redis.client.flushall()
    await count(gateways, 60)
    for (const gateway of gateways) await gateway.close()
    await redis.client.flushall()
    const again = await open('gw3')
    await count([again], 60)
    await again.close()
    const [sum] = await postgres.query('SELECT sum(cost_high) AS high, sum(cost_low) AS low FROM gateway.days')
    const usd = (Number(sum?.['high']) * 1e9 + Number(sum?.['low'])) / 1e12
    t.ok(usd > 100 && usd <= 200, `${usd} USD of 200 are spent`)
  })

  for (const fault of ['no fault', 'Valkey emptied', 'Valkey restarted without data', 'Valkey away'] as const) {
    t.test(`900 parallel requests at three gateways do not overspend a budget: ${fault}`, { timeout: 120_000 }, async t => {
      await redis.client.flushall()
      await postgres.createDatabase()
      const proxy = await startTcpProxy(t, redis.port)
      const cluster = `valkey: "${redis.url(proxy.port)}", valkey_timeout: 5s, postgres: "${postgres.url()}"`
      const gateways: TestGateway[] = []
      for (const name of ['gw1', 'gw2', 'gw3']) gateways.push(await start(t, name, '{ budget: { usd: 400, per: month } }', cluster))
      await count(gateways, 9)
      const all = Array.from({ length: 900 }, (_, n) => ask(gateways[n % 3]!))
      await Promise.any(all)
      if (fault === 'Valkey emptied') await redis.client.flushall()
      if (fault === 'Valkey away') proxy.cut()
      if (fault === 'Valkey restarted without data') {
        await redis.stop()
        await redis.start()
      }
      const statuses = await Promise.all(all)
      t.ok(statuses.every(status => [200, 429, 503].includes(status)))
      const served = statuses.filter(status => status === 200).length
      proxy.heal()
      await count(gateways, 30)
      for (const gateway of gateways) await gateway.close()
      const [sum] = await postgres.query('SELECT (sum(cost_high) * 1000000000 + sum(cost_low)) / 1e12 AS usd FROM gateway.days')
      const usd = Number(sum?.['usd'])
      t.ok(usd > 100 && usd <= 400, `${usd} USD of 400 are spent, by ${served} of 900`)
    })
  }

  t.test('with `limits_offline: refuse` a limited key gets 503 while Valkey is unreachable', async t => {
    const gateway = await start(t, 'gw1', '{ requests_per_minute: 20 }', 'valkey: "redis://127.0.0.1:1", limits_offline: refuse')
    t.equal(await ask(gateway), 503)
  })
})
