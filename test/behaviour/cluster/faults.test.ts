import t from 'tap'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import { startPostgres, withoutPostgres } from '../../support/postgres.ts'
import { startRedis, withoutRedis } from '../../support/redis.ts'
import { startTcpProxy } from '../../support/tcp-proxy.ts'
import { ask } from './ask.ts'

const SECOND_KEY = 'sk-second-0123456789abcdef'
/** Requests of each key, before and during the fault. */
const REQUESTS = 20

/** Log messages after a service becomes unreachable, and after it is reachable again. */
const MESSAGES = {
  Valkey: ['shared limits cannot be used: no usable connection to Valkey', 'shared limits can be used again'],
  PostgreSQL: ['ledger rows cannot be sent to PostgreSQL: they wait in the file', 'ledger rows are sent to PostgreSQL again'],
} as const

t.test('requests are served while a service fails, and all rows arrive', { skip: withoutPostgres || withoutRedis, timeout: 170_000 }, async t => {
  const [redis, postgres] = await Promise.all([startRedis(t), startPostgres(t)])

  for (const service of ['Valkey', 'PostgreSQL'] as const) for (const fault of ['away', 'slow', 'silent', 'half-open', 'emptied'] as const) {
    t.test(`${service} is ${fault}`, async t => {
      await redis.client.flushall()
      await postgres.createDatabase()
      const valkeyProxy = await startTcpProxy(t, redis.port)
      const postgresProxy = await startTcpProxy(t, postgres.port)
      const proxy = service === 'Valkey' ? valkeyProxy : postgresProxy
      const gateway = await startTestGateway(t, `
upstreams: { demo: { simulator: true } }
routes: [{ to: demo }]
models: { demo: { price: { input: 0, output: 1 } } }
ledger: { file: gateway.db }
keys:
  - { name: rates, key: ${KEY}, limits: { requests_per_minute: 10000, concurrent: 1000 } }
  - { name: budget, key: ${SECOND_KEY}, limits: { budget: { usd: 1000, per: month } } }
cluster: { instance: gw1, valkey: "${redis.url(valkeyProxy.port)}", postgres: "${postgres.url(postgresProxy.port)}", valkey_timeout: 1s }
`)
      const askBoth = async (): Promise<void> => {
        const statuses = await Promise.all([ask(gateway), ask(gateway, SECOND_KEY)])
        t.strictSame(statuses, [200, 200])
      }
      await askBoth()
      switch (fault) {
        case 'away': proxy.cut(); break
        // For Valkey longer than a request waits; requests do not wait for PostgreSQL.
        case 'slow': proxy.delay(service === 'Valkey' ? 1_500 : 200); break
        case 'silent': proxy.silence(); break
        case 'half-open': proxy.freeze(); break
        case 'emptied':
          proxy.cut()
          if (service === 'Valkey') {
            await redis.stop()
            await redis.start()
          } else await postgres.query('DROP SCHEMA gateway CASCADE')
      }
      // All requests end before the fault ends, because requests do not wait for the service.
      for (let n = 1; n < REQUESTS; n++) await askBoth()
      const [lost, back] = MESSAGES[service]
      // Rows of a slow PostgreSQL arrive later. A silent connection is abandoned after 30 seconds.
      const isNoticed = service === 'Valkey' || fault === 'away' || fault === 'emptied'
      if (isNoticed) await gateway.waitForLog(({ msg }) => msg === lost)
      if (fault !== 'half-open') proxy.heal()
      if (isNoticed) await gateway.waitForLog(({ msg }) => msg === back)
      await askBoth()
      const expected = 2 * (REQUESTS + 1)
      const count = async (): Promise<number> => Number((await postgres.query('SELECT count(*) AS n FROM gateway.requests'))[0]?.['n'])
      // An emptied database has lost the rows that arrived before.
      const least = service === 'PostgreSQL' && fault === 'emptied' ? expected - 2 : expected
      while (await count() < least) await new Promise(resolve => setTimeout(resolve, 100))
      t.ok(await count() <= expected)
      while ((await postgres.query('SELECT FROM gateway.instances')).length === 0) await new Promise(resolve => setTimeout(resolve, 100))
    })
  }
})
