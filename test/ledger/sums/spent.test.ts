import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { encode } from '../../../src/ledger/columns.ts'
import { LedgerStore } from '../../../src/ledger/write/ledger-store.ts'
import { spentByGroup, spentSince, spentWithoutKey } from '../../../src/ledger/sums/spent.ts'
import { draft, MIDNIGHT, row } from '../rows.ts'
import { VERSION_1 } from '../version-1.ts'
import { watch } from '../watched.ts'

const DAY = 86_400_000

t.test('spend is summed by key, model and UTC day, with running requests', async t => {
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
  ledger.open(() => draft('running', { startedAt: MIDNIGHT + DAY + 1, costPico: 17n }))
  await ledger.flush()
  const sums = spentSince(file, MIDNIGHT).toSorted((a, b) =>
    String(a.key).localeCompare(String(b.key)) || a.startedAt - b.startedAt)
  t.strictSame(sums, [
    { key: 'team-a', model: 'gpt-4.1-mini', startedAt: MIDNIGHT, pico: 2n * dear },
    { key: 'team-a', model: 'gpt-4.1-mini', startedAt: MIDNIGHT + DAY, pico: 24n },
    { key: 'team-b', model: null, startedAt: MIDNIGHT, pico: 11n },
  ])
  t.strictSame(spentWithoutKey(file, MIDNIGHT), [
    { key: null, model: 'gpt-4.1-mini', startedAt: MIDNIGHT, pico: 13n },
  ])
})

t.test('spend since a time of today is the same before and after rows are summed', t => {
  const file = join(t.testdir(), 'gateway.db')
  const store = new LedgerStore(file, 'one')
  const round = 10n ** 12n
  store.write({
    seq: 1,
    drafts: [],
    closed: [
      row('yesterday', { startedAt: MIDNIGHT - 1, costPico: 5n }),
      row('first', { startedAt: MIDNIGHT, costPico: round }),
      row('last', { startedAt: MIDNIGHT + DAY - 1, costPico: 2n * round }),
      row('nobody', { startedAt: MIDNIGHT, key: null, costPico: 3n * round }),
      row('cheap', { startedAt: MIDNIGHT, key: 'team-b', costPico: 7n }),
      row('free', { startedAt: MIDNIGHT, key: 'team-c', costPico: 0n }),
    ].map(encode),
  })
  const of = (key: string | null, pico: bigint) => ({ key, model: 'gpt-4.1-mini', startedAt: MIDNIGHT, pico })
  const check = (when: string) => {
    const all = spentSince(file, MIDNIGHT).toSorted((a, b) => String(a.key).localeCompare(String(b.key)))
    t.strictSame(all, [of('team-a', 3n * round), of('team-b', 7n)], when)
    t.strictSame(spentSince(file, MIDNIGHT, [], ['team-a']), [of('team-a', 3n * round)], when)
    t.strictSame(spentWithoutKey(file, MIDNIGHT), [of(null, 3n * round)], when)
  }
  check('in rows')
  store.sum()
  check('in sums')
  store.close()
  t.end()
})

t.test('a missing or empty file has no spend', async t => {
  const dir = t.testdir({ 'empty.db': '' })
  t.strictSame(spentSince(join(dir, 'none.db'), 0), [])
  t.strictSame(spentSince(join(dir, 'empty.db'), 0), [])
})

t.test('deleted rows and rows that are not summed yet count as spend', async t => {
  const file = join(t.testdir(), 'gateway.db')
  const store = new LedgerStore(file, 'one')
  store.write({ seq: 1, drafts: [], closed: [encode(row('old', { startedAt: MIDNIGHT, costPico: 5n }))] })
  store.sum()
  store.expire(MIDNIGHT + DAY, MIDNIGHT + DAY)
  const next = row('new', { startedAt: MIDNIGHT + DAY, costPico: 7n, model: '' })
  store.write({ seq: 2, drafts: [], closed: [encode(next)] })
  const spent = [
    { key: 'team-a', model: 'gpt-4.1-mini', startedAt: MIDNIGHT, pico: 5n },
    { key: 'team-a', model: '', startedAt: MIDNIGHT + DAY, pico: 7n },
  ]
  const sums = (keys: readonly string[] | null) => spentSince(file, 0, [], keys)
    .toSorted((a, b) => a.startedAt - b.startedAt)
  t.strictSame(sums(null), spent)
  t.strictSame(sums(['team-a', 'team-b']), spent)
  t.strictSame(sums(['team-b']), [])
  store.sum()
  t.strictSame(sums(null), spent)
  store.close()
})

