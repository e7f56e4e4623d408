import fc from 'fast-check'
import { test } from 'tap'
import { nextTurn } from '../../../src/base/next-turn.ts'
import type { Ticket, WaitTerms } from '../../../src/limits/queue/admission-queue.ts'
import type { Admission, LimitedKey, Limiter, Reservation } from '../../../src/limits/types.ts'
import { limits as limitsOf } from '../../behaviour/limits/limits-of.ts'
import { setUp } from '../../behaviour/limits/asking.ts'
import { connectedWorkers } from '../workers/connected-workers.ts'

const QUEUE = { wait: 20_000, size: 1000 }

function limitedKey(limits: Parameters<typeof limitsOf>[0], name = 'team', groups: LimitedKey[] = []): LimitedKey {
  return { name, limits: limitsOf(limits), groups }
}

/** Requests of a test that wait, in the order in which they got a place. */
class Asked {
  readonly served: string[] = []
  readonly refused: string[] = []
  readonly open = new Map<string, Reservation>()
  readonly tickets = new Map<string, Ticket>()
  readonly #limiter: Limiter

  constructor(limiter: Limiter) {
    this.#limiter = limiter
  }

  wait(id: string, key: LimitedKey, { tokens = 0, pico = 0n, model = 'gpt', ...terms }: Partial<WaitTerms> & { tokens?: number, pico?: bigint, model?: string } = {}): void {
    const request = { key, model, estimate: { tokens, pico } }
    this.tickets.set(id, this.#limiter.wait(request, { name: key.name, priority: 5, queue: null, ...terms }, admission => this.#decided(id, admission)))
  }

  end(id: string): void {
    this.open.get(id)?.release()
    this.open.delete(id)
  }

  #decided(id: string, admission: Admission): void {
    if (this.served.includes(id) || this.refused.includes(id)) throw new Error(`${id} was decided twice`)
    if (admission.ok) {
      this.served.push(id)
      this.open.set(id, admission.reservation)
    } else {
      this.refused.push(id)
    }
  }
}

async function settled(): Promise<void> {
  for (let n = 0; n < 8; n++) await nextTurn()
}

test('a request waits for a running one, and gets its place when it ends', async t => {
  const { limiter, clock } = setUp()
  const asked = new Asked(limiter)
  const key = limitedKey({ concurrent: 1, queue: QUEUE })
  for (const id of ['a', 'b', 'c']) asked.wait(id, key)
  await settled()
  t.strictSame(asked.served, ['a'])
  t.equal(clock.pending, 1, 'one timer for all')
  asked.end('a')
  await settled()
  t.strictSame(asked.served, ['a', 'b'])
  t.notOk(limiter.admit({ key, model: 'gpt', estimate: { tokens: 0, pico: 0n } }).ok, 'a later request cannot pass')
  asked.end('b')
  await settled()
  t.strictSame(asked.served, ['a', 'b', 'c'])
})

test('requests per minute and tokens per minute renew for waiting requests', async t => {
  for (const [limits, tokens] of [[{ requestsPerMinute: 2 }, 0], [{ tokensPerMinute: 200 }, 100]] as const) {
    const { limiter, clock } = setUp()
    const asked = new Asked(limiter)
    const key = limitedKey({ ...limits, queue: { wait: 45_000, size: 10 } })
    for (const id of ['a', 'b', 'c', 'd']) asked.wait(id, key, { tokens })
    await settled()
    t.strictSame(asked.served, ['a', 'b'])
    for (const id of ['a', 'b']) asked.open.get(id)?.settle({ tokens, pico: 0n })
    clock.advance(29_000)
    await settled()
    t.strictSame(asked.served, ['a', 'b'])
    clock.advance(1_500)
    await settled()
    t.strictSame(asked.served, ['a', 'b', 'c'])
    clock.advance(15_000)
    await settled()
    t.strictSame(asked.refused, ['d'], 'its wait has ended')
  }
})

test('a spent budget and a request larger than the limit do not wait', async t => {
  const { limiter } = setUp()
  const asked = new Asked(limiter)
  const key = limitedKey({ concurrent: 1, tokensPerMinute: 100, budget: { usd: '1', per: 'day' }, queue: QUEUE })
  asked.wait('spent', key, { pico: 2n * 10n ** 12n })
  asked.wait('large', key, { tokens: 101 })
  await settled()
  t.strictSame(asked.refused, ['spent', 'large'])
})

test('a full queue refuses, but a higher priority or another key gets the place of the last one', async t => {
  const { limiter } = setUp()
  const asked = new Asked(limiter)
  const group: LimitedKey = { name: 'g', isGroup: true, limits: limitsOf({ concurrent: 1, queue: { wait: 20_000, size: 2 } }) }
  const one = { name: 'one', limits: null, groups: [group] }
  const other = { name: 'other', limits: null, groups: [group] }
  for (const id of ['running', 'a', 'b', 'full']) asked.wait(id, one)
  await settled()
  t.strictSame(asked.refused, ['full'])
  asked.wait('fair', other)
  await settled()
  t.strictSame(asked.refused, ['full', 'b'])
  asked.wait('urgent', one, { priority: 9 })
  await settled()
  t.equal(asked.refused.length, 3)
  asked.end('running')
  await settled()
  t.strictSame(asked.served, ['running', 'urgent'])
})

