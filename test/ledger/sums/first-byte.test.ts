import fc from 'fast-check'
import t from 'tap'
import { addHistogramJson, bucketOf, addToBucket, quantiles, toHistogramJson } from '../../../src/ledger/sums/first-byte.ts'
import type { Histogram } from '../../../src/ledger/sums/first-byte.ts'

t.test('percentiles are within 5.5 %, from a tenth of a millisecond to hours', async t => {
  const time = fc.integer({ min: 1, max: 100_000_000 }).map(n => n / 10)
  const times = fc.array(time, { minLength: 1, maxLength: 200 })
  const property = fc.property(times, fc.constantFrom(0, 0.01, 0.5, 0.95, 1), (all, share) => {
    const histogram: Histogram = new Map()
    for (const ms of all) addToBucket(histogram, bucketOf(ms), 1)
    const exact = all.toSorted((a, b) => a - b)[Math.max(0, Math.ceil(share * all.length) - 1)] ?? NaN
    const [told = NaN] = quantiles(histogram, [share])
    return told !== null && Math.abs(told / exact - 1) < 0.055
  })
  t.doesNotThrow(() => fc.assert(property, { numRuns: 500 }))
})

t.test('an empty histogram has no percentiles, and a time of 0 is counted', async t => {
  t.strictSame(quantiles(new Map(), [0.5, 0.95]), [null, null])
  t.strictSame(quantiles(new Map([[3, 0]]), [0.5]), [null])
  const histogram: Histogram = new Map()
  addToBucket(histogram, bucketOf(0), 1)
  t.match(quantiles(histogram, [0.5]), [Number])
})

t.test('stored counts are added; buckets that become empty are left out', async t => {
  const histogram: Histogram = new Map([[5, 2], [7, 1]])
  addHistogramJson(histogram, '{"7":-1,"9":4}')
  t.equal(toHistogramJson(histogram), '{"5":2,"9":4}')
})
