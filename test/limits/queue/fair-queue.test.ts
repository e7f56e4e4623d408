import fc from 'fast-check'
import { test } from 'tap'
import { FairQueue, type Place } from '../../../src/limits/queue/fair-queue.ts'

interface Item { readonly id: number, readonly priority: number, readonly name: string }

function filled(items: readonly [priority: number, name: string][]) {
  const queue = new FairQueue<Item>()
  const places = new Map<Item, Place<Item>>()
  for (const [id, [priority, name]] of items.entries()) {
    const item = { id, priority, name }
    places.set(item, queue.add(item, priority, name))
  }
  return { queue, places }
}

function drain({ queue, places }: ReturnType<typeof filled>): number[] {
  const served: number[] = []
  for (let item = queue.first(); item !== null; item = queue.first()) {
    served.push(item.id)
    queue.take(places.get(item)!)
  }
  return served
}

test('serves the highest priority first, then by arrival', async t => {
  t.strictSame(drain(filled([[5, 'a'], [0, 'a'], [9, 'a'], [5, 'a'], [9, 'a']])), [2, 4, 0, 3, 1])
})

test('keys of one priority take turns, so that many requests of one do not delay another', async t => {
  const many = Array.from({ length: 1000 }, (): [number, string] => [5, 'greedy'])
  t.strictSame(drain(filled([...many, [5, 'modest'], [5, 'modest']])).slice(0, 5), [0, 1000, 1, 1001, 2])
})

test('a request that leaves takes no turn', async t => {
  const { queue, places } = filled([[5, 'a'], [5, 'a'], [5, 'b']])
  const first = queue.first()!
  queue.remove(places.get(first)!)
  places.delete(first)
  t.strictSame(drain({ queue, places }), [1, 2])
  t.equal(queue.size, 0)
})

test('the last request of the longest lane with the lowest priority gives way', async t => {
  const { queue } = filled([[5, 'a'], [5, 'a'], [5, 'a'], [5, 'b']])
  t.equal(queue.victim(5, 'c')?.id, 2)
  t.equal(queue.victim(5, 'b')?.id, 2)
  t.equal(queue.victim(5, 'a'), null, 'not for its own lane')
  t.equal(queue.victim(4, 'c'), null, 'not for a lower priority')
  t.equal(queue.victim(6, 'a')?.id, 2, 'for a higher priority')
})

test('with any order of arrivals and departures, order and size hold', async () => {
  const arrival = fc.tuple(fc.nat(9), fc.constantFrom('a', 'b', 'c'))
  const step = fc.oneof(arrival.map(item => ({ kind: 'add' as const, item })), fc.nat().map(n => ({ kind: 'leave' as const, n })),
    fc.constant({ kind: 'serve' as const }))
  fc.assert(fc.property(fc.array(step, { maxLength: 200 }), steps => {
    const queue = new FairQueue<Item>()
    const waiting = new Map<Item, Place<Item>>()
    let id = 0
    for (const each of steps) {
      if (each.kind === 'add') {
        const [priority, name] = each.item
        const item = { id: id++, priority, name }
        waiting.set(item, queue.add(item, priority, name))
      } else if (each.kind === 'leave') {
        const item = [...waiting.keys()][each.n % Math.max(1, waiting.size)]
        if (item === undefined) continue
        queue.remove(waiting.get(item)!)
        waiting.delete(item)
      } else {
        const item = queue.first()
        if ((item === null) !== (waiting.size === 0)) throw new Error('lost')
        if (item === null) continue
        const others = [...waiting.keys()]
        if (others.some(other => other.priority > item.priority)) throw new Error('a higher priority waits')
        if (others.some(other => other.priority === item.priority && other.name === item.name && other.id < item.id)) throw new Error('not by arrival')
        queue.take(waiting.get(item)!)
        if (!waiting.delete(item)) throw new Error('served twice')
      }
      if (queue.size !== waiting.size) throw new Error('wrong size')
    }
  }), { numRuns: 300 })
})
