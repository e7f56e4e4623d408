import t from 'tap'
import { openConsoleFile } from '../../../src/console/store/console-file.ts'
import { ConsoleStore } from '../../../src/console/store/console-store.ts'
import { LoginAttemptTable } from '../../../src/console/store/login-attempts.ts'
import { SessionTable } from '../../../src/console/store/session-table.ts'

const DAY = 24 * 60 * 60_000
const MONTH = 30 * DAY
const OPS = { kind: 'user', name: 'ops', credential: 'a' } as const

t.test('after the date is set back, earlier failed logins do not lock a user out', t => {
  const db = openConsoleFile(null)
  t.teardown(() => db.close())
  const attempts = new LoginAttemptTable(db)
  const attempt = { name: 'ops', address: '192.0.2.1' }
  for (let n = 0; n < 5; n++) t.equal(attempts.begin(attempt, MONTH), 0)
  t.ok(attempts.begin(attempt, MONTH) > 0)
  t.equal(attempts.begin(attempt, DAY), 0)
  t.ok(attempts.begin(attempt, DAY) > 0, 'further failed logins have to wait')
  t.end()
})

t.test('after the date is set back, a session whose last use lies in the future ends', t => {
  const db = openConsoleFile(null)
  t.teardown(() => db.close())
  const sessions = new SessionTable(db)
  const digest = Buffer.alloc(32, 1)
  sessions.open(digest, OPS, MONTH)
  t.ok(sessions.find(digest, MONTH - 10_000, true), 'a small correction of the clock ends no session')
  t.equal(sessions.find(digest, MONTH - DAY, true), null)
  t.equal(sessions.find(digest, MONTH, true), null, 'the session stays ended')
  t.end()
})

t.test('after the date is set back, sessions from the future do not count towards the limit of a user', t => {
  const db = openConsoleFile(null)
  t.teardown(() => db.close())
  const sessions = new SessionTable(db)
  const digest = (n: number): Buffer => Buffer.alloc(32, String(n).padStart(8, '0'))
  for (let n = 0; n < 100; n++) sessions.open(digest(n), OPS, MONTH)
  for (let n = 100; n < 102; n++) sessions.open(digest(n), OPS, DAY)
  t.ok(sessions.find(digest(100), DAY + 1, true))
  t.ok(sessions.find(digest(101), DAY + 1, true))
  t.end()
})

t.test('after the date is set back, the snapshot of an ended worker is not shown', t => {
  const desk = new ConsoleStore({ consoleFile: null, keyFile: null, shared: null })
  t.teardown(() => desk.close())
  desk.saveSnapshot({ worker: 1, data: 'of the worker that has ended' }, MONTH)
  desk.saveSnapshot({ worker: 2, data: 'of one that works' }, DAY)
  t.match(desk.snapshots(DAY - 6_000, DAY + 1), [{ worker: 2 }])
  t.end()
})
