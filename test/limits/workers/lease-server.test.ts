import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import t from 'tap'
import type { Limits } from '../../../src/config/key-types.ts'
import type { LimiterRequest } from '../../../src/limits/workers/lease-messages.ts'
import type { Admission, Reservation } from '../../../src/limits/types.ts'
import { USD } from '../../behaviour/limits/asking.ts'
import { limits } from '../../behaviour/limits/limits-of.ts'
import { connectedWorkers } from './connected-workers.ts'
import type { ConnectedWorker } from './connected-workers.ts'

const CENT = USD / 100n

/** Limits of each kind that the tests do not reach. */
const FAR = limits({
  requestsPerMinute: 100_000, tokensPerMinute: 10_000_000, concurrent: 1000,
  budget: { usd: '1000', per: 'day' },
})

const ask = (own: Limits, tokens = 10, pico: bigint | null = CENT) => ({
  key: { name: 'team', limits: own }, model: 'm', estimate: { tokens, pico },
})

/** Lets all messages arrive, and the replies to them. */
async function quiet(): Promise<void> {
  for (let turn = 0; turn < 8; turn++) await setImmediate()
}

async function admitted(worker: ConnectedWorker, wish: ReturnType<typeof ask>): Promise<Reservation> {
  const admission = await worker.limiter.admit(wish)
  if (!admission.ok) throw new Error(`refused: ${admission.refusal.message}`)
  return admission.reservation
}

/** Gets a lease for the worker with two successive requests; a third request stays open. */
async function getLease(worker: ConnectedWorker, own: Limits): Promise<void> {
  for (let n = 0; n < 2; n++) (await admitted(worker, ask(own))).release()
  t.notOk(worker.limiter.admit(ask(own)) instanceof Promise, 'the worker has a lease')
}

/** From now on the messages of the worker are kept in `late`; the test passes them to `take`. */
function unread({ connection }: ConnectedWorker) {
  const take = connection.handle.bind(connection)
  const late: (readonly LimiterRequest[])[] = []
  connection.handle = requests => void late.push(requests)
  return { late, take }
}

const counts = (admissions: readonly Admission[]) => admissions.filter(({ ok }) => ok).length

const kinds = ({ sent }: ConnectedWorker) => sent.flat().map(({ kind }) => kind)

t.test('far from the limits, few requests need the lease server, and all requests are counted', async t => {
  const { workers: [one, two], clock } = connectedWorkers(2)
  if (!one || !two) throw new Error('no workers')
  for (let n = 0; n < 1000; n++) {
    const worker = n % 2 === 0 ? one : two
    ;(await admitted(worker, ask(FAR, 10))).settle({ tokens: 7, pico: CENT / 2n })
  }
  clock.advance(100)
  await quiet()
  const asked = [one, two].flatMap(kinds).filter(kind => kind === 'admit').length
  t.ok(asked < 40, `${asked} asked`)
  // One more request, whose reply has the current figures.
  clock.advance(100)
  await admitted(one, ask(FAR, 10))
  const { requests, tokens } = one.limiter.rateLimitStates({ name: 'team', limits: FAR }, 'm')
  // 200 ms have drained 333 requests and 33,333 tokens of the minute's.
  t.equal(requests?.remaining, 100_000 - 1000 + 333 - 1)
  t.equal(tokens?.remaining, 10_000_000 - 10)
  const rest = limits({ budget: { usd: '5', per: 'day' } })
  t.equal((await two.limiter.admit(ask(rest))).ok, false, 'half a cent was spent for each: 5 USD')
})

t.test('the remaining limits in the headers fall with each request of a lease', async t => {
  const { workers: [worker] } = connectedWorkers(1)
  if (!worker) throw new Error('no worker')
  await getLease(worker, FAR)
  const key = { name: 'team', limits: FAR }
  const before = worker.limiter.rateLimitStates(key, 'm')
  await admitted(worker, ask(FAR, 25))
  const { requests, tokens } = worker.limiter.rateLimitStates(key, 'm')
  t.equal(requests?.remaining, (before.requests?.remaining ?? 0) - 1)
  t.equal(tokens?.remaining, (before.tokens?.remaining ?? 0) - 25)
})

