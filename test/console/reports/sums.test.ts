import { deepStrictEqual } from 'node:assert'
import { mkdirSync, rmSync } from 'node:fs'
import fc from 'fast-check'
import t from 'tap'
import type { Figures } from '../../../src/console/api/shapes.ts'
import { billing } from '../../../src/console/reports/billing.ts'
import { panel, upstreamFigures } from '../../../src/console/reports/panel.ts'
import { statement } from '../../../src/console/reports/statement.ts'
import { openView } from '../../../src/console/reports/view.ts'
import type { LedgerRow } from '../../../src/ledger/row.ts'
import { maybe } from '../../support/maybe.ts'
import { DAY, filled, HOUR, iso, NOW } from './filled.ts'
import { NOTHING_USED, row } from '../../ledger/rows.ts'
import { figuresOf } from '../../behaviour/console/figures-of.ts'

const NO_OWNERS = new Map<string, string>()

const between = (rows: readonly LedgerRow[], from: number, to: number) =>
  rows.filter(({ startedAt }) => startedAt >= from && startedAt < to)

const byName = (groups: readonly { name: string | null; figures: Figures }[]) =>
  new Map(groups.map(group => [group.name, group.figures]))

function grouped(
  rows: readonly LedgerRow[], name: (one: LedgerRow) => string | null,
): Map<string | null, Figures> {
  return new Map([...Map.groupBy(rows, name)].map(([group, some]) => [group, figuresOf(some)]))
}

const name = maybe(fc.constantFrom('', 'a', 'b', '0'))
const count = maybe(fc.nat(2 ** 40))
/** Seconds of the six days up to NOW, including the first and last second of hours. */
const moment = fc.nat(6 * 24 * 3600).map(n => NOW - (NOW % HOUR) - n * 1000)
const rows = fc.array(fc.record({
  startedAt: moment,
  key: name,
  model: name,
  upstream: name,
  end: fc.constantFrom('complete', 'client_gone', 'error', 'interrupted'),
  source: fc.constantFrom('reported', 'estimated', 'mixed', 'none'),
  costPico: maybe(fc.oneof(fc.bigInt(0n, 10n ** 10n), fc.bigInt(0n, 2n ** 63n - 1n))),
  input: count,
  cached: count,
  written: count,
  output: count,
}).map(({ input, cached, written, output, ...changes }) => row('', {
  ...changes,
  usage: {
    ...NOTHING_USED,
    inputTokens: input,
    cachedInputTokens: cached,
    cacheWrite1hTokens: written,
    outputTokens: output,
  },
}) as LedgerRow), { maxLength: 60 }).map(all => all.map((one, n) => ({ ...one, requestId: `r${n}` })))

t.test('property: the sums in panel, billing, statement and upstreams equal the sums of the rows', async t => {
  const directory = t.testdir()
  const property = fc.property(rows, fc.nat(60), moment, fc.integer({ min: 1, max: 5 * DAY }), (
    all, summed, from, length,
  ) => {
    // A failed run leaves its file.
    rmSync(directory, { recursive: true })
    mkdirSync(directory)
    const file = filled(directory, all, summed)
    const to = from + length
    const range = { from: iso(from), to: iso(to) }
    const open = openView(file)
    open.read(NOW, view => {
      const told = panel(view, range, null)
      const now = between(all, from, to)
      deepStrictEqual(told.now.figures, figuresOf(now))
      deepStrictEqual(told.before.figures, figuresOf(between(all, from - length, from)))
      deepStrictEqual(byName(told.top_keys), grouped(now, ({ key }) => key))
      deepStrictEqual(byName(told.top_models), grouped(now, ({ model }) => model))
      deepStrictEqual(told.slices.map(slice => slice.requests).reduce((a, b) => a + b, 0), now.length)
      deepStrictEqual(
        told.slices.map(slice => slice.at), slotsOf(from, to, { day: DAY, hour: HOUR, minute: 60_000 }[told.slice]),
      )
      const own = panel(view, range, 'a')
      deepStrictEqual(own.now.figures, figuresOf(now.filter(({ key }) => key === 'a')))

      const days = between(all, floor(from), ceil(to))
      for (const by of ['key', 'model', 'upstream'] as const) {
        const bill = billing(view, { ...range, by }, null, NO_OWNERS)
        deepStrictEqual(bill.total, figuresOf(days))
        deepStrictEqual(byName(bill.groups), grouped(days, one => one[by]))
        for (const { day, cost_usd: cost } of bill.days) {
          const start = Date.parse(day)
          deepStrictEqual(cost, figuresOf(between(all, start, start + DAY)).cost_usd)
        }
      }
      const some = days.filter(({ key, upstream }) => key === 'b' && upstream === '0')
      const narrow = billing(view, { ...range, by: 'model', key: 'b', upstream: '0' }, null, NO_OWNERS)
      deepStrictEqual(byName(narrow.groups), grouped(some, ({ model }) => model))

      for (const none of ['key', 'model', 'upstream'] as const) {
        const rest = billing(view, { ...range, by: 'model', without: none }, null, NO_OWNERS)
        deepStrictEqual(
          byName(rest.groups), grouped(days.filter(one => one[none] === null), ({ model }) => model),
        )
      }

      const upstreams = upstreamFigures(view, range)
      const served = grouped(now.filter(({ upstream }) => upstream !== null), ({ upstream }) => upstream)
      deepStrictEqual(byName(upstreams), served)

      const month = all.filter(({ key, startedAt }) => key === 'a' && iso(startedAt).startsWith('2026-11'))
      const paper = statement(view, { month: '2026-11' }, 'a', NO_OWNERS)
      deepStrictEqual(paper.total, figuresOf(month))
      deepStrictEqual(
        new Map(paper.lines.map(line => [line.model, line.figures])), grouped(month, one => one.model),
      )
    })
    open.close()
  })
  t.doesNotThrow(() => fc.assert(property, { numRuns: 60 }))
})

function floor(ms: number): number {
  return Math.floor(ms / DAY) * DAY
}

function ceil(ms: number): number {
  return Math.ceil(ms / DAY) * DAY
}

function slotsOf(from: number, to: number, size: number): string[] {
  const slots = []
  for (let at = Math.floor(from / size) * size; at < to; at += size) slots.push(iso(at))
  return slots
}
