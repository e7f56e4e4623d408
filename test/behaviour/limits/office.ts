import { compileGlob } from '../../../src/config/glob.ts'
import type { Limits } from '../../../src/config/types.ts'
import { LimitsDesk } from '../../../src/limits/lease-server.ts'
import { createLimiter } from '../../../src/limits/limiter.ts'
import type { Request } from '../../../src/limits/messages.ts'
import { SharedLimiter } from '../../../src/limits/shared.ts'
import type { LimitsWindow } from '../../../src/limits/lease-connection.ts'
import { FakeClock } from '../../support/fake-clock.ts'

/** A worker's limiter, and its window at the desk. */
export interface Desked {
  readonly limiter: SharedLimiter
  readonly window: LimitsWindow
  /** What it has said so far, each message with all that was asked in one turn. */
  readonly said: (readonly Request[])[]
}

/** Workers with one desk; what they say to each other is copied, and comes later, as between processes. */
export function office(count: number, defaults: Limits | null = null) {
  const clock = new FakeClock()
  const desk = new LimitsDesk(createLimiter({ defaults: null, compileGlob, clock }), clock)
  const workers = Array.from({ length: count }, (): Desked => {
    const said: (readonly Request[])[] = []
    const window = desk.window(answers => {
      const copy = structuredClone(answers)
      setImmediate(() => limiter.receive(copy))
    })
    const limiter = new SharedLimiter(defaults, clock, requests => {
      said.push(requests)
      window.take(structuredClone(requests))
    })
    return { limiter, window, said }
  })
  return { workers, clock }
}
