import { compileGlob } from '../../../src/config/glob.ts'
import type { Limits } from '../../../src/config/key-types.ts'
import { createLimiter } from '../../../src/limits/limiter.ts'
import type { LocalLimiter } from '../../../src/limits/limiter.ts'
import type { LimitedKey, LimitRefusal, Reservation } from '../../../src/limits/types.ts'
import { FakeClock } from '../../support/fake-clock.ts'

/** 1 USD in 1e-12 USD. */
export const USD = 10n ** 12n

/** A limiter and its FakeClock, by default at noon. */
export function setUp(defaults: Limits | null = null, date = '2026-11-21T12:00:00Z') {
  const clock = new FakeClock(date, 1234.567)
  return { clock, limiter: createLimiter({ defaults, compileGlob, clock }) }
}

/** A key with its own limits. */
export function key(own: Limits | null, name = 'team'): LimitedKey {
  return { name, limits: own }
}

/** A request; by default for a model with a price, without tokens and cost. */
export interface Wish {
  model?: string | null
  tokens?: number
  pico?: bigint | null
}

/** Asks the limiter, and fails if the request is refused. */
export function admitted(limiter: LocalLimiter, key: LimitedKey, wish: Wish = {}): Reservation {
  const admission = ask(limiter, key, wish)
  if (!admission.ok) throw new Error(`refused: ${admission.refusal.message}`)
  return admission.reservation
}

/** Asks the limiter, and fails if the request is admitted. */
export function refused(limiter: LocalLimiter, key: LimitedKey, wish: Wish = {}): LimitRefusal {
  const admission = ask(limiter, key, wish)
  if (admission.ok) throw new Error('admitted')
  return admission.refusal
}

function ask(limiter: LocalLimiter, key: LimitedKey, { model = 'gpt-4.1', tokens = 0, pico = 0n }: Wish) {
  return limiter.admit({ key, model, estimate: { tokens, pico } })
}
