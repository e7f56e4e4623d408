import cluster from 'node:cluster'
import { systemClock } from '../base/clock.ts'
import type { Limits } from '../config/types.ts'
import { SharedLimiter } from '../limits/shared.ts'
import type { Limiter } from '../limits/types.ts'
import type { WorkerStart, Listening, SupervisorMessage, WorkerMessage } from './worker-messages.ts'

/** What a worker can be told to do. */
export interface WorkerCommands {
  drain(): void
  close(): void
  reload(): void
}

/** A worker's line to its supervisor. When that ends, so does the worker, by what node:cluster does. */
export interface SupervisorChannel {
  /** Which of the workers this is, from 1; a successor has a number of its own. */
  readonly worker: number
  /** What it is to begin with. */
  readonly workerStart: Promise<WorkerStart>
  /** From now on orders are followed. */
  handleCommands(orders: WorkerCommands): void
  listening(listening: Listening): void
  /** A configuration with this text, and this `server.drain`, has been put in force. */
  reloaded(text: string, drain: number): void
  /** The line alone does not keep the process alive any more. */
  release(): void
  /** A limiter whose limits are those of all workers. */
  openLimiter(defaults: Limits | null): Limiter
}

/** @returns null in a process that is no worker */
export function connectToSupervisor(): SupervisorChannel | null {
  const { worker } = cluster
  if (worker === undefined) return null
  // A terminal and some supervisors send signals to every process of a group: they concern the first.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined)
  const report = (what: WorkerMessage): void => void (worker.isConnected() && worker.send(what))
  let limiter: SharedLimiter | null = null
  let following: WorkerCommands | null = null
  let isStale = false
  const beginning = Promise.withResolvers<WorkerStart>()
  process.on('message', (order: SupervisorMessage) => {
    if (order.kind === 'begin') beginning.resolve(order.beginning)
    else if (order.kind === 'limits') limiter?.receive(order.answers)
    else if (following !== null) following[order.kind]()
    else if (order.kind === 'reload') isStale = true
    // It serves nobody yet.
    else process.exit()
  })
  return {
    worker: worker.id,
    workerStart: beginning.promise,
    handleCommands: orders => {
      following = orders
      if (isStale) orders.reload()
    },
    listening: listening => report({ kind: 'listening', listening }),
    reloaded: (text, drain) => report({ kind: 'reloaded', text, drain }),
    release: () => process.channel?.unref(),
    openLimiter: defaults => (
      limiter = new SharedLimiter(defaults, systemClock, requests => report({ kind: 'limits', requests }))
    ),
  }
}
