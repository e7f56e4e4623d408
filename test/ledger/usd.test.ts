import { equal } from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { usd } from '../../src/ledger/usd.ts'

t.test('picodollars are written as exact decimals', async t => {
  for (const [pico, text] of [
    [0n, '0'],
    [1n, '0.000000000001'],
    [660_000_000n, '0.00066'],
    [1_000_000_000_000n, '1'],
    [-500_000_000_000n, '-0.5'],
    [9_223_372_036_854_775_807n, '9223372.036854775807'],
  ] as const) t.equal(usd(pico), text)
})

t.test('no digit is lost, and none is added', async t => {
  t.doesNotThrow(() => fc.assert(fc.property(fc.bigInt(), pico => {
    const form = /^(-?)(0|[1-9]\d*)(?:\.(\d{0,11}[1-9]))?$/
    const [, sign, whole = '', fraction = ''] = form.exec(usd(pico)) ?? []
    equal(BigInt(`${sign}${whole}${fraction.padEnd(12, '0')}`), pico)
  })))
})
