import t from 'tap'
import { parseRangeInput, toRangeInput } from '../../../src/console/web/src/range-input.ts'

const at = (from: string, to: string, days = false) => {
  const parsed = parseRangeInput({ from, to }, days)
  return 'range' in parsed ? parsed.range.at(0) : parsed.errors
}
const FORM = 'Use the format 2026-11-21 07:18'

t.test('a range is written as text and read back unchanged', async t => {
  const minutes = { from: '2026-11-03T10:05:00.000Z', to: '2026-11-04T00:00:00.000Z' }
  t.strictSame(toRangeInput(minutes, false), { from: '2026-11-03 10:05', to: '2026-11-04 00:00' })
  t.strictSame(at('2026-11-03 10:05', '2026-11-04 00:00'), minutes)
  const days = { from: '2026-11-03T00:00:00.000Z', to: '2026-11-06T00:00:00.000Z' }
  t.strictSame(toRangeInput(days, true), { from: '2026-11-03', to: '2026-11-05' })
  t.strictSame(at('2026-11-03', '2026-11-05', true), days)
})

t.test('pasted timestamps are accepted', async t => {
  const expected = { from: '2026-11-03T10:05:00.000Z', to: '2026-11-04T12:30:00.000Z' }
  t.strictSame(at(' 2026-11-03T10:05 ', '2026-11-04T12:30Z'), expected)
  t.strictSame(at('2026-11-03 10:05:41', '2026-11-04t12:30:00.500z'), expected)
  t.strictSame(at('2026-11-03  10:05', '2026-11-04 12:30 UTC'), expected)
})

t.test('an invalid start and an invalid end have separate errors', async t => {
  const good = '2026-11-21 07:18'
  for (const bad of ['',
    '2026-11-21', '11/21/2026 07:18', '2026-02-30 00:00', '2026-11-21 24:00', '2026-11-21 7:18',
    '2026-13-01 00:00', '2026-11-21 07:18+02:00', 'x']) {
    t.strictSame(at(bad, good), { from: FORM }, bad)
    t.strictSame(at(good, bad), { to: FORM }, bad)
    t.strictSame(at(bad, bad), { from: FORM, to: FORM }, bad)
  }
  t.strictSame(at('2026-02-29', '2026-11-21 07:18', true), {
    from: 'Use the format 2026-11-21', to: 'Use the format 2026-11-21',
  })
})

t.test('the end must be after the start', async t => {
  const wrong = { to: 'The end must be after the start' }
  t.strictSame(at('2026-11-03 10:05', '2026-11-03 10:05'), wrong)
  t.strictSame(at('2026-11-04', '2026-11-03', true), wrong)
  t.strictSame(at('2026-11-03', '2026-11-03', true), {
    from: '2026-11-03T00:00:00.000Z', to: '2026-11-04T00:00:00.000Z',
  })
})
