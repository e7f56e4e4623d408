import { compileGlob } from '../../../src/config/glob.ts'
import type { Limits } from '../../../src/config/types.ts'
import type { LeaseConnection } from '../../../src/limits/lease-connection.ts'
import type { LimiterRequest } from '../../../src/limits/lease-messages.ts'
import { LeaseServer } from '../../../src/limits/lease-server.ts'
import { createLimiter } from '../../../src/limits/limiter.ts'
import { WorkerLimiter } from '../../../src/limits/worker-limiter.ts'
import { FakeClock } from '../../support/fake-clock.ts'

/** A worker's limiter, and its window at the desk. */
export interface Desked {
  readonly limiter: WorkerLimiter
  readonly window: LeaseConnection
  /** What it has said so far, each message with all that was asked in one turn. */
  readonly said: (readonly LimiterRequest[])[]
}

/** Workers with one desk; what they say to each other is copied, and comes later, as between processes. */
export function connectedWorkers(count: number, defaults: Limits | null = null) {
  const clock = new FakeClock()
  const desk = new LeaseServer(createLimiter({ defaults: null, compileGlob, clock }), clock)
  const workers = Array.from({ length: count }, (): Desked => {
    const said: (readonly LimiterRequest[])[] = []
    const window = desk.connect(answers => {
      const copy = structuredClone(answers)
      setImmediate(() => limiter.receive(copy))
    })
    const limiter = new WorkerLimiter(defaults, clock, requests => {
      said.push(requests)
      window.handle(structuredClone(requests))
    })
    return { limiter, window, said }
  })
  return { workers, clock }
}
