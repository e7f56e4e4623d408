import fc from 'fast-check'
import t from 'tap'
import {
  add,
  divide,
  formatDecimal,
  formatUsd,
  multiply,
  parseDecimal,
  picoUsd,
  shift,
  toUnits,
} from '../../src/base/decimal.ts'

t.test('parseDecimal reads decimals with and without leading zeros, fraction and exponent', async t => {
  const forms: [string, string][] = [
    ['2.50', '2.5'],
    ['0', '0'],
    ['.5', '0.5'],
    ['5.', '5'],
    ['007', '7'],
    ['1e-7', '0.0000001'],
    ['1.5E3', '1500'],
    ['1.25e+1', '12.5'],
    ['0.000', '0'],
    ['123456789012345678901234567890.1', '123456789012345678901234567890.1'],
  ]
  for (const [text, expected] of forms) t.equal(formatDecimal(parseDecimal(text)), expected, text)
})

t.test('parseDecimal refuses text that is not a decimal', async t => {
  for (const text of ['', '.', '-1', '+1', '1,5', '0x10', 'NaN', '1e', 'e5', ' 1', '1 ', '1e999', '1_000']) {
    t.throws(() => parseDecimal(text), RangeError, JSON.stringify(text))
  }
})

t.test('parseDecimal reads each number that JavaScript prints exactly', async () => {
  fc.assert(
    fc.property(
      fc.double({ min: 1e-30, max: 1e30, noNaN: true }),
      number => Number(formatDecimal(parseDecimal(String(number)))) === number,
    ),
  )
})

t.test('add, multiply and shift are exact', async t => {
  const decimal = fc
    .tuple(fc.bigInt({ min: 0n, max: 10n ** 30n }), fc.nat(20))
    .map(([units, scale]) => ({ units, scale }))
  const thousandth = (value: { units: bigint; scale: number }) => toUnits(value, 60)
  fc.assert(
    fc.property(decimal, decimal, fc.integer({ min: -15, max: 15 }), (a, b, places) => {
      t.equal(thousandth(add(a, b)), thousandth(a) + thousandth(b))
      t.equal(thousandth(multiply(a, b)) * 10n ** 60n, thousandth(a) * thousandth(b))
      t.equal(toUnits(shift(a, places), 75) * 10n ** 15n, toUnits(a, 75) * 10n ** BigInt(15 + places))
    }),
    { numRuns: 200 },
  )
})

t.test('toUnits and divide round the exact value half up', async t => {
  t.equal(toUnits(parseDecimal('0.00000000000149'), 12), 1n)
  t.equal(toUnits(parseDecimal('0.0000000000015'), 12), 2n)
  t.equal(toUnits(parseDecimal('0.0000000000014999999999999'), 12), 1n)
  t.equal(toUnits(parseDecimal('1'), 12), 1_000_000_000_000n)
  t.equal(formatDecimal(divide(parseDecimal('0.36'), 3600n, 24)), '0.0001')
  t.equal(formatDecimal(divide(parseDecimal('2'), 3n, 4)), '0.6667')
})

t.test('formatDecimal writes negative amounts', async t => {
  t.equal(formatDecimal({ units: -5n, scale: 1 }), '-0.5')
  t.equal(formatDecimal({ units: -1200n, scale: 2 }), '-12')
})

t.test('picoUsd reads amounts of USD as picodollars', async t => {
  const amounts: [string, bigint][] = [
    ['50', 50_000_000_000_000n],
    ['0.25', 250_000_000_000n],
    ['.5', 500_000_000_000n],
    ['5.', 5_000_000_000_000n],
    ['1e3', 1_000_000_000_000_000n],
    ['2.5E-6', 2_500_000n],
    ['0', 0n],
    ['0.000000000001', 1n],
    ['0.0000000000019', 1n],
    ['9007199254740993.000000000001', 9_007_199_254_740_993_000_000_000_001n],
  ]
  for (const [usd, pico] of amounts) t.equal(picoUsd(usd), pico, usd)
  for (const usd of ['', '.', '-1', 'fifty', '1,5']) t.throws(() => picoUsd(usd), RangeError, usd)
})

t.test('formatUsd writes picodollars as exact amounts of USD', async t => {
  for (const [pico, text] of [
    [0n, '0'],
    [1n, '0.000000000001'],
    [660_000_000n, '0.00066'],
    [1_000_000_000_000n, '1'],
    [-500_000_000_000n, '-0.5'],
    [9_223_372_036_854_775_807n, '9223372.036854775807'],
  ] as const) t.equal(formatUsd(pico), text)
  fc.assert(fc.property(fc.bigInt(), pico => {
    const text = formatUsd(pico)
    const back = picoUsd(text.replace('-', ''))
    return /^-?(0|[1-9]\d*)(\.\d{0,11}[1-9])?$/.test(text) && (pico < 0n ? -back : back) === pico
  }))
})