test('a request that leaves is refused at once and frees its place in the queue', async t => {
  const { limiter } = setUp()
  const asked = new Asked(limiter)
  const key = limitedKey({ concurrent: 1, queue: { wait: 20_000, size: 1 } })
  for (const id of ['a', 'b']) asked.wait(id, key)
  await settled()
  asked.tickets.get('b')?.leave()
  t.strictSame(asked.refused, ['b'])
  asked.wait('c', key)
  asked.end('a')
  await settled()
  t.strictSame(asked.served, ['a', 'c'])
})

test('after a limit of a key, a request waits for the limit of its group', async t => {
  const { limiter } = setUp()
  const asked = new Asked(limiter)
  const group: LimitedKey = { name: 'g', isGroup: true, limits: limitsOf({ concurrent: 2, queue: QUEUE }) }
  const busy = limitedKey({ concurrent: 1, queue: QUEUE }, 'busy', [group])
  const other = limitedKey({ concurrent: 5, queue: QUEUE }, 'other', [group])
  for (const id of ['b1', 'b2', 'b3']) asked.wait(id, busy)
  for (const id of ['o1', 'o2']) asked.wait(id, other)
  await settled()
  t.strictSame(asked.served, ['b1', 'o1'])
  asked.end('b1')
  await settled()
  t.equal(asked.served.length, 3)
  for (let round = 0; round < 5; round++) {
    for (const id of asked.open.keys()) asked.end(id)
    await settled()
  }
  t.strictSame([...asked.served].sort(), ['b1', 'b2', 'b3', 'o1', 'o2'])
})

test('with any order of arrivals, ends and departures, no place is lost or given twice, and priorities hold', async t => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('wait' as const), key: fc.nat(2), priority: fc.nat(9), model: fc.constantFrom('gpt-a', 'other') }),
    fc.record({ kind: fc.constant('end' as const), n: fc.nat() }),
    fc.record({ kind: fc.constant('leave' as const), n: fc.nat() }),
  )
  await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 60 }), fc.integer({ min: 1, max: 3 }), async (steps, places) => {
    const { limiter } = setUp()
    const group: LimitedKey = { name: 'g', isGroup: true, limits: limitsOf({ concurrent: places, queue: QUEUE }) }
    const own = [limitedKey({ concurrent: 1, queue: QUEUE, models: { 'gpt-*': { concurrent: 1 } } }, 'k0', [group]),
      { name: 'k1', limits: null, groups: [group] }, { name: 'k2', limits: null, groups: [group] }]
    const asked = new Asked(limiter)
    const priorities = new Map<string, { priority: number, key: number }>()
    const left = new Set<string>()
    let id = 0
    for (const each of steps) {
      const before = asked.served.length
      const isWaiting = (name: string) => !asked.served.includes(name) && !asked.refused.includes(name)
      const waiting = [...priorities.keys()].filter(isWaiting)
      if (each.kind === 'wait') {
        const name = String(id++)
        priorities.set(name, each)
        asked.wait(name, own[each.key]!, { priority: each.priority, model: each.model })
      } else if (each.kind === 'end') {
        const name = [...asked.open.keys()][each.n % Math.max(1, asked.open.size)]
        if (name !== undefined) asked.end(name)
      } else {
        const name = waiting[each.n % Math.max(1, waiting.length)]
        if (name !== undefined) {
          left.add(name)
          asked.tickets.get(name)?.leave()
        }
      }
      await settled()
      if (asked.open.size > places) throw new Error('given twice')
      for (const name of asked.served.slice(before)) {
        const { priority } = priorities.get(name)!
        // The first key has limits of its own, for which its requests may wait.
        const passed = waiting.find(other => isWaiting(other) && priorities.get(other)!.key !== 0 && priorities.get(other)!.priority > priority)
        if (each.kind === 'end' && passed !== undefined) throw new Error(`${name} passed ${passed}`)
      }
      const isFree = asked.open.size < places
      if (isFree && [...priorities].some(([name, { key }]) => key !== 0 && isWaiting(name))) throw new Error('a place is lost')
    }
    for (let round = 0; round <= id; round++) {
      for (const name of asked.open.keys()) asked.end(name)
      await settled()
    }
    if (asked.served.length + left.size !== id || asked.refused.some(name => !left.has(name))) throw new Error('a request is lost')
  }), { numRuns: 150 })
  t.pass()
})

test('requests of several workers wait in one queue', async t => {
  const { workers, clock } = connectedWorkers(2)
  const [one, two] = workers.map(({ limiter }) => new Asked(limiter)) as [Asked, Asked]
  const key = limitedKey({ concurrent: 1, queue: { wait: 20_000, size: 3 } })
  one.wait('a', key)
  await settled()
  two.wait('low', key, { priority: 1 })
  await settled()
  one.wait('high', key, { priority: 8 })
  await settled()
  two.wait('last', key, { priority: 1 })
  await settled()
  two.wait('full', key, { priority: 1 })
  await settled()
  t.strictSame(two.refused, ['full'], 'the size holds over workers')
  one.end('a')
  await settled()
  t.strictSame([one.served, two.served], [['a', 'high'], []], 'the priority too')
  two.tickets.get('low')?.leave()
  await settled()
  t.strictSame(two.refused, ['full', 'low'])
  one.end('high')
  await settled()
  t.strictSame(two.served, ['last'])
  two.wait('late', key)
  await settled()
  clock.advance(20_000)
  await settled()
  t.strictSame(two.refused, ['full', 'low', 'late'])
  workers[1]?.connection.close()
  await settled()
  one.wait('after', key)
  await settled()
  t.strictSame(one.served, ['a', 'high', 'after'], 'a worker that has ended frees its places')
})

