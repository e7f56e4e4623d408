import { compileGlob } from '../../../src/config/glob.ts'
import type { Limits } from '../../../src/config/key-types.ts'
import type { LeaseConnection } from '../../../src/limits/workers/lease-connection.ts'
import type { LimiterRequest } from '../../../src/limits/workers/lease-messages.ts'
import { LeaseServer } from '../../../src/limits/workers/lease-server.ts'
import { createLimiter } from '../../../src/limits/limiter.ts'
import { WorkerLimiter } from '../../../src/limits/workers/worker-limiter.ts'
import { FakeClock } from '../../support/fake-clock.ts'

/** The limiter of a worker, and the connection of that worker to the lease server. */
export interface ConnectedWorker {
  readonly limiter: WorkerLimiter
  readonly connection: LeaseConnection
  /** All sent messages; each has the requests of one turn of the event loop. */
  readonly sent: (readonly LimiterRequest[])[]
}

/** Workers with one lease server. Messages are copied and arrive later, as between processes. */
export function connectedWorkers(count: number, defaults: Limits | null = null) {
  const clock = new FakeClock()
  const server = new LeaseServer(createLimiter({ defaults: null, compileGlob, clock }), clock)
  const workers = Array.from({ length: count }, (): ConnectedWorker => {
    const sent: (readonly LimiterRequest[])[] = []
    const connection = server.connect(replies => {
      const copy = structuredClone(replies)
      setImmediate(() => limiter.receive(copy))
    })
    const limiter = new WorkerLimiter(defaults, clock, requests => {
      sent.push(requests)
      connection.handle(structuredClone(requests))
    })
    return { limiter, connection, sent }
  })
  return { workers, clock }
}
