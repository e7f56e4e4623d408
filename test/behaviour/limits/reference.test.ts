import fc from 'fast-check'
import t from 'tap'
import { compileGlob } from '../../../src/config/glob.ts'
import { createLimiter } from '../../../src/limits/limiter.ts'
import type { Reservation } from '../../../src/limits/types.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { limits } from './limits-of.ts'

const MINUTE = 60_000
const DAY = 86_400_000
const RPM = 5
const TPM = 100
const CONCURRENT = 3
/** In 1e-12 USD; small, so that random sequences reach the budget. */
const BUDGET = 500n

interface Request {
  at: number
  day: number
  /** Reserved while the request runs, used after its end; the part above the estimate is separate. */
  tokens: number
  pico: bigint
  running: boolean
}

/** The rules of the documentation, computed from a list of all requests. */
class Reference {
  readonly requests: Request[] = []
  readonly debts: { at: number; amount: number }[] = []
  /** Days whose budget was used, and their initial spend after the date was set back. */
  readonly #days = new Map<number, bigint>()
  #day: number | null = null
  #at = 0

  pass(ms: number): void {
    this.#at += ms
  }

  get running(): Request[] {
    return this.requests.filter(({ running }) => running)
  }

  /** Spent and reserved today. */
  committed(day: number): bigint {
    const requests = this.requests.filter(request => request.day === day)
    return requests.reduce((sum, { pico }) => sum + pico, this.#days.get(day) ?? 0n)
  }

  /** After the date is set back to a day without spend, that day starts with the spend of the next later day. */
  #visit(day: number): void {
    if (this.#day !== null && day < this.#day && this.committed(day) === 0n) {
      const [next] = [...this.#days.keys()].filter(other => other > day).sort((a, b) => a - b)
      if (next !== undefined) this.#days.set(day, this.committed(next))
    }
    if (!this.#days.has(day)) this.#days.set(day, 0n)
    this.#day = day
  }

  obstacles(tokens: number, pico: bigint, day: number): string[] {
    const found = []
    if (pico > 0n || this.#day === null) this.#visit(day)
    const ones = this.requests.map(({ at }) => ({ at, amount: 1 }))
    if (this.#level(ones, RPM) > (RPM - 1) * MINUTE) found.push('requests')
    const poured = [...this.requests.map(({ at, tokens }) => ({ at, amount: tokens })), ...this.debts]
    if (tokens > 0 && this.#level(poured, TPM) > (TPM - tokens) * MINUTE) found.push('tokens')
    if (this.running.length >= CONCURRENT) found.push('concurrent')
    if (pico > 0n && this.committed(day) + pico > BUDGET) found.push('budget')
    return found
  }

  admit(tokens: number, pico: bigint, day: number): Request {
    this.#visit(day)
    const request = { at: this.#at, day, tokens, pico, running: true }
    this.requests.push(request)
    return request
  }

  settle(request: Request, tokens: number, pico: bigint): void {
    if (tokens > request.tokens) this.debts.push({ at: this.#at, amount: tokens - request.tokens })
    request.tokens = Math.min(tokens, request.tokens)
    request.pico = pico
    request.running = false
  }

  #level(poured: readonly { at: number; amount: number }[], perMinute: number): number {
    let level = 0
    let at = 0
    for (const next of poured.toSorted((a, b) => a.at - b.at)) {
      level = Math.max(0, level - (next.at - at) * perMinute) + next.amount * MINUTE
      at = next.at
    }
    return Math.max(0, level - (this.#at - at) * perMinute)
  }
}

const tokens = fc.oneof(fc.nat(50), fc.nat(150))
const pico = fc.bigInt({ min: 0n, max: 300n })
const which = fc.nat()
const admit = fc.record({ do: fc.constant('admit' as const), tokens, pico })
const settle = fc.record({ do: fc.constant('settle' as const), which, tokens, pico })
const release = fc.record({ do: fc.constant('release' as const), which })
const pass = fc.record({ do: fc.constant('pass' as const), ms: fc.oneof(fc.nat(20_000), fc.nat(DAY)) })
const setDate = fc.record({ do: fc.constant('set date' as const), days: fc.nat(3) })
const step = fc.oneof(
  { weight: 5, arbitrary: admit },
  { weight: 3, arbitrary: settle },
  { weight: 1, arbitrary: release },
  { weight: 2, arbitrary: pass },
  { weight: 1, arbitrary: setDate },
)

t.test('the limiter gives the same results as the reference model for any sequence of events', async () => {
  fc.assert(fc.property(fc.array(step, { maxLength: 80 }), fc.boolean(), (steps, byGlob) => {
    // An account keeps four days, and the test uses only these.
    const clock = new FakeClock('2026-11-21T00:00:00Z', 1234.567)
    const start = clock.wall()
    const own = {
      requestsPerMinute: RPM, tokensPerMinute: TPM, concurrent: CONCURRENT,
      budget: { usd: '0.0000000005', per: 'day' as const },
    }
    const key = { name: 'team', limits: limits(byGlob ? { models: { 'm*': own } } : own) }
    const limiter = createLimiter({ defaults: null, compileGlob, clock })
    const reference = new Reference()
    const open: { reservation: Reservation; request: Request }[] = []
    const ended: Reservation[] = []

    for (const step of steps) {
      const day = Math.floor(clock.wall() / DAY)
      if (step.do === 'pass') {
        clock.advance(step.ms)
        reference.pass(step.ms)
        if (clock.wall() >= start + 4 * DAY) clock.setDate(start)
      } else if (step.do === 'set date') {
        clock.setDate(start + step.days * DAY)
      } else if (step.do === 'admit') {
        const obstacles = reference.obstacles(step.tokens, step.pico, day)
        const admission = limiter.admit({ key, model: 'mini', estimate: step })
        if (admission.ok) {
          if (obstacles.length > 0) throw new Error(`admitted, due: ${obstacles.join()}`)
          const request = reference.admit(step.tokens, step.pico, day)
          open.push({ reservation: admission.reservation, request })
          if (step.pico > 0n && reference.committed(day) > BUDGET) throw new Error('overspent')
          if (reference.running.length > CONCURRENT) throw new Error('too many at once')
        } else if (!obstacles.includes(admission.refusal.which)) {
          throw new Error(`refused for ${admission.refusal.which}, due: ${obstacles.join() || 'admission'}`)
        }
      } else {
        const [{ reservation, request } = {}] = open.splice(step.which % (open.length || 1), 1)
        if (reservation === undefined || request === undefined) continue
        if (step.do === 'release') {
          reservation.release()
          reference.settle(request, 0, 0n)
        } else {
          reservation.settle(step)
          reference.settle(request, step.tokens, step.pico)
        }
        ended.push(reservation)
        for (const again of ended) again.settle({ tokens: 7, pico: 7n })
      }
    }
  }), { numRuns: 2000 })
})

t.test('a refused request is admitted after exactly the retry delay in the refusal', async () => {
  const world = fc.record({
    requestsPerMinute: fc.integer({ min: 1, max: 9 }),
    tokensPerMinute: fc.integer({ min: 1, max: 99 }),
    per: fc.constantFrom('day', 'month', 'total'),
  })
  const wish = fc.record({ tokens: fc.nat(120), pico: fc.bigInt({ min: 0n, max: 600n }) })
  const wishes = fc.array(wish, { minLength: 1, maxLength: 12 })
  fc.assert(fc.property(world, wishes, fc.nat(DAY), (world, wishes, time) => {
    const { requestsPerMinute, tokensPerMinute, per } = world
    const clock = new FakeClock('2026-11-21T12:00:00Z', 1234.567)
    clock.advance(time)
    const own = { requestsPerMinute, tokensPerMinute, budget: { usd: '0.0000000005', per } }
    const key = { name: 'team', limits: limits(own) }
    const limiter = createLimiter({ defaults: null, compileGlob, clock })
    for (const estimate of wishes) {
      const ask = { key, model: null, estimate }
      const admission = limiter.admit(ask)
      if (admission.ok) {
        admission.reservation.settle(estimate)
        continue
      }
      const { retryAfterMs } = admission.refusal
      if (retryAfterMs === null) {
        const fits = estimate.tokens <= tokensPerMinute && estimate.pico <= BUDGET
        if (fits && per !== 'total') throw new Error('told never')
        continue
      }
      clock.advance(retryAfterMs - 1)
      if (limiter.admit(ask).ok) throw new Error('earlier than told')
      clock.advance(1)
      const later = limiter.admit(ask)
      if (!later.ok) throw new Error(`told ${retryAfterMs}, then ${later.refusal.which}`)
      later.reservation.settle(estimate)
    }
  }), { numRuns: 1000 })
})
