import t from 'tap'
import { KeyModelState } from '../../../src/limits/workers/key-model-state.ts'
import { WorkerLease } from '../../../src/limits/workers/worker-lease.ts'
import type { RateLimitState } from '../../../src/limits/types.ts'

const KEY = { name: 'team', limits: null }
const ASK = { tokens: 10, pico: 0n }
const rate = (limit: number, remaining: number, resetMs = 60_000): RateLimitState => ({ limit, remaining, resetMs })
const stateOf = (requests: RateLimitState | null = rate(100, 50), tokens: RateLimitState | null = null) => new KeyModelState<string>(KEY, { requests, tokens }, 1000)
const leaseFor = (requests: number, now = 1000) => new WorkerLease({ leaseId: 1, requests, tokens: null, pico: null, lifetimeMs: 100 }, now)

t.test('the second request within 100 ms asks for a lease, unless a lease is already being fetched', async t => {
  const state = stateOf()
  t.equal(state.startLimiterRequest(1000), 0, 'the first request')
  t.equal(state.startLimiterRequest(1100), 0, 'the second request is late')
  t.equal(state.startLimiterRequest(1199), 16)
  t.equal(state.startLimiterRequest(1199), 0, 'a lease is being fetched')
  state.leaseReplied(false)
  t.equal(state.startLimiterRequest(1199), 16)
})

t.test('after a lease was granted, as many requests wait for the next lease as that lease can admit', async t => {
  const state = stateOf()
  t.notOk(state.waitForLease('early'), 'no lease is being fetched')
  state.startLimiterRequest(1000)
  state.startLimiterRequest(1000)
  t.notOk(state.waitForLease('first'), 'the first lease may be refused')
  state.leaseReplied(true)
  state.startLimiterRequest(1000)
  const all = Array.from({ length: 16 }, (_, n) => `request ${n}`)
  t.ok(all.every(each => state.waitForLease(each)))
  t.notOk(state.waitForLease('one more'))
  t.strictSame(state.leaseReplied(false), all)
  t.strictSame(state.leaseReplied(false), [])
})

for (const [used, of, next] of [[0, 16, 4], [5, 16, 5], [11, 16, 11], [12, 16, 24], [16, 16, 32], [200, 200, 256]] as const) {
  t.test(`after ${used} of ${of} requests of a lease, the next lease is for ${next} requests`, async t => {
    const state = stateOf()
    const lease = leaseFor(of)
    state.lease = lease
    for (let n = 0; n < used; n++) lease.admit(ASK, 1000)
    state.leaseEnded(lease)
    t.equal(state.lease, null)
    state.startLimiterRequest(1000)
    t.equal(state.startLimiterRequest(1000), next)
  })
}

t.test('one request asks for the next lease, and other requests use the rest of the current lease', async t => {
  const state = stateOf()
  t.equal(state.admit(ASK, 1000), null, 'without a lease')
  state.lease = leaseFor(4)
  for (let n = 0; n < 3; n++) t.ok(state.admit(ASK, 1000))
  t.equal(state.admit(ASK, 1000), null, 'the last request asks for the next lease')
  state.startLimiterRequest(1000)
  state.startLimiterRequest(1000)
  t.ok(state.admit(ASK, 1000))
})

t.test('the remaining rate limits fall once for each request of a lease', async t => {
  const state = stateOf(rate(100, 50), rate(1000, 500))
  const lease = state.lease = leaseFor(4)
  state.admit(ASK, 1000)
  t.match(state.rateLimitStates(1000), { requests: { remaining: 49 }, tokens: { remaining: 490 } })
  state.leaseEnded(lease)
  t.match(state.rateLimitStates(1000), { requests: { remaining: 49 }, tokens: { remaining: 490 } })
  const counted = state.lease = leaseFor(4)
  state.updateRateLimitStates({ requests: rate(100, 40), tokens: null }, 1000)
  counted.admit(ASK, 1000)
  t.match(state.rateLimitStates(1000), { requests: { remaining: 40 }, tokens: null }, 'the server has counted this lease')
  state.leaseEnded(counted)
  t.match(state.rateLimitStates(1000), { requests: { remaining: 40 } })
})

t.test('rate limits do not fall below 0', async t => {
  const state = stateOf(rate(100, 1), rate(1000, 5))
  state.lease = leaseFor(4)
  state.admit(ASK, 1000)
  state.admit(ASK, 1000)
  t.match(state.rateLimitStates(1000), { requests: { remaining: 0 }, tokens: { remaining: 0 } })
})

t.test('rate limits renew with time, up to the limit', async t => {
  const state = stateOf(rate(120, 20, 50_000))
  t.strictSame(state.rateLimitStates(1000).requests, rate(120, 20, 50_000))
  t.strictSame(state.rateLimitStates(6_000).requests, rate(120, 30, 45_000))
  t.strictSame(state.rateLimitStates(51_000).requests, rate(120, 120, 0))
  t.strictSame(stateOf(rate(120, 119, 60_000)).rateLimitStates(31_000).requests, rate(120, 60, 30_000), 'no more than the time until the reset allows')
  t.strictSame(state.rateLimitStates(500_000).requests, rate(120, 120, 0))
})