t.test('after a lease ends, the remaining limits in the headers rise only with elapsed time', async t => {
  const { workers: [worker], clock } = connectedWorkers(1)
  if (!worker) throw new Error('no worker')
  const slow = limits({ requestsPerMinute: 600 })
  await getLease(worker, slow)
  const key = { name: 'team', limits: slow }
  await admitted(worker, ask(slow, 25))
  const before = worker.limiter.rateLimitStates(key, 'm').requests?.remaining ?? 600
  t.ok(before < 597, `${before} remain`)
  clock.advance(100)
  t.equal(worker.limiter.rateLimitStates(key, 'm').requests?.remaining, before + 1)
})

t.test('the limit headers do not count a lease twice', async t => {
  const { workers: [worker] } = connectedWorkers(1)
  if (!worker) throw new Error('no worker')
  // The second request gets a lease for 16 requests, which the figures for the third request count as used.
  await Promise.all(Array.from({ length: 3 }, () => admitted(worker, ask(FAR, 10))))
  for (let n = 0; n < 10; n++) t.notOk(worker.limiter.admit(ask(FAR, 10)) instanceof Promise)
  const { requests, tokens } = worker.limiter.rateLimitStates({ name: 'team', limits: FAR }, 'm')
  t.equal(requests?.remaining, 100_000 - 3 - 16)
  t.equal(tokens?.remaining, 10_000_000 - 30 - 160)
})

t.test('invalid usage counts the same with a lease as without', async t => {
  const own = limits({ tokensPerMinute: 10_000_000, budget: { usd: '1000', per: 'day' } })
  const { workers: [worker], clock } = connectedWorkers(1)
  if (!worker) throw new Error('no worker')
  await getLease(worker, own)
  const held = await Promise.all(Array.from({ length: 3 }, () => admitted(worker, ask(own))))
  held[0]?.settle({ tokens: NaN, pico: null })
  held[1]?.settle({ tokens: -1000, pico: -100n * CENT })
  held[2]?.settle({ tokens: 6.5, pico: CENT })
  t.ok(worker.limiter.admit(ask(own, NaN)) instanceof Promise, 'an invalid estimate is too large')
  clock.advance(100)
  await quiet()
  clock.advance(100)
  // Two requests are open: that of `getLease` and this one. The used 10, 0 and 7 tokens drained within 200 ms.
  await admitted(worker, ask(own))
  t.ok((worker.limiter.rateLimitStates({ name: 'team', limits: own }, 'm').tokens?.remaining ?? 0) > 9_999_000)
  const rest = limits({ budget: { usd: '0.05', per: 'day' } })
  t.notOk((await worker.limiter.admit(ask(rest, 0, 2n * CENT))).ok, 'four cents are spent or reserved')
  t.ok((await worker.limiter.admit(ask(rest, 0, CENT))).ok)
})

t.test('no lease is granted near the limits, or for a key with few requests', async t => {
  const { workers: [worker], clock } = connectedWorkers(1)
  if (!worker) throw new Error('no worker')
  const near = [
    { requestsPerMinute: 100 }, { tokensPerMinute: 1000 }, { concurrent: 20 },
    { budget: { usd: '1', per: 'day' } as const },
  ]
  for (const [n, one] of near.entries()) {
    const wish = { ...ask(limits(one)), key: { name: `near ${n}`, limits: limits(one) } }
    for (let again = 0; again < 5; again++) (await admitted(worker, wish)).release()
  }
  for (let n = 0; n < 5; n++) {
    clock.advance(100)
    ;(await admitted(worker, ask(FAR))).release()
  }
  t.notOk(kinds(worker).includes('return-lease'))
  t.equal(kinds(worker).filter(kind => kind === 'admit').length, 25)
})

