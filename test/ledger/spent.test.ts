import { join } from 'node:path'
import t from 'tap'
import { spentSince } from '../../src/ledger/spent.ts'
import { draft, MIDNIGHT, row } from './rows.ts'
import { watch } from './watched.ts'

const DAY = 86_400_000

t.test('what was spent is summed by key, model and UTC day, what is in flight included', async t => {
  const file = join(t.testdir(), 'gateway.db')
  await using watched = watch(file)
  const { ledger } = watched
  const dear = 2n ** 63n - 1n
  for (const one of [
    row('yesterday', { startedAt: MIDNIGHT - 1, costPico: 5n }),
    row('a', { startedAt: MIDNIGHT, costPico: dear }),
    row('b', { startedAt: MIDNIGHT + DAY - 1, costPico: dear }),
    row('c', { startedAt: MIDNIGHT + DAY, costPico: 7n }),
    row('d', { startedAt: MIDNIGHT, key: 'team-b', model: null, costPico: 11n }),
    row('nobody', { startedAt: MIDNIGHT, key: null, costPico: 13n }),
    row('free', { startedAt: MIDNIGHT, key: 'team-c', costPico: 0n }),
    row('unknown', { startedAt: MIDNIGHT, key: 'team-d', costPico: null }),
  ]) ledger.close(one)
  ledger.open(draft('running', { startedAt: MIDNIGHT + DAY + 1, costPico: 17n }))
  await ledger.flush()
  const sums = spentSince(file, MIDNIGHT).toSorted((a, b) =>
    a.key.localeCompare(b.key) || a.startedAt - b.startedAt)
  t.strictSame(sums, [
    { key: 'team-a', model: 'gpt-4.1-mini', startedAt: MIDNIGHT, pico: 2n * dear },
    { key: 'team-a', model: 'gpt-4.1-mini', startedAt: MIDNIGHT + DAY, pico: 24n },
    { key: 'team-b', model: null, startedAt: MIDNIGHT, pico: 11n },
  ])
})

t.test('a file that is not there, or empty, has no sums', async t => {
  const dir = t.testdir({ 'empty.db': '' })
  t.strictSame(spentSince(join(dir, 'none.db'), 0), [])
  t.strictSame(spentSince(join(dir, 'empty.db'), 0), [])
})
