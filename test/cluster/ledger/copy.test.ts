import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { encode } from '../../../src/ledger/columns.ts'
import { copyLedger } from '../../../src/cluster/ledger/copy.ts'
import { LedgerStore } from '../../../src/ledger/write/ledger-store.ts'
import { gateway as command } from '../../cli/command.ts'
import { PASSWORD, startPostgres, withoutPostgres } from '../../support/postgres.ts'
import { startTcpProxy } from '../../support/tcp-proxy.ts'
import { row } from '../../ledger/rows.ts'
import { VERSION_1 } from '../../ledger/version-1.ts'

const ROWS = 3_500

t.test('the ledger is copied to PostgreSQL', { skip: withoutPostgres }, async t => {
  const server = await startPostgres(t)
  const file = join(t.testdir({}), 'gateway.db')
  const store = new LedgerStore(file, 'one')
  t.teardown(() => store.close())
  store.write({ seq: 1, drafts: [], closed: Array.from({ length: ROWS }, (_, n) => encode(row(`r${n}`))) })
  const sums = () => server.query('SELECT (SELECT count(*)::int FROM gateway.requests) AS rows, sum(requests)::int AS requests FROM gateway.days')

  t.test('a copy that is interrupted and run again copies each row once', async t => {
    const proxy = await startTcpProxy(t, server.port)
    const interrupted = copyLedger({ file, url: server.url(proxy.port), instance: 'gw1', onProgress: () => proxy.cut() })
    await t.rejects(interrupted, { name: 'DatabaseError' })
    const progress: number[] = []
    const { rows } = await copyLedger({ file, url: server.url(), instance: 'gw1', onProgress: rows => progress.push(rows) })
    t.ok(rows > 0 && rows < ROWS, `${rows} of ${ROWS} were left`)
    t.equal(progress.at(-1), rows)
    t.strictSame(await sums(), [{ rows: ROWS, requests: ROWS }])
    t.match(await copyLedger({ file, url: server.url(), instance: 'gw1', onProgress: () => undefined }), { rows: 0, refused: [] })
  })

  t.test('a ledger file of version 1 is copied', async t => {
    await server.createDatabase()
    const old = join(t.testdir({}), 'old.db')
    using db = new DatabaseSync(old)
    db.exec(VERSION_1)
    t.match(await copyLedger({ file: old, url: server.url(), instance: 'gw1', onProgress: () => undefined }), { rows: 1, refused: [] })
    t.match(await server.query('SELECT request_id, key FROM gateway.requests'), [{ request_id: 'old', key: 'team-a' }])
  })

  t.test('the command reports the result and each error', async t => {
    await server.createDatabase()
    const run = (from: string, to = server.url()) => command(['ledger', 'copy', '--from', from, '--to', to])
    t.match(await run(file), { code: 0, stdout: `Copied 3,500 requests of ${file}.\n` })
    t.match(await run(`${file}.not`), { code: 1, stderr: /there is no such file/ })
    t.match(await run(file, 'mysql://x/y'), { code: 2, stderr: /not a URL such as postgres/ })
    const refused = await run(file, server.url(1))
    t.match(refused, { code: 1, stderr: /ECONNREFUSED/ })
    t.notMatch(refused.stderr, PASSWORD)
  })
})