t.test('while a lease is fetched, as many requests wait as the lease can admit', async t => {
  const { workers: [worker], clock } = connectedWorkers(1)
  if (!worker) throw new Error('no worker')
  await getLease(worker, FAR)
  clock.advance(99)
  // One request asks for the next lease, 15 use the rest of this one, 16 wait for the next, and 4 ask the server.
  const before = kinds(worker).filter(kind => kind === 'admit').length
  const all = Array.from({ length: 1 + 15 + 16 + 4 }, () => worker.limiter.admit(ask(FAR)))
  t.equal(all.filter(admission => admission instanceof Promise).length, 1 + 16 + 4)
  t.equal(counts(await Promise.all(all)), all.length)
  // Of the waiting requests, the first that finds little left in the lease asks for the next lease.
  t.equal(kinds(worker).filter(kind => kind === 'admit').length - before, 1 + 4 + 1)
})

t.test('no request waits for a first lease', async t => {
  const { workers: [worker] } = connectedWorkers(1)
  if (!worker) throw new Error('no worker')
  const near = limits({ concurrent: 20 })
  for (let n = 0; n < 2; n++) (await admitted(worker, ask(near))).release()
  const all = Array.from({ length: 10 }, () => worker.limiter.admit(ask(near)))
  await quiet()
  t.equal(kinds(worker).filter(kind => kind === 'admit').length, 2 + 10)
  t.equal(counts(await Promise.all(all)), 10)
})

t.test('if a lease is refused, each waiting request is checked against the limits', async t => {
  const own = limits({ requestsPerMinute: 1000 })
  const { workers: [one, two] } = connectedWorkers(2)
  if (!one || !two) throw new Error('no workers')
  await getLease(one, own)
  const others = await Promise.all(Array.from({ length: 990 }, () => two.limiter.admit(ask(own))))
  t.equal(counts(others), 990)
  const asked = () => kinds(one).filter(kind => kind === 'admit').length
  const before = asked()
  const all = Array.from({ length: 20 }, () => one.limiter.admit(ask(own)))
  await setImmediate()
  t.equal(asked() - before, 16, 'four requests wait for a small lease, because the last lease was used little')
  const admissions = await Promise.all(all)
  t.equal(asked() - before, 20)
  t.equal(counts(admissions), 7)
  t.match(admissions.at(-1), { ok: false, refusal: { which: 'requests' } })
})

t.test('a request without a price is decided by the lease server if a budget applies', async t => {
  const { workers: [worker] } = connectedWorkers(1)
  if (!worker) throw new Error('no worker')
  await getLease(worker, FAR)
  t.match(await worker.limiter.admit(ask(FAR, 10, null)), { ok: false, refusal: { which: 'unpriced' } })
})

t.test('a lease ends after 100 ms, and its running requests keep their reservations', async t => {
  const own = limits({ concurrent: 64, budget: { usd: '10', per: 'day' } })
  const { workers: [one, two], clock } = connectedWorkers(2)
  if (!one || !two) throw new Error('no workers')
  await getLease(one, own)
  const [long, left] = [await admitted(one, ask(own)), await admitted(one, ask(own))]
  left.releaseConcurrency()
  clock.advance(100)
  await quiet()
  t.equal(kinds(one).filter(kind => kind === 'return-lease').length, 1)
  // Two requests run: that of `getLease` and the long one. 10 USD less three cents are free.
  t.equal((await two.limiter.admit(ask(own, 0, 10n * USD - 2n * CENT))).ok, false)
  const rest = await admitted(two, ask(own, 0, 10n * USD - 3n * CENT))
  const others = await Promise.all(Array.from({ length: 62 }, () => two.limiter.admit(ask(own, 0, 0n))))
  t.equal(others.filter(({ ok }) => ok).length, 61)
  rest.release()
  long.settle({ tokens: 5, pico: 4n * CENT })
  left.settle({ tokens: 5, pico: null })
  await quiet()
  t.equal((await two.limiter.admit(ask(own, 0, 10n * USD - 5n * CENT))).ok, false)
  t.equal((await two.limiter.admit(ask(own, 0, 10n * USD - 6n * CENT))).ok, true)
})

