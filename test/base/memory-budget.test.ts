import t from 'tap'
import { MemoryBudget } from '../../src/base/memory-budget.ts'

t.test('responses get at most half of the budget', async t => {
  const held = new MemoryBudget()
  t.notOk(held.reserveForResponse(51, 100))
  t.ok(held.reserveForResponse(50, 100))
  t.notOk(held.reserveForResponse(1, 100))
  t.ok(held.reserve(50, 100), 'the other half is for requests')
  t.notOk(held.reserve(1, 100))
  held.releaseForResponse(50)
  t.equal(held.reservedBytes, 50)
  t.ok(held.reserve(40, 100))
  t.notOk(held.reserveForResponse(11, 100), 'requests have taken more than half')
  t.ok(held.reserveForResponse(10, 100))
  held.releaseForResponse(10)
  held.release(90)
  t.equal(held.reservedBytes, 0)
  t.ok(held.reserveForResponse(50, 100))
})

t.test('exclusive tasks run one after the other, also when a task fails', async t => {
  const held = new MemoryBudget()
  const { promise: failing, reject } = Promise.withResolvers<never>()
  let hasBegun = false
  const first = held.runExclusive(() => failing)
  const second = held.runExclusive(() => {
    hasBegun = true
    return Promise.resolve('done')
  })
  await new Promise(setImmediate)
  t.notOk(hasBegun)
  reject(new Error('broken'))
  await t.rejects(first, { message: 'broken' })
  t.equal(await second, 'done')
})
