import t from 'tap'
import { customRange, presetRange, rangeOf, searchOf, wholeDays } from '../../../src/console/web/src/range.ts'

const NOW = Date.parse('2026-11-21T07:18:22.500Z')
const of = (search: string) => rangeOf(new URLSearchParams(search), '24h')

t.test('a preset is relative to the current time', async t => {
  t.strictSame(presetRange('1h').at(NOW), {
    from: '2026-11-21T06:18:22.500Z', to: '2026-11-21T07:18:22.500Z',
  })
  t.strictSame(presetRange('month').at(NOW), {
    from: '2026-11-01T00:00:00.000Z', to: '2026-11-21T07:18:22.500Z',
  })
  t.strictSame(presetRange('today').at(NOW), {
    from: '2026-11-21T00:00:00.000Z', to: '2026-11-21T07:18:22.500Z',
  })
  t.strictSame(presetRange('yesterday').at(NOW), {
    from: '2026-11-20T00:00:00.000Z', to: '2026-11-21T00:00:00.000Z',
  })
  t.strictSame(presetRange('last-month').at(Date.parse('2026-01-05T00:00:00Z')),
    { from: '2025-12-01T00:00:00.000Z', to: '2026-01-01T00:00:00.000Z' })
})

t.test('the last 7 days in whole days are today and the six days before today', async t => {
  t.strictSame(wholeDays(presetRange('7d')).at(NOW), {
    from: '2026-11-15T00:00:00.000Z', to: '2026-11-22T00:00:00.000Z',
  })
  t.strictSame(wholeDays(presetRange('month')).at(NOW), {
    from: '2026-11-01T00:00:00.000Z', to: '2026-11-22T00:00:00.000Z',
  })
  const day = customRange('2026-11-03T00:00:00.000Z', '2026-11-04T00:00:00.000Z')
  t.strictSame(wholeDays(day).at(NOW), day.at(NOW), 'a range of whole days stays the same')
})

t.test('a range is written to a URL and read back unchanged', async t => {
  for (
    const range of [presetRange('7d'), customRange('2026-11-03T00:00:00.000Z', '2026-11-04T12:00:00.000Z')]
  ) {
    t.equal(rangeOf(new URLSearchParams(searchOf(range)), '24h').id, range.id)
  }
})

t.test('an invalid range in the URL is ignored', async t => {
  for (const search of [
    '', 'range=9y', 'range=constructor', 'from=2026-11-03', 'from=x&to=y', 'from=2026-11-04&to=2026-11-03',
  ]) {
    t.equal(of(search).preset, '24h', search)
  }
})

t.test('the label of a range has its dates, and its times if the range has no whole days', async t => {
  t.equal(of('from=2026-11-03T00:00:00Z&to=2026-11-04T00:00:00Z').label, '2026-11-03')
  t.equal(of('from=2026-11-03T00:00:00Z&to=2026-11-08T00:00:00Z').label, '2026-11-03 – 2026-11-07')
  t.equal(
    of('from=2026-11-03T10:00:00Z&to=2026-11-03T12:30:00Z').label, '2026-11-03 10:00 – 2026-11-03 12:30',
  )
})
