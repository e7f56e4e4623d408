import t from 'tap'
import { WorkerLease, WorkerReservation } from '../../../src/limits/workers/worker-lease.ts'
import type { GrantedLease } from '../../../src/limits/workers/lease-messages.ts'

const leaseOf = (granted: Partial<GrantedLease> = {}) => new WorkerLease({ leaseId: 3, requests: 4, tokens: 40, pico: 40n, lifetimeMs: 100, ...granted }, 1000)
const ask = (tokens: number, pico: bigint | null = 0n) => ({ tokens, pico })

const REFUSED: readonly (readonly [what: string, lease: Partial<GrantedLease>, estimate: ReturnType<typeof ask>, now: number, isAdmitted: boolean])[] = [
  ['all tokens of the lease', {}, ask(40), 1000, true],
  ['more tokens than the lease has', {}, ask(41), 1000, false],
  ['any tokens if tokens are not limited', { tokens: null }, ask(1e9), 1000, true],
  ['the whole cost of the lease', {}, ask(0, 40n), 1000, true],
  ['more cost than the lease has', {}, ask(0, 41n), 1000, false],
  ['an unknown cost', {}, ask(0, null), 1000, false],
  ['an unknown cost if cost is not limited', { pico: null }, ask(0, null), 1000, true],
  ['the last moment of the lease', {}, ask(0), 1099, true],
  ['the end of the lease', {}, ask(0), 1100, false],
  ['an invalid number of tokens', {}, ask(NaN), 1000, false],
]

for (const [what, granted, estimate, now, isAdmitted] of REFUSED) {
  t.test(`a lease ${isAdmitted ? 'admits' : 'does not admit'} a request: ${what}`, async t => {
    t.equal(leaseOf(granted).admit(estimate, now) !== null, isAdmitted)
  })
}

t.test('requests of a lease share its tokens, its cost and its number of requests', async t => {
  const lease = leaseOf()
  t.ok(lease.admit(ask(30, 30n), 1000))
  t.notOk(lease.admit(ask(11), 1000))
  t.notOk(lease.admit(ask(0, 11n), 1000))
  t.ok(lease.admit(ask(10, 10n), 1000))
  t.equal(lease.takenTokens, 40)
  t.ok(lease.admit(ask(0), 1000))
  t.ok(lease.admit(ask(0), 1000))
  t.equal(lease.admit(ask(0), 1000), null, 'a fifth request')
  t.equal(lease.admitted, 4)
})

t.test('a lease is renewed at three quarters of its requests or of its time', async t => {
  const lease = leaseOf()
  t.notOk(lease.needsRenewal(1074))
  t.ok(lease.needsRenewal(1075))
  lease.admit(ask(0), 1000)
  lease.admit(ask(0), 1000)
  t.notOk(lease.needsRenewal(1000))
  lease.admit(ask(0), 1000)
  t.ok(lease.isMostlyUsed)
  t.ok(lease.needsRenewal(1000))
})

t.test('a closed lease reports the usage of ended requests, and hands over open requests', async t => {
  const lease = leaseOf()
  const [first, second, third] = [lease.admit(ask(10, 5n), 1000), lease.admit(ask(10, 5n), 1000), lease.admit(ask(10, 5n), 1000)]
  first?.settle({ tokens: 3, pico: 2n })
  first?.settle({ tokens: 30, pico: 20n })
  second?.settle({ tokens: null, pico: null })
  third?.releaseConcurrency()
  t.equal(lease.takenTokens, 23)
  const calls: unknown[] = []
  const owner = { concurrencyReleased: (slot: number) => calls.push(['released', slot]), settled: (slot: number, outcome: object) => calls.push(['settled', slot, outcome]) }
  t.strictSame(lease.close(owner, () => 77), {
    kind: 'return-lease', leaseId: 3, requests: 3, tokens: 13, pico: 7n, open: [{ id: 77, tokens: 10, pico: 5n, isRunning: false }],
  })
  third?.release()
  t.strictSame(calls, [['settled', 77, { tokens: 0, pico: 0n }]])
})

t.test('a reservation releases its concurrency only once, and ends only once', async t => {
  const calls: string[] = []
  const owner = { concurrencyReleased: () => calls.push('released'), settled: () => calls.push('settled') }
  const reservation = new WorkerReservation(ask(1))
  t.ok(reservation.isRunning)
  reservation.assignOwner(owner, 0)
  reservation.releaseConcurrency()
  reservation.releaseConcurrency()
  t.notOk(reservation.isRunning)
  reservation.settle({ tokens: 1, pico: 0n })
  reservation.release()
  t.strictSame(calls, ['released', 'settled'])
  const part = new WorkerReservation(ask(1), false)
  part.assignOwner(owner, 0)
  part.releaseConcurrency()
  t.equal(calls.length, 2, 'a response within a session needs no concurrency')
})
