import fc from 'fast-check'
import t from 'tap'
import { picoUsd } from '../../src/limits/money.ts'

t.test('amounts as operators write them', async t => {
  const amounts: [string, bigint][] = [
    ['50', 50_000_000_000_000n],
    ['0.25', 250_000_000_000n],
    ['.5', 500_000_000_000n],
    ['5.', 5_000_000_000_000n],
    ['+1', 1_000_000_000_000n],
    ['1e3', 1_000_000_000_000_000n],
    ['2.5E-6', 2_500_000n],
    ['0', 0n],
    ['0.1', 100_000_000_000n],
    ['0.000000000001', 1n],
    ['0.0000000000019', 1n],
    ['9007199254740993.000000000001', 9_007_199_254_740_993_000_000_000_001n],
  ]
  for (const [usd, pico] of amounts) t.equal(picoUsd(usd), pico, usd)
})

t.test('what is no amount is an error', async t => {
  for (const usd of ['', '.', '-1', 'fifty', '1,5', '1_000', '0x10', 'Infinity', '1e', ' 1', '1e9999']) {
    t.throws(() => picoUsd(usd), RangeError, usd)
  }
})

t.test('every whole number of micro-USD is exact', async () => {
  fc.assert(fc.property(fc.bigInt({ min: 0n, max: 10n ** 18n }), micro => {
    const text = micro.toString().padStart(7, '0')
    return picoUsd(`${text.slice(0, -6)}.${text.slice(-6)}`) === micro * 1_000_000n
  }))
})
