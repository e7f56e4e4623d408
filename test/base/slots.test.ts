import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { Slots } from '../../src/base/slots.ts'

t.test('each item has its own slot, which is reused after the item is deleted', async t => {
  const slots = new Slots<{ name: string }>()
  const [a, b] = [slots.add({ name: 'a' }), slots.add({ name: 'b' })]
  t.not(a, b)
  t.equal(slots.size, 2)
  slots.delete(a)
  t.equal(slots.at(a), null)
  t.equal(slots.at(b)?.name, 'b')
  t.equal(slots.size, 1)
  t.equal(slots.add({ name: 'c' }), a)
  t.strictSame(Array.from(slots, ({ name }) => name), ['c', 'b'])
})

t.test('an empty slot can be deleted and read', async t => {
  const slots = new Slots<object>()
  const slot = slots.add({})
  slots.delete(slot)
  slots.delete(slot)
  slots.delete(7)
  t.equal(slots.size, 0)
  t.equal(slots.at(7), null)
  t.not(slots.add({}), slots.add({}), 'two items do not get the same slot')
})

t.test('items can be deleted during iteration', async t => {
  const slots = new Slots<{ slot: number }>()
  const items = Array.from({ length: 5 }, () => ({ slot: -1 }))
  for (const item of items) item.slot = slots.add(item)
  let seen = 0
  for (const { slot } of slots) {
    seen++
    slots.delete(slot)
  }
  t.equal(seen, 5)
  t.equal(slots.size, 0)
})

/** @returns bytes of the heap, at most, that are in use between minor garbage collections while `turn` runs 5,000 times */
function leftBy(turn: (item: object, at: number) => void): number {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as (options?: { type: 'minor' }) => void
  const ballast = () => Array.from({ length: 1_000 }, () => 0)
  for (let i = 0; i < 32; i++) turn({ ballast: ballast() }, i)
  // After two full collections the collection under test is among the old objects.
  gc()
  gc()
  const before = process.memoryUsage().heapUsed
  let most = 0
  for (let i = 1; i <= 5_000; i++) {
    turn({ ballast: ballast() }, i % 32)
    if (i % 250 !== 0) continue
    gc({ type: 'minor' })
    gc({ type: 'minor' })
    // The maximum, because V8 may run a full collection at any time, which frees what minor collections leave.
    most = Math.max(most, process.memoryUsage().heapUsed - before)
  }
  return most
}

t.test('the garbage collection of young objects frees deleted items of Slots, unlike those of a Set', async t => {
  const slots = new Slots<object>()
  const places = new Map<number, number>()
  const bySlots = leftBy((item, at) => {
    slots.delete(places.get(at) ?? -1)
    places.set(at, slots.add(item))
  })
  const set = new Set<object>()
  const members: object[] = []
  const bySet = leftBy((item, at) => {
    set.delete(members[at] ?? item)
    members[at] = item
    set.add(item)
  })
  t.ok(bySlots < 10_000_000, `${bySlots} bytes`)
  t.ok(bySet > 20_000_000, `${bySet} bytes: should this fail, a Set will do again`)
})
