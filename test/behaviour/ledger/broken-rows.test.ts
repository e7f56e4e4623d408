import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import type { Test } from 'tap'
import type { Reports, ReportsOptions } from '../../../src/console/reports/reports.ts'
import { ClusterLedger } from '../../../src/cluster/ledger/cluster-ledger.ts'
import { openClusterReader } from '../../../src/cluster/ledger/cluster-reader.ts'
import { jsonLine, ROW_FIELDS } from '../../../src/ledger/read/export-fields.ts'
import { openReader } from '../../../src/ledger/read/file-reader.ts'
import type { LedgerReader } from '../../../src/ledger/read/ledger-reader.ts'
import { requestReport } from '../../../src/ledger/request-report.ts'
import { BlockingDatabase } from '../../../src/cluster/postgres/blocking-database.ts'
import { Database } from '../../../src/cluster/postgres/database.ts'
import { migrate } from '../../../src/cluster/postgres/migrate.ts'
import { MIGRATIONS } from '../../../src/cluster/postgres/migrations.ts'
import { explainCost } from '../../../src/pricing/cost.ts'
import { HOUR, NOW, filled, withReports } from '../../console/reports/filled.ts'
import { row, stored } from '../../ledger/rows.ts'
import { startPostgres, withoutPostgres } from '../../support/postgres.ts'

const ROWS = ['sound', 'broken'].map(id => row(id, { startedAt: NOW - HOUR }))

/** Columns and their values in SQL. */
const BROKEN: readonly (readonly [column: string, value: string])[] = [
  ['attempts', `'[{"upstream":"openai"'`],
  ['attempts', `''`],
  ['attempts', `'{}'`],
  ['attempts', `'"text"'`],
  ['attempts', `'[null]'`],
  ['attempts', `'["text"]'`],
  ['attempts', `'[{}]'`],
  ['attempts', `'[{"upstream":"openai","model":null,"outcome":"ok","ms":1,"dropped":"a"}]'`],
  ['price', `'{"input":'`],
  ['price', `'[1]'`],
  ['price', `'{"input":0.4}'`],
  ['price', `'{"input":"much"}'`],
  ['price', `'{"tiers":[null]}'`],
  ['end', `'a later version'`],
  ['source', `''`],
  ['input_tokens', '9000000000000000000'],
]
const OF_SQLITE: typeof BROKEN = [['seconds', '9e999']]
const OF_POSTGRES: typeof BROKEN = [['seconds', `'NaN'`], ['duration_ms', `'Infinity'`]]

/** Reads the rows with all readers. */
async function readAll(t: Test, reader: LedgerReader, options: Partial<ReportsOptions> & { readonly file: string }, column: string): Promise<void> {
  const { file, ...rest } = options
  const rows = [...reader.rows({})]
  t.strictSame(rows.map(({ requestId, unreadable }) => [requestId, unreadable]), [['sound', undefined], ['broken', [column]]])
  t.equal(reader.latest({}, 10).length, 2)
  t.equal(reader.sums({}, ['key', 'day'])[0]?.requests, 2)
  t.equal(reader.sums({}, ['hour'])[0]?.requests, 2)
  const [found] = reader.find('broken')
  if (found !== undefined) t.match(requestReport(found.row, false, explainCost(found.row.usage, found.row.price)), `unreadable  ${column}`)
  const exported = rows.map(each => JSON.parse(jsonLine(ROW_FIELDS, each)) as Record<string, unknown>)
  if (column !== 'price') t.equal(exported[1]?.[column], 'unreadable')
  await withReports(file, async reports => {
    for (const q of ['attempts>=0', 'error:overloaded', 'key:team-a', '-error:x']) await reports.logs({ q }, null)
    const { rows: shown } = await reports.logs({}, null)
    t.strictSame(shown.map(({ request_id: id, unreadable }) => [id, unreadable]).sort(), [['broken', [column]], ['sound', []]])
    t.match(await textOf(reports), column === 'price' ? /sound[^]*broken|broken[^]*sound/ : /unreadable/)
    t.match(await reports.requestDetails('broken', null), { stories: [{ row: { unreadable: [column] } }] })
    const { outcomes, attempts } = await reports.upstreamReport('openai', {})
    t.equal(outcomes.requests, 2)
    t.strictSame(attempts.map(({ outcome }) => outcome).sort(), column === 'attempts' ? ['ok', 'unreadable'] : ['ok'])
    t.equal((await reports.statement({ key: 'team-a', month: '2026-11' }, null)).total.requests, 2)
    t.equal((await reports.billing({ by: 'key' }, null)).total.requests, 2)
    await reports.panel({}, null)
  }, rest)
}

async function textOf(reports: Reports): Promise<string> {
  let text = ''
  for await (const piece of reports.logsCsv({}, null)) text += piece
  return text
}

for (const [column, value] of [...BROKEN, ...OF_SQLITE]) {
  t.test(`all reports work if a row in SQLite has ${column} = ${value}`, async t => {
    const file = filled(t.testdir({}), ROWS)
    const db = new DatabaseSync(file)
    db.exec(`UPDATE requests SET "${column}" = ${value} WHERE request_id = 'broken'`)
    db.close()
    using reader = openReader(file)
    await readAll(t, reader, { file }, column)
  })
}

t.test('broken rows in PostgreSQL', { skip: withoutPostgres, timeout: 300_000 }, async t => {
  const server = await startPostgres(t)
  const database = new Database({ url: server.url(), name: 'test' })
  t.teardown(() => database.close())
  await migrate(database, MIGRATIONS)
  const ledger = new ClusterLedger(database)
  await ledger.insert(await ledger.register('gw1', 'gw1'), ROWS.map(stored))
  const file = filled(t.testdir({}), [])
  for (const [column, value] of [...BROKEN, ...OF_POSTGRES]) {
    await t.test(`all reports work if a row has ${column} = ${value}`, async t => {
      const [before] = await database.query(`SELECT "${column}"::text AS value FROM gateway.requests WHERE request_id = 'sound'`, [], 5_000)
      await database.query(`UPDATE gateway.requests SET "${column}" = ${value} WHERE request_id = 'broken'`, [], 5_000)
      using reader = openClusterReader(new BlockingDatabase({ url: server.url(), name: 'test reader' }), null)
      await readAll(t, reader, { file, cluster: { url: server.url(), instance: 'gw1' } }, column)
      const type = /tokens/.test(column) ? 'bigint' : /_ms|seconds/.test(column) ? 'double precision' : 'text'
      await database.query(`UPDATE gateway.requests SET "${column}" = $1::text::${type} WHERE request_id = 'broken'`, [before?.['value']], 5_000)
    })
  }
})

t.test('malformed histograms of the time to the first byte are ignored', async t => {
  const file = filled(t.testdir({}), ROWS)
  const db = new DatabaseSync(file)
  db.exec("UPDATE first_byte_hours SET counts = '{\"85\":'; UPDATE first_byte_days SET counts = '[1]'")
  db.close()
  await withReports(file, async reports => void await reports.panel({}, null))
})
