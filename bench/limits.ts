/**
 * The claim: what limits cost a request is of the order of a microsecond, and
 * does not grow with the number of keys.
 *
 *     node bench/limits.ts
 *
 * Prints nanoseconds per admission with its settlement, the median of several
 * runs; "in flight" is the number of requests that run meanwhile.
 */
import { systemClock } from '../src/base/clock.ts'
import { compileGlob } from '../src/config/glob.ts'
import type { Limits } from '../src/config/key-types.ts'
import { createLimiter } from '../src/limits/limiter.ts'
import type { LimitedKey, Reservation } from '../src/limits/types.ts'
import { median } from './lib/figures.ts'

const ROUNDS = 200_000
const RUNS = 7

const estimate = { tokens: 5000, pico: 40_000_000_000n }
const outcome = { tokens: 1200, pico: 9_000_000_000n }

const none = { requestsPerMinute: null, tokensPerMinute: null, concurrent: null, budget: null }
const all = {
  requestsPerMinute: 1e9,
  tokensPerMinute: 1e11,
  concurrent: 1e6,
  budget: { usd: '1000000000', per: 'month' as const },
}

const cases: [string, Limits | null][] = [
  ['no limits', null],
  ['requests', { ...none, requestsPerMinute: 1e9, models: new Map() }],
  ['all four', { ...all, models: new Map() }],
  ['all four, twice (one glob)', { ...all, models: new Map([['gpt-*', all]]) }],
]

/** Keys, and requests in flight. */
const sizes = [[1, 1], [1, 1000], [1, 10_000], [10_000, 1], [10_000, 10_000]] as const

const pad = (value: number, width: number) => String(value).padStart(width)

/** Nanoseconds per admit + settle, with `inFlight` requests open at any time, the oldest ending first. */
function measure(limits: Limits | null, keyCount: number, inFlight: number): number {
  const clock = { monotonic: () => performance.now(), wall: () => Date.now(), setTimeout: systemClock.setTimeout }
  const limiter = createLimiter({ defaults: null, compileGlob, clock })
  const keys: LimitedKey[] = Array.from({ length: keyCount }, (_, i) => ({ name: `key-${i}`, limits }))
  const open: (Reservation | undefined)[] = Array.from({ length: inFlight })
  // A stride that meets every key, in an order that no cache foresees.
  const pick = (i: number) => keys[(i * 7919) % keyCount] as LimitedKey

  const round = (i: number) => {
    const slot = i % inFlight
    open[slot]?.settle(outcome)
    const admission = limiter.admit({ key: pick(i), model: 'gpt-4.1-mini', estimate })
    if (!admission.ok) throw new Error(admission.refusal.message)
    open[slot] = admission.reservation
  }
  for (let i = 0; i < ROUNDS; i++) round(i)
  const times = Array.from({ length: RUNS }, () => {
    const start = performance.now()
    for (let i = 0; i < ROUNDS; i++) round(i)
    return (performance.now() - start) * 1e6 / ROUNDS
  })
  return median(times)
}

console.log('limits                        keys  in flight  ns/request')
for (const [name, limits] of cases) {
  for (const [keyCount, inFlight] of sizes) {
    const ns = Math.round(measure(limits, keyCount, inFlight))
    console.log(name.padEnd(26), pad(keyCount, 7), pad(inFlight, 10), pad(ns, 11))
  }
}
