import t from 'tap'
import { axisTicks, labelStep } from '../../../src/console/web/src/components/charts/chart-ticks.ts'

t.test('the ticks of an axis are round numbers from 0 to at least the largest value', async t => {
  t.strictSame(axisTicks(0, false), [0, 1])
  t.strictSame(axisTicks(1, false), [0, 1])
  t.strictSame(axisTicks(3, false), [0, 1, 2, 3])
  t.strictSame(axisTicks(10, false), [0, 5, 10])
  t.strictSame(axisTicks(240, false), [0, 100, 200, 300])
  t.strictSame(axisTicks(0.9, true), [0, 0.5, 1])
  t.strictSame(axisTicks(0.6, true), [0, 0.2, 0.4, 0.6])
  t.strictSame(axisTicks(3e-8, true), [0, 1e-8, 2e-8, 3e-8])
})

t.test('bar labels are skipped until the rest fits the width', async t => {
  t.equal(labelStep(24, 1200, 50), 1)
  t.equal(labelStep(24, 400, 50), 3)
  t.equal(labelStep(180, 500, 50), 18)
  t.equal(labelStep(24, 0, 50), 24)
})
