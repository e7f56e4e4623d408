import t from 'tap'
import { MemoryBudget } from '../../src/base/memory-budget.ts'

t.test('responses can reserve at most half of the memory budget', async t => {
  const held = new MemoryBudget()
  t.notOk(held.reserveForResponse(51, 100))
  t.ok(held.reserveForResponse(50, 100))
  t.notOk(held.reserveForResponse(1, 100))
  t.ok(held.reserve(50, 100), 'requests can reserve the other half')
  t.notOk(held.reserve(1, 100))
  held.releaseForResponse(50)
  t.equal(held.reservedBytes, 50)
  t.ok(held.reserve(40, 100))
  t.notOk(held.reserveForResponse(11, 100), 'responses can reserve only what requests have left')
  t.ok(held.reserveForResponse(10, 100))
  held.releaseForResponse(10)
  held.release(90)
  t.equal(held.reservedBytes, 0)
  t.ok(held.reserveForResponse(50, 100))
})

t.test('exclusive tasks run one after another, even if a task fails', async t => {
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
