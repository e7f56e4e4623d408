import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { AUDIT_SCHEMA, readAuditEvents, recordAuditEvent, truncateAuditText } from '../../src/auth/audit.ts'
import type { AuditEvent } from '../../src/auth/audit.ts'

function opened(t: { teardown(close: () => void): void }) {
  const db = new DatabaseSync(':memory:')
  t.teardown(() => db.close())
  db.exec(AUDIT_SCHEMA)
  const record = (more: Partial<AuditEvent> = {}) => recordAuditEvent(db, { at: 1, actor: 'console: ops', address: null, action: 'login', subject: null, detail: null, ...more })
  /** Adds many events with one statement, which prunes nothing. */
  const fill = (count: number, actor: string, action: string) => db.prepare(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
    INSERT INTO audit (at, actor, action) SELECT i, ?, ? FROM n`).run(count, actor, action)
  const countOf = (actor: string) => Number(db.prepare('SELECT count(*) AS n FROM audit WHERE actor = ?').get(actor)?.['n'])
  return { db, record, fill, countOf }
}

t.test('audit events are read with the newest first', async t => {
  const { db, record } = opened(t)
  const full: AuditEvent = { at: 7, actor: 'key: team', address: '192.0.2.1', action: 'key.created', subject: 'a', detail: 'd' }
  record()
  record(full)
  record({ at: 9 })
  t.strictSame(readAuditEvents(db, null, 2), [{ id: 3, at: 9, actor: 'console: ops', address: null, action: 'login', subject: null, detail: null }, { id: 2, ...full }])
  t.strictSame(readAuditEvents(db, 2, 10).map(({ id }) => id), [1])
  t.strictSame(readAuditEvents(db, 1, 10), [])
})

t.test('long texts of audit events are cut', async t => {
  t.equal(truncateAuditText('x'.repeat(256)), 'x'.repeat(256))
  t.equal(truncateAuditText('x'.repeat(257)), `${'x'.repeat(256)}…`)
  const { db, record } = opened(t)
  record({ actor: 'a'.repeat(300), detail: 'd'.repeat(300) })
  const [event] = readAuditEvents(db, null, 1)
  t.strictSame([event?.actor.length, event?.detail?.length], [257, 257])
})

t.test('old audit events are deleted separately for each kind of actor', async t => {
  const { db, record, fill, countOf } = opened(t)
  fill(10_150, 'key: team', 'login')
  fill(10_100, 'console: unknown', 'login')
  record()
  t.equal(countOf('key: team'), 10_150, 'old events are deleted only at each hundredth event')
  while (Number(db.prepare('SELECT max(id) AS id FROM audit').get()?.['id']) % 100 !== 0) record()
  t.strictSame([countOf('key: team'), countOf('console: unknown')], [10_000, 10_000])
  const kept = countOf('console: ops')
  fill(10_150, 'key: team', 'logout')
  while (Number(db.prepare('SELECT max(id) AS id FROM audit').get()?.['id']) % 100 !== 0) record({ actor: 'key: other' })
  t.equal(countOf('console: ops'), kept)
  t.equal(Number(db.prepare("SELECT min(at) AS at FROM audit WHERE actor = 'key: team' AND action = 'logout'").get()?.['at']), 151, 'the oldest events are deleted')
})
