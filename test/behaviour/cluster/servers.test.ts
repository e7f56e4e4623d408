import t from 'tap'
import type { Test } from 'tap'
import { certificateFiles } from '../../support/certificate.ts'
import { freePort } from '../../support/free-port.ts'
import { startTestGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { startPostgres, withoutPostgres } from '../../support/postgres.ts'
import { REDIS_PASSWORD, startRedisCluster, startRedisWithSentinel, withoutRedis } from '../../support/redis.ts'
import { ask } from './ask.ts'
import { withFolder } from '../../support/folder.ts'

const ENCODED = encodeURIComponent(REDIS_PASSWORD)
const keyOf = (n: number) => `sk-key-${n}-0123456789abcdef`

/** Ten keys; each request reserves 10 USD and spends less. @param limits of each key */
function start(t: Test, instance: string, limits: string, cluster: string): Promise<TestGateway> {
  return startTestGateway(withFolder(t), `
upstreams: { demo: { simulator: true } }
routes: [{ to: demo }]
models: { demo: { price: { input: 0, output: 1000000 } } }
ledger: { file: gateway.db }
keys: [${Array.from({ length: 10 }, (_, n) => `{ name: key-${n}, key: ${keyOf(n)}, limits: ${limits} }`).join(', ')}]
cluster: { instance: ${instance}, valkey_timeout: 5s, ${cluster} }
`)
}

const isLost = ({ msg }: Record<string, unknown>) => msg === 'shared limits cannot be used: no usable connection to Valkey'
const isBack = ({ msg }: Record<string, unknown>) => msg === 'shared limits can be used again'

t.test('a cluster of three servers', { skip: withoutRedis || withoutPostgres, timeout: 150_000 }, async t => {
  const servers = await startRedisCluster(t)
  const postgres = await startPostgres(t)
  const cluster = `valkey: { cluster: [${servers.map(({ port }) => `"redis://:${ENCODED}@127.0.0.1:${port}"`).join(', ')}] }`

  t.test('the requests of a key are counted on one server, for all gateways', async t => {
    const gateways = [await start(t, 'gw1', '{ requests_per_minute: 4 }', cluster), await start(t, 'gw2', '{ requests_per_minute: 4 }', cluster)]
    const statuses = await Promise.all(Array.from({ length: 10 }, async (_, key) => {
      const all = await Promise.all(Array.from({ length: 12 }, (_, n) => ask(gateways[n % 2]!, keyOf(key))))
      return all.filter(status => status === 200).length
    }))
    // On a slow machine the limit can be renewed while the requests run.
    for (const [key, served] of statuses.entries()) t.ok(served >= 4 && served <= 6, `key ${key}: ${served} of 4`)
    for (const { client } of servers) t.ok((await client.keys('gateway:limits:{*}key-*')).length > 0, 'each server counts some of the keys')
    for (const gateway of gateways) t.notOk(gateway.logged.some(isLost))
  })

  t.test('budgets are restored on a server that lost its data', async t => {
    const shared = `${cluster}, postgres: "${postgres.url()}"`
    const gateways = [await start(t, 'gw1', '{ budget: { usd: 60, per: month } }', shared), await start(t, 'gw2', '{ budget: { usd: 60, per: month } }', shared)]
    const askAll = (times: number) => Promise.all(Array.from({ length: 10 * times }, (_, n) => ask(gateways[n % 2]!, keyOf(n % 10))))
    await askAll(4)
    await servers[0]!.client.flushall()
    await askAll(12)
    for (const gateway of gateways) await gateway.close()
    const spent = await postgres.query('SELECT key, (sum(cost_high) * 1000000000 + sum(cost_low)) / 1e12 AS usd FROM gateway.days GROUP BY key')
    t.equal(spent.length, 10)
    for (const { key, usd } of spent) t.ok(Number(usd) > 0 && Number(usd) <= 60, `${String(key)}: ${Number(usd)} USD of 60`)
  })

  t.test('if a server stops, each gateway applies its share of the limits', async t => {
    const gateway = await start(t, 'gw1', '{ requests_per_minute: 100 }', cluster)
    t.equal(await ask(gateway, keyOf(0)), 200)
    await servers[1]!.stop()
    for (;;) {
      const statuses = await Promise.all(Array.from({ length: 10 }, (_, key) => ask(gateway, keyOf(key))))
      t.ok(statuses.every(status => status === 200), statuses.join(' '))
      if (gateway.logged.some(isLost)) break
    }
  })
})

t.test('limits apply in a cluster over TLS', { skip: withoutRedis }, async t => {
  const { certFile, keyFile } = certificateFiles(t)
  const ports = [await freePort(), await freePort(), await freePort()]
  await startRedisCluster(t, n => [
    '--tls-port', String(ports[n]), '--tls-cluster', 'yes', '--tls-cert-file', certFile, '--tls-key-file', keyFile, '--tls-ca-cert-file', certFile,
  ])
  const urls = ports.map(port => `"rediss://:${ENCODED}@localhost:${port}"`)
  const gateway = await start(t, 'gw1', '{ requests_per_minute: 4 }',
    `valkey: { cluster: [${urls.join(', ')}] }, valkey_tls: { ca: ${certFile}, cert: ${certFile}, key: ${keyFile} }`)
  const statuses = await Promise.all(Array.from({ length: 60 }, (_, n) => ask(gateway, keyOf(n % 10))))
  t.ok(statuses.includes(429))
  t.notOk(gateway.logged.some(isLost), JSON.stringify(gateway.logged.find(isLost)))
})

t.test('budgets are kept when sentinels replace the master', { skip: withoutRedis || withoutPostgres, timeout: 120_000 }, async t => {
  const { master, replica, sentinel } = await startRedisWithSentinel(t)
  const postgres = await startPostgres(t)
  const cluster = `postgres: "${postgres.url()}", valkey: { sentinels: ["redis://:${ENCODED}@127.0.0.1:${sentinel}"], master: main, ` +
    `sentinel_password: "${REDIS_PASSWORD}" }`
  const gateways = [await start(t, 'gw1', '{ budget: { usd: 60, per: month } }', cluster), await start(t, 'gw2', '{ budget: { usd: 60, per: month } }', cluster)]
  const askAll = (times: number) => Promise.all(Array.from({ length: 10 * times }, (_, n) => ask(gateways[n % 2]!, keyOf(n % 10))))
  t.ok((await askAll(4)).every(status => status === 200))
  await master.stop()
  const during: number[] = []
  const isOver = Promise.all(gateways.map(gateway => gateway.waitForLog(isBack))).then(() => true)
  while (await Promise.race([isOver, askAll(1).then(statuses => void during.push(...statuses))]) !== true);
  t.ok(during.includes(200), 'requests are served from the share of each gateway')
  t.ok(during.every(status => [200, 429, 503].includes(status)), [...new Set(during)].join(' '))
  t.equal((await replica.client.role())[0], 'master')
  await askAll(12)
  for (const gateway of gateways) await gateway.close()
  const spent = await postgres.query('SELECT key, (sum(cost_high) * 1000000000 + sum(cost_low)) / 1e12 AS usd FROM gateway.days GROUP BY key')
  t.equal(spent.length, 10)
  for (const { key, usd } of spent) t.ok(Number(usd) > 0 && Number(usd) <= 60, `${String(key)}: ${Number(usd)} USD of 60`)
})
