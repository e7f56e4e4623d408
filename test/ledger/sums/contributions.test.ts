import t from 'tap'
import { Contributions, HOUR, PART_SIZE, SUM_COLUMNS } from '../../../src/ledger/sums/contributions.ts'
import type { CountedRow } from '../../../src/ledger/sums/contributions.ts'
import { bucketOf } from '../../../src/ledger/sums/first-byte.ts'

const NOON = Date.UTC(2026, 10, 21, 12)
const SLOT = NOON / HOUR

const row = (more: Partial<CountedRow> = {}): CountedRow => ({
  startedAt: NOON, key: 'k', model: 'm', upstream: 'u', group: null, protocol: 'chat', status: 200, end: 'complete', source: 'reported', firstByteMs: null,
  inputTokens: null, cachedInputTokens: null, cacheWrite5mTokens: null, cacheWrite1hTokens: null, outputTokens: null, reasoningTokens: null, costHigh: 0, costLow: 0, ...more,
})

function added(...rows: readonly Partial<CountedRow>[]): Contributions {
  const contributions = new Contributions()
  for (const each of rows) contributions.add(row(each), 1)
  return contributions
}

/** The figures that are not 0, by their column. */
const figuresOf = (figures: readonly number[]) => Object.fromEntries(SUM_COLUMNS.flatMap((name, at) => (figures[at] ? [[name, figures[at]]] : [])))

const FIGURES: readonly (readonly [what: string, row: Partial<CountedRow>, expected: object])[] = [
  ['a request', {}, { requests: 1 }],
  ['an error', { end: 'timeout' }, { requests: 1, errors: 1 }],
  ['a client that disconnected', { end: 'client_gone' }, { requests: 1 }],
  ['an unknown cost', { costHigh: null, costLow: null }, { requests: 1, unpriced: 1 }],
  ['a cost', { costHigh: 2, costLow: 3 }, { requests: 1, cost_high: 2, cost_low: 3 }],
  ['an estimated cost', { source: 'estimated', costHigh: 2, costLow: 3 }, { requests: 1, estimated: 1, cost_high: 2, cost_low: 3, estimated_cost_high: 2, estimated_cost_low: 3 }],
  ['a partly estimated cost', { source: 'mixed', costHigh: 0, costLow: 3 }, { requests: 1, estimated: 1, cost_low: 3, estimated_cost_low: 3 }],
  [
    'tokens', { inputTokens: 1, cachedInputTokens: 2, cacheWrite5mTokens: 3, cacheWrite1hTokens: 4, outputTokens: 5, reasoningTokens: 6 },
    { requests: 1, input_low: 1, cached_low: 2, cache_write_low: 7, output_low: 5, reasoning_low: 6 },
  ],
  ['as many tokens as PART_SIZE', { inputTokens: PART_SIZE, outputTokens: PART_SIZE - 1 }, { requests: 1, input_high: 1, output_low: PART_SIZE - 1 }],
  ['more tokens than PART_SIZE', { inputTokens: 3 * PART_SIZE + 7 }, { requests: 1, input_high: 3, input_low: 7 }],
]

for (const [what, given, expected] of FIGURES) {
  t.test(`a row adds its figures to the sums: ${what}`, async t => {
    const [sums] = added(given).hours()
    t.strictSame(figuresOf(sums?.figures ?? []), expected)
  })
}

t.test('a removed row subtracts its figures from the sums', async t => {
  const contributions = new Contributions()
  const full = row({ end: 'error', source: 'mixed', inputTokens: 2 * PART_SIZE, outputTokens: 5, costHigh: 1, costLow: 2, firstByteMs: 10 })
  contributions.add(full, 1)
  contributions.add(full, -1)
  t.strictSame(figuresOf([...contributions.hours()][0]?.figures ?? []), {})
  t.strictSame([...contributions.firstBytes()].map(({ counts }) => [...counts.values()]), [[0], [0], [0]])
})

t.test('rows are summed by hour and day, for each combination of names', async t => {
  const contributions = added({}, { startedAt: NOON + HOUR - 1 }, { startedAt: NOON + HOUR }, { startedAt: NOON + 12 * HOUR }, { key: 'other' }, { status: 500 })
  const hours = [...contributions.hours()]
  t.strictSame(hours.map(({ slot, key, figures }) => [slot - SLOT, key, figures[0]]), [[0, 'k', 3], [1, 'k', 1], [12, 'k', 1], [0, 'other', 1]])
  t.equal(hours[0]?.lastAt, NOON + HOUR - 1)
  const day = Math.floor(SLOT / 24)
  t.strictSame([...contributions.days()].map(({ slot, key, figures }) => [slot - day, key, figures[0]]), [[0, 'k', 4], [1, 'k', 1], [0, 'other', 1]])
  t.strictSame([...contributions.detailedDays()].map(({ slot, key, status, figures }) => [slot - day, key, status, figures[0]]), [[0, 'k', '200', 3], [1, 'k', '200', 1], [0, 'other', '200', 1], [0, 'k', '500', 1]])
  t.equal(contributions.size, 5)
})

t.test('the sums of a day have the time of the last request, in whatever order rows are added', async t => {
  const [day] = added({ startedAt: NOON + 2 * HOUR }, { startedAt: NOON + 5 }, { startedAt: NOON + 3 }).days()
  t.equal(day?.lastAt, NOON + 2 * HOUR)
})

t.test('different combinations of names are kept apart, even if the joined names are equal', async t => {
  t.equal(added({ key: 'a', model: 'bc' }, { key: 'ab', model: 'c' }, { key: null, model: '-' }, { key: '-', model: null }).size, 4)
  t.equal([...added({ key: '1:a', model: 'b' }, { key: '1', model: 'a1:b' }).days()].length, 2)
})

t.test('each dimension is summed separately, and a row without a group adds nothing to the groups', async t => {
  const contributions = added({}, { key: 'other', startedAt: NOON + HOUR }, { key: null, group: 'g' })
  t.strictSame([...contributions.dimensions()].map(({ dimension, name, figures }) => [dimension, name, figures[0]]), [
    ['upstream', 'u', 3], ['key', 'k', 1], ['model', 'm', 3], ['key', 'other', 1], ['key', null, 1], ['group', 'g', 1],
  ])
})

t.test('times to the first byte are counted in total, by upstream and by key', async t => {
  const contributions = added({ firstByteMs: 10 }, { firstByteMs: 10, key: 'other' }, { firstByteMs: 500, key: null }, {})
  const found = [...contributions.firstBytes()].map(({ hour, scope, name, counts }) => [hour - SLOT, scope, name, Object.fromEntries(counts)])
  const [short, long] = [bucketOf(10), bucketOf(500)]
  t.strictSame(found, [
    [0, 0, '', { [short]: 2, [long]: 1 }], [0, 1, 'u', { [short]: 2, [long]: 1 }], [0, 2, 'k', { [short]: 1 }], [0, 2, 'other', { [short]: 1 }],
  ])
})
