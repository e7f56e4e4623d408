import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { ClusterLedger } from '../../../src/cluster/ledger/cluster-ledger.ts'
import { clusterFailure, openClusterReader } from '../../../src/cluster/ledger/cluster-reader.ts'
import { encode } from '../../../src/ledger/columns.ts'
import { GROUPINGS } from '../../../src/ledger/read/usage-sum.ts'
import { openReader } from '../../../src/ledger/read/file-reader.ts'
import type { Filter } from '../../../src/ledger/read/ledger-reader.ts'
import type { LedgerRow } from '../../../src/ledger/row.ts'
import { LedgerStore } from '../../../src/ledger/write/ledger-store.ts'
import { BlockingDatabase } from '../../../src/cluster/postgres/blocking-database.ts'
import { Database } from '../../../src/cluster/postgres/database.ts'
import { migrate } from '../../../src/cluster/postgres/migrate.ts'
import { MIGRATIONS } from '../../../src/cluster/postgres/migrations.ts'
import { startPostgres, withoutPostgres } from '../../support/postgres.ts'
import { freePort } from '../../support/free-port.ts'
import { draft, MIDNIGHT, row, stored } from '../../ledger/rows.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

const ROWS: readonly LedgerRow[] = Array.from({ length: 1100 }, (_, n) => row(`r${n}`, {
  startedAt: MIDNIGHT - n * HOUR,
  key: [null, 'team-a', 'team-b', 'te%m_b', 'odd\\name'][n % 5] ?? null,
  model: `model-${n % 4}`,
  group: n % 7 === 0 ? 'science' : null,
  protocol: n % 6 === 0 ? 'messages' : 'chat',
  status: [200, 200, 429, null][n % 4] ?? null,
  user: n % 5 === 0 ? null : `user ${n % 3}`,
  tags: n % 2 === 0 ? null : { env: ['prod', 'a"b\\'][n % 4 === 1 ? 0 : 1] ?? '', project: `p${n % 9}` },
  costPico: n % 3 === 0 ? null : BigInt(n) * 9_000_000_000_001n,
}))

const FILTERS: readonly Filter[] = [
  {}, { since: MIDNIGHT - 50 * HOUR }, { until: MIDNIGHT - 49 * HOUR }, { since: MIDNIGHT - 5 * HOUR, until: MIDNIGHT - 2 * HOUR },
  { since: MIDNIGHT - 100 * HOUR, until: MIDNIGHT - 2 * HOUR, key: 'team-*' }, { key: 'te%m_b' }, { key: 'te%*' }, { key: 'odd\\n*' },
  { model: 'model-1', upstream: 'open*' }, { upstream: 'none' },
  { user: 'user 1', tags: { project: 'p*' } }, { tags: { env: 'a"b\\' } }, { tags: { env: 'a"*', project: 'p7' } }, { user: 'us*', tags: { env: 'prod' } },
]

t.test('the reader of all gateways', { skip: withoutPostgres }, async t => {
  const server = await startPostgres(t)
  const opened = async (): Promise<Database> => {
    await server.createDatabase()
    const database = new Database({ url: server.url(), name: 'test' })
    t.teardown(() => database.close())
    return database
  }
  const insert = async (database: Database, journal: string, rows: readonly LedgerRow[]): Promise<void> => {
    const ledger = new ClusterLedger(database)
    await ledger.insert(await ledger.register(journal, journal), rows.map(stored))
  }
  const oneIn = (n: number) => (_: unknown, at: number) => at % n === 0

  t.test('the reader gives the same results as a ledger file with the same rows', async t => {
    const database = await opened()
    await migrate(database, MIGRATIONS)
    await insert(database, 'gw1', ROWS.filter(oneIn(2)))
    await insert(database, 'gw2', ROWS.filter((_, at) => at % 2 === 1))
    compare(t)
  })

  t.test('the reader gives the same results for rows that were written before sums by group, protocol and status existed', async t => {
    const database = await opened()
    await migrate(database, MIGRATIONS.slice(0, 6))
    t.comment('the previous version does not write these columns')
    const columns = ['"user" text', 'tags text', 'billed text', 'queued_ms double precision', 'policy text']
    await server.query(`ALTER TABLE gateway.requests ${columns.map(column => `ADD COLUMN ${column}`).join(', ')}`)
    await insert(database, 'gw1', ROWS.slice(700))
    await server.query(`ALTER TABLE gateway.requests ${columns.map(column => `DROP COLUMN ${column.split(' ')[0]}`).join(', ')}`)
    await migrate(database, MIGRATIONS)
    await insert(database, 'gw1', ROWS.slice(0, 700))
    t.comment('rows of earlier days, some for the second time and changed')
    await insert(database, 'gw1', ROWS.slice(700).filter(oneIn(3)).map(each => ({ ...each, status: 503 })))
    await insert(database, 'gw1', ROWS)
    t.strictSame(await server.query(`SELECT (SELECT min(day) FROM gateway.detailed_days) - day AS distance, day > ${MIDNIGHT / DAY - 30} AS "isLater"
      FROM gateway.detailed_from`), [{ distance: 0, isLater: true }])
    compare(t)
  })

  function compare(t: Test): void {
    const file = join(t.testdir({}), 'gateway.db')
    const store = new LedgerStore(file, 'one')
    store.write({ seq: 1, drafts: [encode(draft('running'))], closed: ROWS.map(encode) })
    t.teardown(() => store.close())
    using local = openReader(file)
    using cluster = openClusterReader(new BlockingDatabase({ url: server.url(), name: 'test' }), openReader(file))
    for (const filter of FILTERS) {
      const name = JSON.stringify(filter)
      t.strictSame([...cluster.rows(filter)], [...local.rows(filter)], name)
      t.strictSame(cluster.latest(filter, 3), local.latest(filter, 3), name)
      for (const by of [...GROUPINGS.filter(each => each !== 'owner').map(each => [each]), [], ['key', 'model', 'day'], ['key', 'status', 'day'], ['group', 'status', 'minute'], ['tag:env', 'tag:project'], ['user', 'tag:env', 'day']] as const) {
        t.strictSame(cluster.sums(filter, by), local.sums(filter, by), `${name} by ${by.join()}`)
      }
    }
    for (const id of ['r7', 'running', 'none']) t.strictSame(cluster.find(id), local.find(id))
  }

  t.test('an unreadable database is reported with the reason', async t => {
    await server.createDatabase()
    const refused = `postgres://gateway@127.0.0.1:${await freePort()}/gateway`
    for (const [url, message] of [[server.url(), /no gateway has made the schema/], [refused, /ECONNREFUSED/]] as const) {
      const database = new BlockingDatabase({ url, name: 'test' })
      try {
        openClusterReader(database, null)
        t.fail('it is open')
      } catch (error) {
        t.match(clusterFailure(error), message)
      }
      database.close()
    }
    t.equal(clusterFailure(new Error('another one')), null)
  })
})
