import t from 'tap'
import { Database } from '../../../src/cluster/postgres/database.ts'
import { Valkey } from '../../../src/cluster/valkey/valkey.ts'
import { startHook } from '../alerts/hook.ts'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { startPostgres, withoutPostgres } from '../../support/postgres.ts'
import type { TestPostgres } from '../../support/postgres.ts'
import { startRedis, withoutRedis } from '../../support/redis.ts'
import { startTcpAddress } from '../../support/tcp-address.ts'
import { ask } from './ask.ts'

/** Makes open sessions of the database read-only, and new sessions too unless `exceptNew`. */
async function demote(postgres: TestPostgres, exceptNew: boolean): Promise<void> {
  const database = new URL(postgres.url()).pathname.slice(1)
  await postgres.query('ALTER SYSTEM SET default_transaction_read_only = on')
  if (exceptNew) await postgres.query(`ALTER DATABASE ${database} SET default_transaction_read_only = off`)
  await postgres.query('SELECT pg_reload_conf()')
}

async function promote(postgres: TestPostgres): Promise<void> {
  await postgres.query('ALTER SYSTEM RESET default_transaction_read_only')
  await postgres.query('SELECT pg_reload_conf()')
}

const yamlOf = (cluster: string, rest = '') => `
upstreams: { demo: { simulator: true } }
routes: [{ to: demo }]
models: { demo: { price: { per_request: 1 } } }
ledger: { file: gateway.db }
keys: [{ name: team, key: ${KEY}, limits: { concurrent: 100, requests_per_minute: 100000 } }]
cluster: { instance: gw1, ${cluster} }
${rest}`

async function storesOf(gateway: TestGateway, matches: (failure: string | null) => boolean) {
  for (;;) {
    const { stores } = gateway.status()
    if (stores.length > 0 && stores.every(({ failure }) => matches(failure))) return stores
    await new Promise(setImmediate)
  }
}

t.test('the Valkey master becomes a replica', { skip: withoutRedis, timeout: 120_000 }, async t => {
  const [old, replacement] = await Promise.all([startRedis(t), startRedis(t)])

  t.test('shared limits apply again if the address leads to the new master', async t => {
    const address = await startTcpAddress(t, old.port)
    const gateway = await startTestGateway(t, yamlOf(`valkey: "${old.url(address.port)}", valkey_timeout: 1s`))
    t.equal(await ask(gateway), 200)
    await storesOf(gateway, failure => failure === null)
    address.leadTo(replacement.port)
    await old.client.call('REPLICAOF', '127.0.0.1', '1')
    while ((await replacement.client.keys('gateway:*')).length === 0) t.equal(await ask(gateway), 200)
    t.match(await storesOf(gateway, failure => failure === null), [{ name: 'valkey' }])
  })

  t.test('if the address leads to the old master, status, metrics and alerts report the error, and requests are served', async t => {
    await old.client.call('REPLICAOF', 'NO', 'ONE')
    const hook = await startHook(t)
    const gateway = await startTestGateway(t, yamlOf(`valkey: "${old.url()}", valkey_timeout: 1s`, `
alerts: { webhook: { url: "${hook.url}" } }
telemetry: { prometheus: { listen: 127.0.0.1:0 } }`))
    const metric = async () => /^gateway_store_writable\{store="valkey"\} (\d)$/m.exec(await (await fetch(`${gateway.addresses.metrics}/metrics`)).text())?.[1]
    await storesOf(gateway, failure => failure === null)
    t.equal(await metric(), '1')
    await old.client.call('REPLICAOF', '127.0.0.1', '1')
    t.match(await storesOf(gateway, failure => failure !== null), [{ name: 'valkey', failure: /READONLY/, since: /^20/ }])
    t.equal(await metric(), '0')
    t.match(await hook.reported('store.failed'), { severity: 'error', message: /^Valkey takes no writes: .*READONLY/, data: { store: 'valkey' } })
    t.equal(await ask(gateway), 200)
    await old.client.call('REPLICAOF', 'NO', 'ONE')
    t.match(await hook.reported('store.recovered'), { severity: 'info', message: 'Valkey takes writes again' })
  })

  t.test('a connection is replaced after the server refuses a write', async t => {
    const valkey = new Valkey({ url: old.url() }, `return redis.call('SET', KEYS[1], ARGV[1])`, 1_000)
    t.teardown(() => valkey.close())
    await valkey.run(['a'], '1')
    const connections = async () => Number(/total_connections_received:(\d+)/.exec(await old.client.info('stats'))?.[1])
    const before = await connections()
    await old.client.call('REPLICAOF', '127.0.0.1', '1')
    for (const write of [() => valkey.run(['a'], '2'), () => valkey.since('b')]) {
      let error: Error | null = null
      while (!/READONLY/.test(error?.message ?? '')) {
        error = await write().then(() => null, (thrown: Error) => thrown)
        await new Promise(setImmediate)
      }
    }
    while (await connections() < before + 2) await new Promise(setImmediate)
    t.ok(await connections() < before + 50, 'the number of new connections is limited')
    await old.client.call('REPLICAOF', 'NO', 'ONE')
  })
})

