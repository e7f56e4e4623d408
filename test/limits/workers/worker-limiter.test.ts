import t from 'tap'
import type { Limits } from '../../../src/config/key-types.ts'
import type { Admission, AdmissionRequest, LimitedKey } from '../../../src/limits/types.ts'
import { connectedWorkers } from './connected-workers.ts'

const NONE: Limits = {
  requestsPerMinute: null, tokensPerMinute: null, concurrent: null, budget: null, models: new Map(),
}
const PICO = 1_000_000_000_000n

function ask(limits: Limits | null, pico = 0n, name = 'team'): AdmissionRequest {
  return { key: { name, limits } satisfies LimitedKey, model: 'm', estimate: { tokens: 1, pico } }
}

const counts = (admissions: Admission[]) => admissions.filter(({ ok }) => ok).length

t.test('a key without limits is admitted at once', async t => {
  const { workers: [one] } = connectedWorkers(1)
  t.notOk(one?.limiter.admit(ask(null)) instanceof Promise)
  t.same(one?.limiter.rateLimitStates({ name: 'team', limits: null }, 'm'), { requests: null, tokens: null })
})

t.test('defaults limit every key over all workers', async t => {
  const { workers } = connectedWorkers(2, { ...NONE, concurrent: 3 })
  const asked = workers.flatMap(({ limiter }) => Array.from({ length: 4 }, () => limiter.admit(ask(null))))
  t.equal(counts(await Promise.all(asked)), 3)
})

t.test('workers share the limits of a key, and send the requests of one turn of the event loop together', async t => {
  const { workers } = connectedWorkers(3)
  const asked = workers.flatMap(({ limiter }) => {
    const limits = { ...NONE, requestsPerMinute: 5 }
    return Array.from({ length: 5 }, () => limiter.admit(ask(limits)))
  })
  const admissions = await Promise.all(asked)
  t.equal(counts(admissions), 5)
  t.same(workers.map(({ sent }) => sent.length), [1, 1, 1])
  const refused = admissions.find(admission => !admission.ok)
  t.match(refused, { ok: false, refusal: { which: 'requests' } })
  t.match(
    workers[2]?.limiter.rateLimitStates({ name: 'team', limits: NONE }, 'm'),
    { requests: { limit: 5, remaining: 0 } },
  )
})

t.test('limits renew with time, without a message from the lease server', async t => {
  const { workers: [worker], clock } = connectedWorkers(1)
  const limits = { ...NONE, requestsPerMinute: 60 }
  const left = () => worker?.limiter.rateLimitStates({ name: 'team', limits }, 'm').requests
  await Promise.all(Array.from({ length: 30 }, () => worker?.limiter.admit(ask(limits))))
  t.strictSame(left(), { limit: 60, remaining: 30, resetMs: 30_000 })
  clock.advance(10_000)
  t.strictSame(left(), { limit: 60, remaining: 40, resetMs: 20_000 })
  clock.advance(60_000)
  t.strictSame(left(), { limit: 60, remaining: 60, resetMs: 0 })
})

t.test('a reservation that is settled and then released is released only once for all workers', async t => {
  const limits = { ...NONE, concurrent: 1 }
  const { workers: [one, two] } = connectedWorkers(2)
  const first = await (one as NonNullable<typeof one>).limiter.admit(ask(limits))
  t.equal((await two?.limiter.admit(ask(limits)))?.ok, false)
  if (first.ok) {
    first.reservation.settle({ tokens: 1, pico: 0n })
    first.reservation.release()
  }
  await new Promise(setImmediate)
  const again = await Promise.all(
    [one, two].map(worker => worker?.limiter.admit(ask(limits)) as Promise<Admission>),
  )
  t.equal(counts(again), 1)
})

t.test('ids of settled requests are reused', async t => {
  const limits = { ...NONE, concurrent: 1 }
  const { workers: [worker] } = connectedWorkers(1)
  for (let n = 0; n < 20; n++) {
    const admission = await worker?.limiter.admit(ask(limits))
    if (!admission?.ok) throw new Error('refused')
    admission.reservation.settle({ tokens: 1, pico: 0n })
  }
  const ids = worker?.sent.flat().flatMap(request => (request.kind === 'admit' ? [request.id] : [])) ?? []
  t.equal(ids.length, 20)
  t.strictSame(new Set(ids), new Set([0]))
})

