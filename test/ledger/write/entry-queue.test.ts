import t from 'tap'
import { EntryQueue } from '../../../src/ledger/write/entry-queue.ts'
import { LedgerEntry } from '../../../src/ledger/entry.ts'

t.test('an entry that is pushed again moves to the end of the queue', async t => {
  const queue = new EntryQueue()
  const entries = Array.from({ length: 6 }, () => new LedgerEntry(null))
  const [a, b, c, d, e, f] = entries as [LedgerEntry, LedgerEntry, LedgerEntry, LedgerEntry, LedgerEntry, LedgerEntry]
  for (const entry of [a, b, c, d]) queue.push(entry)
  t.ok(areSame(queue.take(1), [a]))
  queue.push(b)
  queue.push(e)
  t.equal(queue.size, 4)
  t.ok(areSame([...queue], [c, d, b, e]))
  queue.push(d)
  t.ok(areSame(queue.take(2), [c, b]), 'places without an entry are skipped')
  t.strictSame([a.place, b.place, c.place], [null, null, null])
  queue.push(f)
  queue.push(a)
  t.ok(areSame(queue.take(Infinity), [e, d, f, a]))
  t.equal(queue.size, 0)
  t.strictSame(queue.take(1), [])
})

/** The same entries, in this order. */
function areSame(found: readonly LedgerEntry[], wanted: readonly LedgerEntry[]): boolean {
  return found.length === wanted.length && found.every((entry, n) => entry === wanted[n])
}
