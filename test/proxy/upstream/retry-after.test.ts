import t from 'tap'
import { retryAfter } from '../../../src/proxy/upstream/retry-after.ts'

const NOW = Date.UTC(2026, 10, 21, 12, 0, 0)

t.test('retry-after: seconds, or any of the three forms of a date', t => {
  for (const [value, ms] of [
    ['0', 0],
    ['7', 7_000],
    [' 1.5 ', 1_500],
    ['Sat, 21 Nov 2026 12:00:30 GMT', 30_000],
    ['Saturday, 21-Nov-26 12:00:30 GMT', 30_000],
    ['Sat Nov 21 12:00:30 2026', 30_000],
    ['Tue Dec  1 12:00:00 2026', 10 * 86_400_000],
    ['Sat, 21 Nov 2026 11:00:00 GMT', 0],
  ] as const) {
    t.equal(retryAfter(['Retry-After', value], NOW), ms, value)
  }
  t.end()
})

t.test('retry-after: a value in another format counts as absent', t => {
  for (const value of [
    '', '-5', '-0.5', '+5', '5 s', '1e3', '0x10', 'soon', 'in 5', 'Sat', 'Sat 5', 'NaN', '12:00:30',
    'Sat, 99 Nov 2026 12:00:30 GMT', 'Sat, 21 Nov 2026 99:00:30 GMT', '1'.repeat(400),
    `${' '.repeat(60_000)}-`,
  ]) {
    t.equal(retryAfter(['retry-after', value], NOW), null, value.slice(0, 40))
    t.equal(retryAfter(['retry-after-ms', value], NOW), null, value.slice(0, 40))
  }
  t.equal(retryAfter(['retry-after', '2', 'retry-after-ms', '1500'], NOW), 1_500, 'retry-after-ms takes precedence')
  t.equal(retryAfter(['retry-after-ms', '-5', 'retry-after', '2'], NOW), 2_000, 'retry-after is read if retry-after-ms is invalid')
  t.equal(retryAfter([], NOW), null)
  t.end()
})
