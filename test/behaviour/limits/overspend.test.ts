import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import t from 'tap'
import { compileGlob } from '../../../src/config/glob.ts'
import { createLimiter } from '../../../src/limits/limiter.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { limits } from './limits-of.ts'

const CENT = 10n ** 10n

/** A task with the turns of the event loop before and during its request, and its cost. */
interface Task {
  before: number
  during: number
  cost: bigint
}

/** Runs all tasks at once against a budget of 1 USD, each with an estimate of one cent. */
async function run(tasks: readonly Task[]) {
  const limiter = createLimiter({ defaults: null, compileGlob, clock: new FakeClock() })
  const key = { name: 'team', limits: limits({ budget: { usd: '1', per: 'month' } }) }
  const sums = { admitted: 0, refused: 0, running: 0, mostRunning: 0, spent: 0n }
  await Promise.all(tasks.map(async ({ before, during, cost }) => {
    for (let i = 0; i < before; i++) await setImmediate()
    const admission = limiter.admit({ key, model: 'm', estimate: { tokens: 0, pico: CENT } })
    if (!admission.ok) {
      sums.refused++
      return
    }
    sums.admitted++
    sums.mostRunning = Math.max(sums.mostRunning, ++sums.running)
    for (let i = 0; i < during; i++) await setImmediate()
    sums.running--
    sums.spent += cost
    admission.reservation.settle({ tokens: 0, pico: cost })
  }))
  return sums
}

t.test('a budget for 100 requests admits 100 of 1,000 concurrent requests', async t => {
  const tasks = Array.from({ length: 1000 }, () => ({ before: 0, during: 3, cost: CENT }))
  t.strictSame(await run(tasks), {
    admitted: 100,
    refused: 900,
    running: 0,
    mostRunning: 100,
    spent: 100n * CENT,
  })
})

t.test('1,000 requests that cost at most their estimates do not exceed the budget', async t => {
  const turns = fc.nat(20)
  const task = fc.record({ before: turns, during: turns, cost: fc.bigInt({ min: 0n, max: CENT }) })
  await fc.assert(fc.asyncProperty(fc.array(task, { minLength: 1000, maxLength: 1000 }), async tasks => {
    const { spent, mostRunning, admitted, refused } = await run(tasks)
    t.equal(admitted + refused, 1000)
    return spent <= 100n * CENT && mostRunning <= 100
  }), { numRuns: 10 })
})

t.test('if estimates are 10 % too low, the budget is exceeded by at most 10 % of the running requests', async () => {
  const task = fc.record({ before: fc.nat(20), during: fc.nat(20), cost: fc.constant(CENT + CENT / 10n) })
  await fc.assert(fc.asyncProperty(fc.array(task, { minLength: 1000, maxLength: 1000 }), async tasks => {
    const { spent, mostRunning } = await run(tasks)
    return spent > 99n * CENT && spent <= 100n * CENT + BigInt(mostRunning) * CENT / 10n
  }), { numRuns: 10 })
})
