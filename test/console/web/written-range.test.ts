import t from 'tap'
import { parseRangeInput, toRangeInput } from '../../../src/console/web/src/written-range.ts'

const at = (from: string, to: string, days = false) => {
  const read = parseRangeInput({ from, to }, days)
  return 'range' in read ? read.range.at(0) : read.faults
}
const FORM = 'Write it as 2026-11-21 07:18'

t.test('a time is shown as it is written, and read as it is shown', async t => {
  const minutes = { from: '2026-11-03T10:05:00.000Z', to: '2026-11-04T00:00:00.000Z' }
  t.strictSame(toRangeInput(minutes, false), { from: '2026-11-03 10:05', to: '2026-11-04 00:00' })
  t.strictSame(at('2026-11-03 10:05', '2026-11-04 00:00'), minutes)
  const days = { from: '2026-11-03T00:00:00.000Z', to: '2026-11-06T00:00:00.000Z' }
  t.strictSame(toRangeInput(days, true), { from: '2026-11-03', to: '2026-11-05' })
  t.strictSame(at('2026-11-03', '2026-11-05', true), days)
})

t.test('times that were copied from elsewhere are taken', async t => {
  const expected = { from: '2026-11-03T10:05:00.000Z', to: '2026-11-04T12:30:00.000Z' }
  t.strictSame(at(' 2026-11-03T10:05 ', '2026-11-04T12:30Z'), expected)
  t.strictSame(at('2026-11-03 10:05:41', '2026-11-04t12:30:00.500z'), expected)
  t.strictSame(at('2026-11-03  10:05', '2026-11-04 12:30 UTC'), expected)
})

t.test('what is no such time is told, each end by itself', async t => {
  const good = '2026-11-21 07:18'
  for (const bad of ['',
    '2026-11-21', '11/21/2026 07:18', '2026-02-30 00:00', '2026-11-21 24:00', '2026-11-21 7:18',
    '2026-13-01 00:00', '2026-11-21 07:18+02:00', 'x']) {
    t.strictSame(at(bad, good), { from: FORM }, bad)
    t.strictSame(at(good, bad), { to: FORM }, bad)
    t.strictSame(at(bad, bad), { from: FORM, to: FORM }, bad)
  }
  t.strictSame(at('2026-02-29', '2026-11-21 07:18', true), {
    from: 'Write it as 2026-11-21', to: 'Write it as 2026-11-21',
  })
})

t.test('the end is after the start', async t => {
  const wrong = { to: 'The end has to be after the start' }
  t.strictSame(at('2026-11-03 10:05', '2026-11-03 10:05'), wrong)
  t.strictSame(at('2026-11-04', '2026-11-03', true), wrong)
  t.strictSame(at('2026-11-03', '2026-11-03', true), {
    from: '2026-11-03T00:00:00.000Z', to: '2026-11-04T00:00:00.000Z',
  })
})