t.test('PostgreSQL connections become read-only', { skip: withoutPostgres, timeout: 120_000 }, async t => {
  const postgres = await startPostgres(t)

  t.test('ledger rows are written over new connections', async t => {
    const gateway = await startTestGateway(t, yamlOf(`postgres: "${postgres.url()}"`))
    const rows = async () => Number((await postgres.query('SELECT count(*) AS n FROM gateway.requests'))[0]?.['n'])
    t.equal(await ask(gateway), 200)
    while (await rows() < 1) await new Promise(setImmediate)
    await storesOf(gateway, failure => failure === null)
    await demote(postgres, true)
    t.equal(await ask(gateway), 200)
    while (await rows() < 2) await new Promise(setImmediate)
    t.match(await storesOf(gateway, failure => failure === null), [{ name: 'postgres' }])
    await promote(postgres)
  })

  t.test('if PostgreSQL accepts no writes on any connection, status and alerts report the error', async t => {
    await postgres.createDatabase()
    const hook = await startHook(t)
    const gateway = await startTestGateway(t, yamlOf(`postgres: "${postgres.url()}"`, `alerts: { webhook: { url: "${hook.url}" } }`))
    await storesOf(gateway, failure => failure === null)
    await demote(postgres, false)
    t.match(await storesOf(gateway, failure => failure !== null), [{ name: 'postgres', failure: /read-only transaction/ }])
    t.match(await hook.reported('store.failed'), { message: /^PostgreSQL takes no writes: / })
    t.equal(await ask(gateway), 200)
    await promote(postgres)
    await hook.reported('store.recovered')
  })

  t.test('a connection is replaced after a refused write, or if the connection is read-only', async t => {
    await postgres.createDatabase()
    let lost = 0
    const database = new Database({ url: postgres.url(), name: 'test', onLost: () => void lost++ })
    t.teardown(() => database.close())
    await database.query('CREATE TABLE items (id integer)')
    await demote(postgres, true)
    while (lost === 0) await database.query('INSERT INTO items VALUES (1)').catch((error: unknown) => t.match(error, { code: 'unreachable', sqlState: '25006' }))
    await database.query('INSERT INTO items VALUES (2)')
    t.equal(database.isOpen, true)
    await promote(postgres)
    await postgres.createDatabase()
    let lostByReader = 0
    const reader = new Database({ url: postgres.url(), name: 'test', checkIntervalMs: 0, onLost: () => void lostByReader++ })
    t.teardown(() => reader.close())
    await reader.query('SELECT 1')
    await demote(postgres, true)
    while (lostByReader === 0) await reader.query('SELECT 1')
    // The new connection of the reader stays open.
    for (let n = 0; n < 3; n++) t.strictSame(await reader.transaction(query => query('SELECT 1 AS one')), [{ one: 1 }])
    t.equal(lostByReader, 1)
    await promote(postgres)
  })
})
