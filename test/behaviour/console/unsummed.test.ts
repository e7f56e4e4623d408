import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { PASSWORD, YAML, chat, startConsole } from './console.ts'

t.test('while the sums of an older ledger are computed, reports are unavailable, and the log has no error', async t => {
  const gateway = await startConsole(t, YAML)
  await chat(gateway)
  const admin = await gateway.login({ name: 'ops', password: PASSWORD })
  const rows = async () => ((await admin.ask('/logs')).json as { rows: unknown[] }).rows.length
  while (await rows() === 0) await new Promise(resolve => setImmediate(resolve))
  const db = new DatabaseSync(join(gateway.file, '..', 'data', 'ledger.db'), { timeout: 5_000 })
  t.teardown(() => db.close())
  db.exec('UPDATE requests SET id = id + 300000')
  // The gateway cannot sum these rows meanwhile.
  db.exec('BEGIN IMMEDIATE')
  const { status, headers, json } = await admin.ask('/panel')
  db.exec('ROLLBACK')
  t.match({ status, json }, { status: 503, json: { code: 'unavailable', message: /totals of \d+ requests/ } })
  t.equal(headers.get('retry-after'), '5')
  t.notOk(gateway.logged.some(({ msg }) => msg === 'the console failed'), 'no error in the log')
})