t.test('the requests of a lease together use at most the tokens and cost of the lease', async t => {
  // For sixteen requests of ten tokens and a cent; one is admitted.
  for (const [tokens, pico] of [[150, 0n], [0, 15n * CENT]] as const) {
    const { workers: [worker] } = connectedWorkers(1)
    if (!worker) throw new Error('no worker')
    await getLease(worker, FAR)
    t.notOk(worker.limiter.admit(ask(FAR, tokens, pico)) instanceof Promise, 'the rest of the lease')
    t.ok(worker.limiter.admit(ask(FAR, Math.min(tokens, 1), pico && 1n)) instanceof Promise, 'nothing is left')
  }
})

t.test('at the end of a lease, settled tokens count as used, and reserved tokens count once', async t => {
  // 100 drain in a millisecond.
  const own = limits({ tokensPerMinute: 6_000_000 })
  const { workers: [worker], clock } = connectedWorkers(1)
  if (!worker) throw new Error('no worker')
  for (let n = 0; n < 2; n++) (await admitted(worker, ask(own, 40_000))).release()
  const over = await admitted(worker, ask(own, 40_000))
  await admitted(worker, ask(own, 40_000))
  over.settle({ tokens: 10_000, pico: 0n })
  clock.advance(100)
  await quiet()
  t.ok(kinds(worker).includes('return-lease'))
  clock.advance(100)
  await admitted(worker, ask(own, 0))
  const { tokens } = worker.limiter.rateLimitStates({ name: 'team', limits: own }, 'm')
  t.equal(tokens?.remaining, 6_000_000 - (10_000 + 40_000 - 20_000))
})

t.test('no lease lasts into the next day', async t => {
  const { workers: [worker], clock } = connectedWorkers(1)
  if (!worker) throw new Error('no worker')
  const { wall } = clock
  clock.wall = () => wall.call(clock) + 86_400_000 - 40
  await getLease(worker, FAR)
  t.notOk(worker.limiter.admit(ask(FAR)) instanceof Promise)
  clock.advance(40)
  t.ok(worker.limiter.admit(ask(FAR)) instanceof Promise)
})

t.test('an unused lease causes no refusal', async t => {
  const own = limits({ requestsPerMinute: 1000 })
  const { workers: [one, two, three] } = connectedWorkers(3)
  if (!one || !two || !three) throw new Error('no workers')
  await getLease(one, own)
  await getLease(two, own)
  // Six requests were admitted before.
  const asked = Array.from({ length: 1000 }, (_, n) => (n % 2 === 0 ? three : one).limiter.admit(ask(own)))
  const admissions = await Promise.all(asked)
  t.equal(admissions.filter(({ ok }) => ok).length, 994)
})

t.test('the lease of an ended worker counts as used, and requests that wait at other workers are decided', async t => {
  const own = limits({ concurrent: 64, budget: { usd: '10', per: 'day' } })
  const { workers: [one, two] } = connectedWorkers(2)
  if (!one || !two) throw new Error('no workers')
  await getLease(one, own)
  const { connection } = one
  const waits = two.limiter.admit(ask(own, 0, 10n * USD - 2n * CENT))
  connection.handle = () => undefined
  await quiet()
  connection.close()
  t.match(await waits, { ok: false, refusal: { which: 'budget' } })
  const free = await Promise.all(Array.from({ length: 64 }, () => two.limiter.admit(ask(own, 0, 0n))))
  t.equal(free.filter(({ ok }) => ok).length, 64, 'no request of the ended worker counts as running')
})

t.test('late messages of an ended worker are ignored', async t => {
  const own = limits({ concurrent: 64, budget: { usd: '10', per: 'day' } })
  const { workers: [one, two], clock } = connectedWorkers(2)
  if (!one || !two) throw new Error('no workers')
  await getLease(one, own)
  const { late, take } = unread(one)
  clock.advance(100)
  await quiet()
  t.ok(late.flat().some(({ kind }) => kind === 'return-lease'))
  one.connection.close()
  await getLease(two, own)
  for (const requests of late) take(requests)
  await quiet()
  // The open request of `getLease` is running.
  const free = await Promise.all(Array.from({ length: 64 }, () => two.limiter.admit(ask(own, 0, 0n))))
  t.equal(free.filter(({ ok }) => ok).length, 63)
})