t.test('requests that end together are settled in one message, even if a new request reuses an id', async t => {
  const limits: Limits = { ...NONE, concurrent: 4, tokensPerMinute: 100 }
  const { workers: [worker] } = connectedWorkers(1)
  if (worker === undefined) throw new Error('no worker')
  const admit = async () => {
    const admission = await worker.limiter.admit(ask(limits))
    if (!admission.ok) throw new Error('refused')
    return admission.reservation
  }
  const [first, second, third] = [await admit(), await admit(), await admit()]
  const before = worker.sent.length
  first.releaseConcurrency()
  first.settle({ tokens: 3, pico: 1n })
  second.releaseConcurrency()
  third.releaseConcurrency()
  second.settle({ tokens: null, pico: null })
  third.settle({ tokens: 5, pico: 2n })
  const fourth = admit()
  ;(await fourth).settle({ tokens: 7, pico: 0n })
  await new Promise(setImmediate)
  t.match(worker.sent.slice(before).flat(), [
    { kind: 'settle', ids: [0], tokens: [3], pico: [1n] },
    { kind: 'release-concurrency', id: 1 },
    { kind: 'release-concurrency', id: 2 },
    { kind: 'settle', ids: [1, 2], tokens: [null, 5], pico: [null, 2n] },
    { kind: 'admit', id: 2 },
    { kind: 'settle', ids: [2], tokens: [7], pico: [0n] },
  ])
  const figures = worker.limiter.rateLimitStates({ name: 'team', limits }, 'm')
  t.match(figures, { tokens: { remaining: 100 - 3 - 1 - 5 - 1 } })
  t.equal(counts(await Promise.all([1, 2, 3, 4, 5].map(() => worker.limiter.admit(ask(limits))))), 4)
})

t.test('released concurrency is free for another worker before settlement', async t => {
  const limits = { ...NONE, concurrent: 1 }
  const { workers: [one, two] } = connectedWorkers(2)
  const first = await (one as NonNullable<typeof one>).limiter.admit(ask(limits))
  if (!first.ok) throw new Error('refused')
  first.reservation.releaseConcurrency()
  await new Promise(setImmediate)
  t.equal((await two?.limiter.admit(ask(limits)))?.ok, true)
  first.reservation.settle({ tokens: 1, pico: 0n })
  first.reservation.releaseConcurrency()
  await new Promise(setImmediate)
  t.equal((await one?.limiter.admit(ask(limits)))?.ok, false)
})

t.test('when a worker ends, its concurrency is released and its reserved cost counts as spent', async t => {
  const limits: Limits = { ...NONE, concurrent: 2, budget: { usd: '10', per: 'day' } }
  const { workers: [one, two] } = connectedWorkers(2)
  t.equal((await one?.limiter.admit(ask(limits, 4n * PICO)))?.ok, true)
  t.equal((await one?.limiter.admit(ask(limits, 4n * PICO)))?.ok, true)
  t.match(await two?.limiter.admit(ask(limits, PICO)), { refusal: { which: 'concurrent' } })
  one?.connection.close()
  t.equal((await two?.limiter.admit(ask(limits, PICO)))?.ok, true)
  t.match(await two?.limiter.admit(ask(limits, 4n * PICO)), { refusal: { which: 'budget' } })
})

t.test('past spend counts once, even if every worker restores the same spend', async t => {
  const limits: Limits = { ...NONE, budget: { usd: '10', per: 'day' } }
  const { workers, clock } = connectedWorkers(3)
  for (const { limiter } of workers) {
    limiter.restoreSpend([
      { key: { name: 'team', limits }, model: 'm', startedAt: clock.wall(), pico: 4n * PICO },
    ])
  }
  const asked = workers.map(({ limiter }) => limiter.admit(ask(limits, 3n * PICO)))
  t.equal(counts(await Promise.all(asked)), 2)
})

t.test('a budget that is removed and added again counts the spend in between', async t => {
  const limits: Limits = { ...NONE, budget: { usd: '10', per: 'day' } }
  const { workers: [one, two], clock } = connectedWorkers(2)
  t.equal((await one?.limiter.admit(ask(limits, 2n * PICO)))?.ok, true)
  t.equal((await one?.limiter.admit({ ...ask(limits), key: { name: 'team', limits: null } }))?.ok, true)
  const back = { ...limits }
  for (const worker of [one, two]) {
    worker?.limiter.restoreSpend([
      { key: { name: 'team', limits: back }, model: 'm', startedAt: clock.wall(), pico: 6n * PICO },
    ])
  }
  t.match(await two?.limiter.admit(ask(back, 2n * PICO + 1n)), { refusal: { which: 'budget' } })
  t.equal((await two?.limiter.admit(ask(back, 2n * PICO)))?.ok, true)
})

t.test('keys share the limits of their group across workers; an unused lease is recalled if another key needs the limits', async t => {
  const { workers: [one, two] } = connectedWorkers(2)
  const research: LimitedKey = { name: 'research', limits: { ...NONE, requestsPerMinute: 400 }, isGroup: true }
  const of = (name: string): AdmissionRequest => ({
    key: { name, limits: null, groups: [research] }, model: 'm', estimate: { tokens: 1, pico: 0n },
  })
  const [a, b] = [of('a'), of('b')]
  let total = 0
  // Many concurrent requests, so that the first worker gets leases.
  for (let n = 0; n < 20; n++) {
    total += counts(await Promise.all(Array.from({ length: 10 }, () => (one as NonNullable<typeof one>).limiter.admit(a))))
  }
  t.equal(total, 200)
  total += counts(await Promise.all(Array.from({ length: 300 }, () => (two as NonNullable<typeof two>).limiter.admit(b))))
  t.equal(total, 400, 'the whole limit')
  const refused = await (one as NonNullable<typeof one>).limiter.admit(a)
  t.match(refused, { ok: false, refusal: { which: 'requests', scope: { key: 'a', group: 'research' } } })
})
