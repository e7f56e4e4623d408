import cluster from 'node:cluster'
import { systemClock } from '../base/clock.ts'
import type { Limits } from '../config/types.ts'
import { SharedLimiter } from '../limits/shared.ts'
import type { Limiter } from '../limits/types.ts'
import type { Beginning, Listening, Order, Report } from './worker-messages.ts'

/** What a worker can be told to do. */
export interface Orders {
  drain(): void
  close(): void
  reload(): void
}

/** A worker's line to its supervisor. When that ends, so does the worker, by what node:cluster does. */
export interface Line {
  /** Which of the workers this is, from 1; a successor has a number of its own. */
  readonly worker: number
  /** What it is to begin with. */
  readonly beginning: Promise<Beginning>
  /** From now on orders are followed. */
  follow(orders: Orders): void
  listening(listening: Listening): void
  /** A configuration with this text, and this `server.drain`, has been put in force. */
  reloaded(text: string, drain: number): void
  /** The line alone does not keep the process alive any more. */
  letGo(): void
  /** A limiter whose limits are those of all workers. */
  openLimiter(defaults: Limits | null): Limiter
}

/** @returns null in a process that is no worker */
export function lineToSupervisor(): Line | null {
  const { worker } = cluster
  if (worker === undefined) return null
  // A terminal and some supervisors send signals to every process of a group: they concern the first.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined)
  const report = (what: Report): void => void (worker.isConnected() && worker.send(what))
  let limiter: SharedLimiter | null = null
  let following: Orders | null = null
  let isStale = false
  const beginning = Promise.withResolvers<Beginning>()
  process.on('message', (order: Order) => {
    if (order.kind === 'begin') beginning.resolve(order.beginning)
    else if (order.kind === 'limits') limiter?.receive(order.answers)
    else if (following !== null) following[order.kind]()
    else if (order.kind === 'reload') isStale = true
    // It serves nobody yet.
    else process.exit()
  })
  return {
    worker: worker.id,
    beginning: beginning.promise,
    follow: orders => {
      following = orders
      if (isStale) orders.reload()
    },
    listening: listening => report({ kind: 'listening', listening }),
    reloaded: (text, drain) => report({ kind: 'reloaded', text, drain }),
    letGo: () => process.channel?.unref(),
    openLimiter: defaults => (
      limiter = new SharedLimiter(defaults, systemClock, requests => report({ kind: 'limits', requests }))
    ),
  }
}
