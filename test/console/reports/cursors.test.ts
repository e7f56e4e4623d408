import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import t from 'tap'
import { Cursors } from '../../../src/console/reports/cursors.ts'
import { encode } from '../../../src/ledger/columns.ts'
import { LedgerStore } from '../../../src/ledger/write/ledger-store.ts'
import { row } from '../../ledger/rows.ts'
import { filled, NOW, withReports } from './filled.ts'

t.test('property: a cursor can be opened with the same secret, and its length does not depend on the sealed text', async t => {
  const secret = randomBytes(32)
  const [one, other] = [new Cursors(secret), new Cursors(secret)]
  const number = fc.nat(Number.MAX_SAFE_INTEGER)
  t.doesNotThrow(() => fc.assert(fc.property(number, number, (at, id) => {
    const sealed = one.seal(`${at}-${id}`)
    return other.open(sealed, 'before') === `${at}-${id}` && sealed.length === 82
  }), { numRuns: 50 }))
  t.not(one.seal('7'), one.seal('7'), 'two cursors of the same text differ')
})

t.test('a changed cursor and a cursor with another secret are refused', async t => {
  const cursors = new Cursors(randomBytes(32))
  const sealed = cursors.seal('1795259767137-9858')
  for (let at = 0; at < sealed.length; at++) {
    const changed = `${sealed.slice(0, at)}${sealed[at] === 'A' ? 'Z' : 'A'}${sealed.slice(at + 1)}`
    // The last character of base64 has unused bits.
    if (Buffer.from(changed, 'base64url').equals(Buffer.from(sealed, 'base64url'))) continue
    t.throws(() => cursors.open(changed, 'after'), { code: 'bad_request', field: 'after' })
  }
  t.throws(
    () => new Cursors(randomBytes(32)).open(sealed, 'before'), { code: 'bad_request', field: 'before' },
  )
  for (const text of ['', '9858', '1795259767137-9858', '*'.repeat(82)]) {
    t.throws(() => cursors.open(text, 'before'), { code: 'bad_request' })
  }
})

t.test('cursors do not reveal the number of requests of other keys', async t => {
  const mine = [0, 1, 2].map(n => row(`mine-${n}`, { startedAt: NOW - 5_000 - n, key: 'mine' }))
  const file = filled(t.testdir(), mine)
  const secret = randomBytes(32)
  await withReports(file, async reports => {
    const first = await reports.logs({ limit: 2 }, 'mine')
    const store = new LedgerStore(file, 'more')
    const theirs = Array.from(
      { length: 30 }, (_, n) => encode(row(`t${n}`, { startedAt: NOW - n, key: 'theirs' })),
    )
    store.write({ seq: 1, drafts: [], closed: theirs })
    const later = await reports.logs({ after: first.last ?? '' }, 'mine')
    t.strictSame(later.rows, [])
    t.not(later.last, first.last)
    for (const cursor of [first.next, first.last, later.last]) t.match(cursor, /^[-\w]{82}$/)
    // Another worker has the same secret.
    await withReports(file, async reports => {
      const older = await reports.logs({ limit: 2, before: first.next ?? '' }, 'mine')
      t.strictSame(older.rows.map(one => one.request_id), ['mine-2'])
    }, { secret })
    store.close()
  }, { secret })
})
