import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { AUDIT_SCHEMA, recordAuditEvent } from '../../../src/auth/audit.ts'

t.test('the number of stored audit events of logins and logouts is limited', async t => {
  const db = new DatabaseSync(':memory:')
  t.teardown(() => db.close())
  db.exec(AUDIT_SCHEMA)
  const entry = { at: 0, actor: 'key: test', address: null, subject: null, detail: null }
  db.exec('BEGIN')
  for (let n = 0; n < 11_000; n++) {
    recordAuditEvent(db, { ...entry, action: 'login' })
    recordAuditEvent(db, { ...entry, action: 'logout' })
  }
  db.exec('COMMIT')
  for (
    const { action, kept } of db.prepare('SELECT action, count(*) AS kept FROM audit GROUP BY action').all()
  ) {
    t.ok(Number(kept) <= 10_100, `${String(action)}: ${String(kept)}`)
  }
})

t.test('audit events of key holders and unknown users displace no audit event of an administrator', async t => {
  const db = new DatabaseSync(':memory:')
  t.teardown(() => db.close())
  db.exec(AUDIT_SCHEMA)
  const entry = { at: 0, address: null, subject: null, detail: null }
  recordAuditEvent(db, { ...entry, actor: 'console: ops', action: 'login' })
  recordAuditEvent(db, { ...entry, actor: 'console: ops', action: 'login.refused' })
  db.exec('BEGIN')
  for (let n = 0; n < 10_200; n++) {
    recordAuditEvent(db, { ...entry, actor: 'key: test', action: 'login' })
    recordAuditEvent(db, { ...entry, actor: 'key: unknown', action: 'login.refused' })
    recordAuditEvent(db, { ...entry, actor: 'console: unknown', action: 'login.refused' })
  }
  db.exec('COMMIT')
  const kept = db.prepare('SELECT actor, action, count(*) AS kept FROM audit GROUP BY 1, 2').all()
  t.equal(kept.filter(({ actor }) => actor === 'console: ops').length, 2)
  for (const { actor, kept: count } of kept) {
    t.ok(Number(count) <= 10_100, `${String(actor)}: ${String(count)}`)
  }
})
