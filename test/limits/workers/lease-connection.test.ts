import t from 'tap'
import { compileGlob } from '../../../src/config/glob.ts'
import { createLimiter } from '../../../src/limits/limiter.ts'
import type { LimiterReplies, LimiterRequest } from '../../../src/limits/workers/lease-messages.ts'
import { LeaseServer } from '../../../src/limits/workers/lease-server.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { limits } from '../../behaviour/limits/limits-of.ts'

const ADMIT = { kind: 'admit', ref: 0, model: 'm', tokens: 10, pico: 0n, leaseRequests: 0 } as const

/** The lease server's end of a worker's connection. */
function connected(...own: Parameters<typeof limits>) {
  const clock = new FakeClock('2026-11-21T12:00:00Z')
  const limiter = createLimiter({ defaults: null, compileGlob, clock })
  const server = new LeaseServer(limiter, clock)
  const sent: LimiterReplies[] = []
  const connection = server.connect(replies => sent.push(replies))
  const key = { name: 'team', limits: limits(...own) }
  const remaining = () => limiter.rateLimitStates(server.internKey(key), 'm')
  const handle = async (...requests: LimiterRequest[]): Promise<void> => {
    connection.handle(requests)
    await Promise.resolve()
  }
  return { connection, handle, sent, key, remaining }
}

t.test('replies of one turn of the event loop are sent together', async t => {
  const { handle, sent, key } = connected({ requestsPerMinute: 2 })
  await handle({ kind: 'key', ref: 0, ...key }, { ...ADMIT, id: 0 }, { ...ADMIT, id: 1 }, { ...ADMIT, id: 2 })
  t.equal(sent.length, 1)
  t.match(sent[0]?.replies, [
    { id: 0, refusal: null, lease: null, rateLimitStates: { requests: { remaining: 1 } } }, { id: 1, refusal: null, rateLimitStates: { requests: { remaining: 0 } } },
    { id: 2, refusal: { which: 'requests' }, lease: null },
  ])
})

t.test('a request of a key that was not registered is an error', async t => {
  const { connection } = connected({ requestsPerMinute: 2 })
  t.throws(() => connection.handle([{ ...ADMIT, id: 0 }]), { message: 'no key is registered as 0' })
})

t.test('a request is settled only once', async t => {
  const { handle, key, remaining } = connected({ tokensPerMinute: 100 })
  await handle({ kind: 'key', ref: 0, ...key }, { ...ADMIT, id: 0 }, { ...ADMIT, id: 1 })
  t.match(remaining(), { tokens: { remaining: 80 } })
  await handle({ kind: 'settle', ids: [0], tokens: [4], pico: [0n] }, { kind: 'settle', ids: [0, 7], tokens: [50, 50], pico: [0n, 0n] })
  t.match(remaining(), { tokens: { remaining: 86 } })
  await handle({ kind: 'settle', ids: [1], tokens: [null], pico: [null] })
  t.match(remaining(), { tokens: { remaining: 86 } }, 'unknown usage keeps the estimate')
})

t.test('leases of an ended worker count as used, and late messages of that worker are ignored', async t => {
  const { connection, handle, sent, key, remaining } = connected({ requestsPerMinute: 1000, tokensPerMinute: 10_000, concurrent: 100 })
  await handle({ kind: 'key', ref: 0, ...key }, { ...ADMIT, id: 0, leaseRequests: 16 })
  const lease = sent[0]?.replies[0]?.lease
  t.match(lease, { leaseId: Number, lifetimeMs: 100 })
  const { requests = 0, tokens = 0 } = lease ?? {}
  t.ok(requests >= 4)
  connection.close()
  t.match(remaining(), { requests: { remaining: 999 - requests }, tokens: { remaining: 9990 - (tokens ?? 0) } })
  await handle({ ...ADMIT, id: 1 }, { kind: 'settle', ids: [0], tokens: [0], pico: [0n] })
  t.match(remaining(), { requests: { remaining: 999 - requests } })
  t.equal(sent.length, 1)
})

t.test('an open request of a returned lease counts against the concurrent limit only if it runs', async t => {
  for (const isRunning of [true, false]) {
    const { handle, sent, key } = connected({ concurrent: 40 })
    await handle({ kind: 'key', ref: 0, ...key }, { ...ADMIT, id: 0, leaseRequests: 16 })
    const leaseId = sent[0]?.replies[0]?.lease?.leaseId ?? -1
    const open = [{ id: 1, tokens: 0, pico: 0n, isRunning }]
    await handle({ kind: 'return-lease', leaseId, requests: 1, tokens: 0, pico: 0n, open })
    await handle(...Array.from({ length: 39 }, (_, n) => ({ ...ADMIT, id: n + 2 })))
    t.equal(sent.at(-1)?.replies.at(-1)?.refusal?.which ?? null, isRunning ? 'concurrent' : null)
  }
})

t.test('the unused part of a returned lease is released, and open requests keep their reservations', async t => {
  const { handle, sent, key, remaining } = connected({ requestsPerMinute: 1000, tokensPerMinute: 10_000 })
  await handle({ kind: 'key', ref: 0, ...key }, { ...ADMIT, id: 0, leaseRequests: 16 })
  const leaseId = sent[0]?.replies[0]?.lease?.leaseId ?? -1
  const returned = { kind: 'return-lease', leaseId, requests: 2, tokens: 5, pico: 0n, open: [{ id: 5, tokens: 10, pico: 0n, isRunning: true }] } as const
  await handle(returned)
  t.match(remaining(), { requests: { remaining: 997 }, tokens: { remaining: 9975 } })
  await handle(returned, { kind: 'settle', ids: [5], tokens: [1], pico: [0n] })
  t.match(remaining(), { requests: { remaining: 997 }, tokens: { remaining: 9984 } }, 'a lease is returned only once')
})