t.test('the spend of a row counts once, before and after the row is in the file', async t => {
  const file = join(t.testdir(), 'gateway.db')
  const store = new LedgerStore(file, 'one')
  const dear = 2n ** 62n + 1n
  store.write({
    seq: 1,
    drafts: [encode(draft('ended', { costPico: 3n })), encode(draft('runs', { costPico: 5n }))],
    closed: [encode(row('there', { costPico: 7n }))],
  })
  const unwritten = [
    draft('ended', { costPico: 3n }), row('ended', { costPico: 11n }), row('there', { costPico: 7n }),
    row('new', { costPico: 13n }), draft('began', { costPico: 17n }), row('unknown', { costPico: null }),
    row('before', { startedAt: MIDNIGHT - 1 }), row('dear', { key: 'team-b', costPico: dear }),
    row('nobody', { key: null, costPico: 19n }),
  ].map(encode)
  const of = (key: string | null, pico: bigint) => (
    { key, model: 'gpt-4.1-mini', startedAt: MIDNIGHT, pico }
  )
  const mine = of('team-a', 5n + 7n + 11n + 13n + 17n)
  t.strictSame(spentSince(file, MIDNIGHT, unwritten), [mine, of('team-b', dear)])
  t.strictSame(spentSince(file, MIDNIGHT, unwritten, ['team-a']), [mine])
  t.strictSame(spentWithoutKey(file, MIDNIGHT, unwritten), [of(null, 19n)])
  // Several requests can have the same id, if a proxy sets the id.
  const again = [MIDNIGHT + 1, MIDNIGHT + 2].map(startedAt => encode(row('there', { startedAt, costPico: 23n })))
  t.strictSame(spentSince(file, MIDNIGHT, again), [of('team-a', 5n + 3n + 7n + 2n * 23n)])
  const other = [encode(draft('runs', { startedAt: MIDNIGHT + 1, costPico: 29n }))]
  t.strictSame(spentSince(file, MIDNIGHT, other), [of('team-a', 5n + 3n + 7n + 29n)])
  store.close()
})

t.test('the spend of a ledger of version 1 is summed from the rows', async t => {
  const file = join(t.testdir(), 'gateway.db')
  using old = new DatabaseSync(file)
  old.exec(VERSION_1)
  t.strictSame(spentSince(file, 0), [
    { key: 'team-a', model: null, startedAt: Date.UTC(2023, 10, 14), pico: 9007199254740993n },
  ])
})

t.test('spend is summed by group, with running and unwritten requests', async t => {
  const file = join(t.testdir(), 'gateway.db')
  await using watched = watch(file)
  const { ledger } = watched
  for (const one of [
    row('a', { startedAt: MIDNIGHT, group: 'research', costPico: 5n }),
    row('b', { startedAt: MIDNIGHT + 1, key: 'team-b', group: 'research', costPico: 7n }),
    row('c', { startedAt: MIDNIGHT + DAY, group: 'sales', costPico: 11n }),
    row('d', { startedAt: MIDNIGHT, group: null, costPico: 13n }),
  ]) ledger.close(one)
  ledger.open(() => draft('running', { startedAt: MIDNIGHT + DAY + 1, group: 'sales', costPico: 17n }))
  await ledger.flush()
  const unwritten = [encode(row('e', { startedAt: MIDNIGHT, group: 'sales', costPico: 19n }))]
  const sums = () => spentByGroup(file, MIDNIGHT, unwritten).map(({ group, startedAt, pico }) => [group, startedAt, pico])
    .toSorted((a, b) => String(a).localeCompare(String(b)))
  const due = [['research', MIDNIGHT, 12n], ['sales', MIDNIGHT, 19n], ['sales', MIDNIGHT + DAY, 28n]]
    .toSorted((a, b) => String(a).localeCompare(String(b)))
  t.strictSame(sums(), due)
})
