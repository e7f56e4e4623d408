import { join } from 'node:path'
import t from 'tap'
import { encode } from '../../../src/ledger/columns.ts'
import { LedgerStore } from '../../../src/ledger/write/ledger-store.ts'
import { draft, row } from '../../ledger/rows.ts'
import { NOW, withReports } from './filled.ts'

t.test('a name is not listed after its last request is rewritten with another name', async t => {
  const file = join(t.testdir(), 'gateway.db')
  const stopped = new LedgerStore(file, 'stopped')
  const first = draft('a', { startedAt: NOW, key: 'before', model: 'before', upstream: 'before' })
  stopped.write({ seq: 1, drafts: [encode(first)], closed: [] })
  // `next` treats the process as ended; a row that the process writes later still replaces the entry.
  stopped.abandon()
  const next = new LedgerStore(file, 'next')
  next.recover()
  next.sum()
  const last = row('a', { startedAt: NOW, key: 'after', model: 'after', upstream: 'after' })
  next.write({ seq: 1, drafts: [], closed: [encode(last)] })
  next.sum()
  next.close()
  await withReports(file, async reports => {
    t.strictSame(await reports.filters(null), { keys: ['after'], models: ['after'], upstreams: ['after'] })
    t.strictSame([...(await reports.keyUse()).keys()], ['after'])
    t.strictSame((await reports.upstreamFigures({})).map(({ name, share }) => [name, share]), [['after', 1]])
    t.strictSame((await reports.billing({}, null)).groups.map(({ name }) => name), ['after'])
    t.strictSame((await reports.logs({ key: 'before' }, null)).rows, [])
  })
})
