import t from 'tap'
import { openConsoleFile } from '../../../src/console/store/console-file.ts'
import { MAX_SESSION_AGE, IDLE_TIMEOUT, SessionTable } from '../../../src/console/store/session-table.ts'

const HOUR = 60 * 60_000
const NOW = 1000 * 24 * HOUR
const OPS = { kind: 'user', name: 'ops', credential: 'a' } as const

/** The numbers from 1 to :most, as a table of SQL. */
const UP_TO = 'numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :most)'

type Tap = Pick<typeof t, 'teardown'>

function openDb(t: Tap) {
  const db = openConsoleFile(null)
  t.teardown(() => db.close())
  return db
}

const digest = (n: number): Buffer => Buffer.alloc(32, String(n).padStart(8, '0'))

t.test('a session ends 30 minutes after its last use, and 12 hours after its login', t => {
  const sessions = new SessionTable(openDb(t))
  sessions.open(digest(1), OPS, NOW)
  t.equal(sessions.find(digest(1), NOW + IDLE_TIMEOUT - 1, false)?.seenAt, NOW, 'a read without use does not prolong the session')
  t.equal(sessions.find(digest(1), NOW + IDLE_TIMEOUT, false), null)
  sessions.open(digest(2), OPS, NOW)
  for (let now = NOW; now < NOW + MAX_SESSION_AGE; now += HOUR / 3) {
    t.equal(sessions.find(digest(2), now, true)?.seenAt, now)
  }
  t.ok(sessions.find(digest(2), NOW + MAX_SESSION_AGE - 1, true))
  t.equal(sessions.find(digest(2), NOW + MAX_SESSION_AGE, true), null)
  t.end()
})

t.test('expired sessions are deleted from the file at the next login', t => {
  const db = openDb(t)
  const sessions = new SessionTable(db)
  sessions.open(digest(1), OPS, NOW)
  sessions.open(digest(2), OPS, NOW + IDLE_TIMEOUT)
  sessions.open(digest(3), OPS, NOW + IDLE_TIMEOUT + 1)
  t.equal(db.prepare('SELECT count(*) AS n FROM sessions').get()?.['n'], 2)
  t.end()
})

t.test('a user has at most 100 sessions; sessions of a key with the same name are not counted', t => {
  const sessions = new SessionTable(openDb(t))
  sessions.open(digest(0), { ...OPS, kind: 'key' }, NOW)
  sessions.open(digest(1), { ...OPS, name: 'eye' }, NOW)
  for (let n = 2; n < 102; n++) sessions.open(digest(n), OPS, NOW + n)
  t.ok(sessions.find(digest(2), NOW + 200, false))
  // Above the maximum, the session with the oldest last use is deleted.
  t.ok(sessions.find(digest(2), NOW + 60_000, true))
  sessions.open(digest(102), OPS, NOW + 60_001)
  t.ok(sessions.find(digest(2), NOW + 60_002, false))
  t.equal(sessions.find(digest(3), NOW + 60_002, false), null)
  for (const n of [0, 1, 4, 102]) t.ok(sessions.find(digest(n), NOW + 60_002, false), String(n))
  t.end()
})

t.test('at most ten thousand sessions are stored', t => {
  const db = openDb(t)
  const others = db.prepare(`WITH RECURSIVE ${UP_TO} INSERT INTO sessions
    SELECT CAST(n AS BLOB), 'user', 'user ' || n, 'a', :now + n, :now + n FROM numbers`)
  others.run({ most: 10_010, now: NOW })
  new SessionTable(db).open(digest(0), OPS, NOW + 20_000)
  t.strictSame({ ...db.prepare('SELECT count(*) AS n, min(seen_at) AS at FROM sessions').get() }, {
    n: 10_000, at: NOW + 12,
  }, 'the sessions with the oldest last use are deleted')
  t.end()
})
