import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { AUDIT_SCHEMA, recordAudit } from '../../src/auth/audit.ts'

t.test('who logs in and out for ever does not fill the disk', async t => {
  const db = new DatabaseSync(':memory:')
  t.teardown(() => db.close())
  db.exec(AUDIT_SCHEMA)
  const entry = { at: 0, actor: 'key: test', address: null, subject: null, detail: null }
  db.exec('BEGIN')
  for (let n = 0; n < 11_000; n++) {
    recordAudit(db, { ...entry, action: 'login' })
    recordAudit(db, { ...entry, action: 'logout' })
  }
  db.exec('COMMIT')
  for (const { action, kept } of db.prepare('SELECT action, count(*) AS kept FROM audit GROUP BY action').all()) {
    t.ok(Number(kept) <= 10_100, `${String(action)}: ${String(kept)}`)
  }
})
