import t from 'tap'
import { openConsoleFile } from '../../../src/console/store/console-file.ts'
import { LoginAttemptTable } from '../../../src/console/store/login-attempts.ts'
import type { LoginAttempt } from '../../../src/console/store/login-attempts.ts'

const DAY = 24 * 60 * 60_000
const NOW = 1000 * DAY

/** The numbers from 1 to :most, as a table of SQL. */
const UP_TO = 'numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :most)'

type Tap = Pick<typeof t, 'teardown'>

function openDb(t: Tap) {
  const db = openConsoleFile(null)
  t.teardown(() => db.close())
  return db
}

/** Fails until there is a wait. @returns the number of failures without a wait, and the wait in ms */
function guess(attempts: LoginAttemptTable, attempt: LoginAttempt, now: number): [free: number, wait: number] {
  for (let free = 0; ; free++) {
    const wait = attempts.begin(attempt, now)
    if (wait > 0) return [free, wait]
  }
}

t.test('a successful login deletes the failures of the name and the failures of the address', t => {
  const attempts = new LoginAttemptTable(openDb(t))
  const own = { name: 'ops', address: '192.0.2.1' }
  const elsewhere = { name: 'ops', address: '198.51.100.1' }
  const neighbour = { name: 'eye', address: '192.0.2.1' }
  t.strictSame(guess(attempts, own, NOW), [5, 1000])
  attempts.succeeded(own, NOW)
  t.strictSame(guess(attempts, elsewhere, NOW), [5, 1000], 'the failures of the name are deleted')
  t.strictSame(guess(attempts, neighbour, NOW), [5, 1000], 'the failures of the address are deleted')
  // From here on the address is known for the name, and has a separate count.
  t.strictSame(guess(attempts, { ...own, address: '192.0.2.1' }, NOW + 1000), [1, 2000])
  attempts.succeeded(own, NOW + 3000)
  t.strictSame(guess(attempts, own, NOW + 3000), [5, 1000], 'the failures of the name at its known address are deleted')
  t.end()
})

t.test('failures are deleted after a day; the known address of a user is deleted after 30 days', t => {
  const attempts = new LoginAttemptTable(openDb(t))
  const own = { name: 'ops', address: '192.0.2.1' }
  const thief = { name: 'ops', address: '198.51.100.1' }
  attempts.succeeded(own, NOW)
  t.strictSame(guess(attempts, thief, NOW), [5, 1000])
  t.strictSame(guess(attempts, thief, NOW + DAY), [1, 2000], 'failures count for a whole day')
  t.strictSame(guess(attempts, thief, NOW + 2 * DAY + 1), [5, 1000])
  t.strictSame(guess(attempts, thief, NOW + 29 * DAY), [5, 1000])
  t.equal(attempts.begin(own, NOW + 29 * DAY), 0, 'failures from other addresses do not delay a login from the known address')
  t.strictSame(guess(attempts, thief, NOW + 30 * DAY), [1, 2000])
  t.ok(attempts.begin(own, NOW + 30 * DAY) > 0, 'an address without a login for 30 days is not known')
  t.end()
})

t.test('each IPv4 address has a separate count, even if the address is written as IPv6', t => {
  const attempts = new LoginAttemptTable(openDb(t))
  for (const address of ['192.0.2.1', '192.0.2.2', '::ffff:192.0.2.3', '::ffff:192.0.2.4']) {
    t.strictSame(guess(attempts, { name: null, address }, NOW), [5, 1000], address)
  }
  t.end()
})

t.test('a new failure deletes all but the latest 20,000 addresses', t => {
  const db = openDb(t)
  const others = db.prepare(`WITH RECURSIVE ${UP_TO} INSERT INTO attempts
    SELECT 'address ' || n, 1, 0, :now + n FROM numbers`)
  others.run({ most: 20_100, now: NOW })
  new LoginAttemptTable(db).begin({ name: null, address: '192.0.2.1' }, NOW + 30_000)
  t.strictSame({ ...db.prepare('SELECT count(*) AS n, min(at) AS at FROM attempts').get() }, {
    n: 20_001, at: NOW + 101,
  }, 'the addresses with the oldest failures are deleted')
  t.end()
})
