import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import t from 'tap'
import { encode } from '../../../src/ledger/columns.ts'
import { LedgerStore } from '../../../src/ledger/write/ledger-store.ts'
import { row } from '../../ledger/rows.ts'
import { withFolder } from '../../support/folder.ts'
import type { FolderOwner } from '../../support/folder.ts'
import { startTestGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { PASSWORD, startPostgres, withoutPostgres } from '../../support/postgres.ts'
import type { TestPostgres } from '../../support/postgres.ts'
import { startTcpProxy } from '../../support/tcp-proxy.ts'
import { ask } from './ask.ts'

function start(t: FolderOwner, url: string, instance: string): Promise<TestGateway> {
  return startTestGateway(t, `
upstreams: { demo: { simulator: true } }
routes: [{ to: demo }]
ledger: { file: ${instance}.db }
cluster: { postgres: "\${URL}", instance: ${instance} }
`, { URL: url })
}

async function countRows(server: TestPostgres): Promise<number> {
  const [found] = await server.query('SELECT count(*) AS rows FROM gateway.requests')
  return Number(found?.['rows'])
}

t.test('gateways with a shared ledger', { skip: withoutPostgres, timeout: 190_000 }, async t => {
  const server = await startPostgres(t)

  t.test('two gateways that start at once write all rows to the shared ledger before they exit', async t => {
    await server.createDatabase()
    t.jobs = 2
    await Promise.all(['gw1', 'gw2'].map(name => t.test(name, { buffered: true }, async t => {
      const gateway = await start(t, server.url(), name)
      for (let n = 0; n < 3; n++) t.equal(await ask(gateway), 200)
      await gateway.close()
    })))
    t.equal(await countRows(server), 6)
    t.strictSame(await server.query('SELECT instance FROM gateway.journals ORDER BY instance'),
      [{ instance: 'gw1' }, { instance: 'gw2' }])
    t.strictSame(await server.query('SELECT sum(requests) AS requests FROM gateway.days'), [{ requests: '6' }])
  })

  t.test('a gateway starts and serves without PostgreSQL, and sends its rows later', async t => {
    await server.createDatabase()
    const proxy = await startTcpProxy(t, server.port)
    proxy.cut()
    const gateway = await start(t, server.url(proxy.port), 'gw1')
    const failed = await gateway.waitForLog(({ msg }) =>
      msg === 'ledger rows cannot be sent to PostgreSQL: they wait in the file')
    t.match(failed, { failure: { code: 'unshipped' } })
    t.equal(await ask(gateway), 200)
    proxy.heal()
    await gateway.waitForLog(({ msg }) => msg === 'ledger rows are sent to PostgreSQL again')
    await gateway.close()
    t.equal(await countRows(server), 1)
    t.notMatch(JSON.stringify(gateway.logged), PASSWORD)
    t.notMatch(JSON.stringify(gateway.logged), encodeURIComponent(PASSWORD))
  })

  t.test('after an outage of PostgreSQL, requests are served while 100,000 rows are sent', { timeout: 170_000 }, async t => {
    await server.createDatabase()
    const waiting = 100_000
    const owner = withFolder(t)
    const store = new LedgerStore(join(owner.folder, 'gw1.db'), 'before', true)
    for (let n = 0; n < waiting; n += 5_000) {
      store.write({ seq: n + 1, drafts: [], closed: Array.from({ length: 5_000 }, (_, at) => encode(row(`r${n + at}`))) })
    }
    store.close()
    const proxy = await startTcpProxy(t, server.port)
    proxy.cut()
    const gateway = await start(owner, server.url(proxy.port), 'gw1')
    const failed = await gateway.waitForLog(({ msg }) => msg === 'ledger rows cannot be sent to PostgreSQL: they wait in the file')
    t.match(failed, { stats: { pending: waiting } })
    t.equal(await ask(gateway), 200)
    proxy.heal()
    await gateway.waitForLog(({ msg }) => msg === 'ledger rows are sent to PostgreSQL again')
    let requests = 1
    let meanwhile = 0
    for (let sent = 0; sent < waiting + requests; sent = await countRows(server)) {
      t.equal(await ask(gateway), 200)
      requests += 1
      if (sent < waiting) meanwhile += 1
    }
    t.ok(meanwhile >= 5, `${meanwhile} requests had their response before these rows were sent`)
    await gateway.close()
    t.equal(await countRows(server), waiting + requests)
    t.strictSame(await server.query('SELECT sum(requests)::int AS requests FROM gateway.days'), [{ requests: waiting + requests }])
  })

  t.test('a gateway that stops without PostgreSQL keeps the rows in its file', async t => {
    await server.createDatabase()
    const proxy = await startTcpProxy(t, server.port)
    proxy.cut()
    const gateway = await start(t, server.url(proxy.port), 'gw1')
    t.equal(await ask(gateway), 200)
    await gateway.close()
    const db = new DatabaseSync(join(gateway.file, '..', 'gw1.db'))
    t.teardown(() => db.close())
    t.match(db.prepare('SELECT count(*) AS requests, (SELECT shipped_to FROM journal) AS shipped FROM requests').get(),
      { requests: 1, shipped: 0 })
  })
})
