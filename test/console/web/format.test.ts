import fc from 'fast-check'
import t from 'tap'
import { formatUsd } from '../../../src/base/decimal.ts'
import {
  bytes, clockUtc, count, countShort, counted, dayShort, duration, minuteUtc, money, moneyShort, moneyTick,
  monthName, percent, quantity, relative, sum, timeShort, timeUtc,
} from '../../../src/console/web/src/format.ts'

t.test('money shows all its digits and at least two decimals', async t => {
  for (const [text, read] of [
    ['0', '$0.00'], ['12', '$12.00'], ['1234.5', '$1,234.50'], ['1234567.000001', '$1,234,567.000001'],
    ['0.100', '$0.10'], ['-3.5', '\u2212$3.50'], ['9007199254740993.25', '$9,007,199,254,740,993.25'],
  ] as const) t.equal(money(text), read)
  t.equal(money(null), '–')
})

t.test('short money is rounded half up to two decimals, and smaller amounts to two significant digits', async t => {
  for (const [text, read] of [
    ['0', '$0.00'], ['28.3281026', '$28.33'], ['1.005', '$1.01'], ['0.995', '$1.00'],
    ['999.999', '$1,000.00'],
    ['0.0012345', '$0.0012'], ['0.05', '$0.05'], ['0.01999', '$0.02'], ['0.000000000001', '$0.00'],
    ['-1.006', '\u2212$1.01'],
  ] as const) t.equal(moneyShort(text), read, text)
})

t.test('money at a chart axis has more decimals if it is small, and a K or M if it is large', async t => {
  for (const [value, read] of [
    [0, '$0.00'], [3e-8, '$0.00000003'], [1e-7, '$0.0000001'], [1e-12, '$0.00'], [0.1 + 0.2, '$0.30'],
    [9_000, '$9,000.00'], [30_000, '$30K'], [1_250_000, '$1.3M'],
  ] as const) t.equal(moneyTick(value), read)
})

t.test('the sum of amounts is exact', async t => {
  t.equal(sum('0.1', '0.2'), '0.3')
  t.equal(sum('1', '-0.999999999999'), '0.000000000001')
  t.equal(sum('0.5', '-1'), '-0.5')
  t.equal(sum(), '0')
  fc.assert(fc.property(fc.array(fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n })), picos => {
    const total = picos.reduce((acc, pico) => acc + pico, 0n)
    return sum(...picos.map(formatUsd)) === formatUsd(total)
  }))
})

t.test('counts, quantities, percentages and sizes are formatted', async t => {
  t.equal(count(1234567), '1,234,567')
  t.equal(count(null), '–')
  t.strictSame([0, 1, 1234].map(value => counted(value, 'request')), ['0 requests', '1 request', '1,234 requests'])
  t.equal(quantity(1234.5678), '1,234.568')
  t.strictSame([9999, 12_345, 4_400_000].map(countShort), ['9,999', '12.3K', '4.4M'])
  const read = (share: number) => percent(share).replace('\u202f', ' ')
  t.strictSame([0, 0.0004, 0.012, 0.04, 0.471, 0.9996, 1, 1.03].map(read),
    ['0 %', '<0.1 %', '1.2 %', '4 %', '47 %', '100 %', '100 %', '103 %'])
  t.strictSame([0, 999, 1000, 99_950, 18_211, 2_500_000].map(size => bytes(size).replace('\u202f', ' ')),
    ['0 B', '999 B', '1.0 kB', '100 kB', '18.2 kB', '2.5 MB'])
})

t.test('durations are formatted', async t => {
  const read = (ms: number) => duration(ms).replaceAll('\u202f', ' ')
  t.strictSame([0, 0.42, 9.96, 412.4, 1420, 12_040, 60_000, 185_000, 7_800_000, 273_600_000].map(read),
    ['0 ms', '0.4 ms', '10 ms', '412 ms', '1.42 s', '12.0 s', '1 min', '3 min 5 s', '2 h 10 min', '3 d 4 h'])
  t.equal(duration(null), '–')
})

t.test('times are formatted in UTC', async t => {
  const now = Date.parse('2026-11-21T12:00:00Z')
  t.equal(timeUtc('2026-11-21T07:18:22.999Z'), '2026-11-21 07:18:22')
  t.equal(minuteUtc('2026-11-21T07:18:22.999Z'), '2026-11-21 07:18')
  t.equal(timeShort('2026-11-21T07:18:22Z', now), '11-21 07:18:22')
  t.equal(timeShort('2025-11-21T07:18:22Z', now), '2025-11-21 07:18:22')
  t.equal(clockUtc('2026-11-21T07:18:22Z', now), '07:18 UTC')
  t.equal(clockUtc('2026-11-20T07:18:22Z', now), '2026-11-20 07:18 UTC')
  t.equal(dayShort('2026-11-03T23:59:59Z', now), '3 Nov')
  t.equal(dayShort('2025-12-31T23:59:59Z', now), '31 Dec 2025')
  t.equal(monthName('2026-11'), 'November 2026')
  const read = (moment: string) => relative(moment, now).replace('\u202f', ' ')
  t.strictSame(['2026-11-21T11:59:58Z',
    '2026-11-21T11:59:20Z', '2026-11-21T11:55:00Z', '2026-11-20T12:00:00Z',
    '2026-11-21T15:00:00Z'].map(read), ['just now', '40 s ago', '5 min ago', '1 d ago', 'in 3 h'])
})
