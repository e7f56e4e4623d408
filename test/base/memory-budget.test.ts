import t from 'tap'
import { HeldBytes } from '../../src/base/memory-budget.ts'

t.test('answers take half of the room at most, and no more than there is', async t => {
  const held = new HeldBytes()
  t.notOk(held.takeForAnswer(51, 100))
  t.ok(held.takeForAnswer(50, 100))
  t.notOk(held.takeForAnswer(1, 100))
  t.ok(held.take(50, 100), 'the other half is for requests')
  t.notOk(held.take(1, 100))
  held.giveForAnswer(50)
  t.equal(held.held, 50)
  t.ok(held.take(40, 100))
  t.notOk(held.takeForAnswer(11, 100), 'requests have taken more than half')
  t.ok(held.takeForAnswer(10, 100))
  held.giveForAnswer(10)
  held.give(90)
  t.equal(held.held, 0)
  t.ok(held.takeForAnswer(50, 100))
})

t.test('what has no room is done one after the other, also behind one that failed', async t => {
  const held = new HeldBytes()
  const { promise: failing, reject } = Promise.withResolvers<never>()
  let hasBegun = false
  const first = held.inTurn(() => failing)
  const second = held.inTurn(() => {
    hasBegun = true
    return Promise.resolve('done')
  })
  await new Promise(setImmediate)
  t.notOk(hasBegun)
  reject(new Error('broken'))
  await t.rejects(first, { message: 'broken' })
  t.equal(await second, 'done')
})
