import t from 'tap'
import { row } from '../../ledger/rows.ts'
import { DAY, filled, iso, NOW, withReports } from './filled.ts'

const MIDNIGHT = NOW - (NOW % DAY)
const USD = 10n ** 12n

t.test('the chart of spend has a part for each of the twelve dearest, and one for all others', async t => {
  // Together more than 2^63 picodollars.
  const rows = Array.from({ length: 14 }, (_, n) => [
    row(`yesterday ${n}`, { startedAt: MIDNIGHT - 1, key: `key-${n}`, costPico: BigInt(1_000_000 - n) * USD }),
    row(`today ${n}`, { startedAt: MIDNIGHT, key: `key-${n}`, costPico: BigInt(14 - n) * USD }),
  ]).flat()
  const nobody = row('nobody', { startedAt: MIDNIGHT, key: null, costPico: 2_000_000n * USD })
  const free = row('free', { startedAt: MIDNIGHT, key: 'free', costPico: 0n })
  const file = filled(t.testdir(), [...rows, nobody, free], 20)
  await withReports(file, async reports => {
    const range = { from: iso(MIDNIGHT - DAY + 1), to: iso(MIDNIGHT + 1) }
    const { from, to, days, groups } = await reports.billing(range, null)
    t.strictSame([from, to], [iso(MIDNIGHT - DAY), iso(MIDNIGHT + DAY)])
    t.strictSame(groups.slice(0, 3).map(({ name }) => name), [null, 'key-0', 'key-1'])
    t.strictSame(days.map(({ day, cost_usd: cost, others_cost_usd: others, parts }) =>
      [day, cost, others, parts.length]), [
      ['2026-11-20', '13999909', '2999964', 11],
      ['2026-11-21', '2000105', '6', 12],
    ])
    t.strictSame(days[1]?.parts.slice(0, 2), [
      { name: null, cost_usd: '2000000' }, { name: 'key-0', cost_usd: '14' },
    ])
  })
})