t.test('a request that waits for the lease of a hanging worker is decided within a second, and no usage is lost', async t => {
  const own = limits({ concurrent: 64, budget: { usd: '10', per: 'day' } })
  const { workers: [one, two], clock } = connectedWorkers(2)
  if (!one || !two) throw new Error('no workers')
  await getLease(one, own)
  const { late, take } = unread(one)
  const told: boolean[] = []
  const wish = ask(own, 0, 10n * USD - CENT)
  for (let n = 0; n < 2; n++) void Promise.resolve(two.limiter.admit(wish)).then(({ ok }) => told.push(ok))
  await quiet()
  t.same(told, [], 'the hanging worker can still reply')
  clock.advance(1000)
  await quiet()
  t.same(told, [false, false])
  t.notOk((await two.limiter.admit(wish)).ok, 'other requests do not wait')
  for (const requests of late) take(requests)
  t.ok((await two.limiter.admit(wish)).ok, 'only running requests of the worker still count')
})

t.test('a change of limits ends the leases of the old limits', async t => {
  const { workers: [worker] } = connectedWorkers(1)
  if (!worker) throw new Error('no worker')
  await getLease(worker, FAR)
  const none = limits({ requestsPerMinute: 0 })
  t.match(await worker.limiter.admit(ask(none)), { ok: false, refusal: { which: 'requests' } })
  await getLease(worker, FAR)
  worker.limiter.reconfigure(limits({ concurrent: 0 }))
  t.ok(worker.limiter.admit(ask(FAR)) instanceof Promise)
})

t.test('a change of limits of one key does not change the headers of another key', async t => {
  const { workers: [worker] } = connectedWorkers(1)
  if (!worker) throw new Error('no worker')
  await getLease(worker, FAR)
  const key = { name: 'team', limits: FAR }
  const before = worker.limiter.rateLimitStates(key, 'm')
  const other = (own: Limits) => ({ ...ask(own), key: { name: 'other', limits: own } })
  await admitted(worker, other(FAR))
  await admitted(worker, other(limits({ requestsPerMinute: 5 })))
  t.same(worker.limiter.rateLimitStates(key, 'm'), before, 'the headers of the key team')
  t.notOk(worker.limiter.admit(ask(FAR)) instanceof Promise, 'the leases of the key team do not end')
  worker.limiter.reconfigure(limits({ concurrent: 5 }))
  t.equal(worker.limiter.rateLimitStates(key, 'm').requests?.remaining, (before.requests?.remaining ?? 0) - 1)
})

t.test('property: several workers with leases admit as many requests as the limits allow, never more', async () => {
  const task = fc.record({
    worker: fc.nat(2), before: fc.nat(30), during: fc.nat(30), tokens: fc.integer({ min: 1, max: 20 }),
  })
  const tasks = fc.array(task, { minLength: 700, maxLength: 900 })
  const most = { requests: fc.integer({ min: 64, max: 800 }), turns: fc.constantFrom(64, 5000) }
  await fc.assert(fc.asyncProperty(tasks, most.requests, most.turns, async (all, requests, turns) => {
    // The clock does not move, so each admitted request stays counted.
    const own = limits({ requestsPerMinute: requests, concurrent: turns, budget: { usd: '7', per: 'day' } })
    const { workers } = connectedWorkers(3)
    let [count, running, mostRunning] = [0, 0, 0]
    await Promise.all(all.map(async ({ worker, before, during, tokens }) => {
      // The first worker still has a lease after its last request.
      for (let turn = 0; turn < (worker === 0 ? before % 10 : before); turn++) await setImmediate()
      const admission = await (workers[worker] as ConnectedWorker).limiter.admit(ask(own, tokens))
      if (!admission.ok) return
      count++
      mostRunning = Math.max(mostRunning, ++running)
      for (let turn = 0; turn < during; turn++) await setImmediate()
      running--
      admission.reservation.settle({ tokens, pico: CENT })
    }))
    // 7 USD are 700 cents.
    const fitting = Math.min(requests, 700, all.length)
    return mostRunning <= turns && (turns === 64 ? count <= fitting : count === fitting)
  }), { numRuns: 20, endOnFailure: true })
})
