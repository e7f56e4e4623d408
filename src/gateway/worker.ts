import cluster from 'node:cluster'
import type { CapsuleKey } from '../base/secrets/capsule-keys.ts'
import { systemClock } from '../base/clock.ts'
import type { Limits } from '../config/key-types.ts'
import type { PassedShares } from '../pipeline/parts/gateway.ts'
import type { Limiter } from '../limits/types.ts'
import { WorkerLimiter } from '../limits/workers/worker-limiter.ts'
import type { MetricsReport } from '../telemetry/worker-metrics.ts'
import type { ControlRequest } from './control.ts'
import type { WorkerStart, Listening, SupervisorMessage, WorkerMessage } from './worker-messages.ts'

export interface WorkerCommands {
  drain(): void
  close(): void
  reload(): void
  /** @returns ProcessStatus[] or ReloadReport */
  control(request: ControlRequest): Promise<unknown>
  /** null = this process has no telemetry. */
  metricsReport(): Promise<MetricsReport> | null
}

/** A worker's channel to its supervisor. If the channel closes, node:cluster ends the worker. */
export interface SupervisorChannel {
  /** Number of the worker, from 1. A worker that replaces another has a new number. */
  readonly worker: number
  readonly workerStart: Promise<WorkerStart>
  handleCommands(commands: WorkerCommands): void
  listening(listening: Listening): void
  /** Reports that a configuration with this text and this `server.drain` (ms) is active. */
  reloaded(text: string, drain: number): void
  /** Resolves when the report has been passed to the operating system. */
  sendMetrics(report: MetricsReport): Promise<void>
  /** After this call, the channel does not keep the process alive. */
  release(): void
  /** The spend of all workers by key, in picodollars; null = not known yet, or another worker reports alerts. */
  budgetSpend(): ReadonlyMap<string, bigint> | null
  /** The supervisor stores the shares for a worker that replaces this worker. Read them after `workerStart` has resolved. */
  readonly passedShares: PassedShares
  /** The same key in all workers. Read it after `workerStart` has resolved. */
  readonly capsuleKey: CapsuleKey | undefined
  /** Opens a limiter that shares its limits with all workers. */
  openLimiter(defaults: Limits | null): Limiter
}

/** @returns null = this process is not a worker */
export function connectToSupervisor(): SupervisorChannel | null {
  const { worker } = cluster
  if (worker === undefined) return null
  // Ignore signals, because terminals and some process managers signal the whole process group: only the supervisor reacts.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined)
  const report = (what: WorkerMessage): void => void (worker.isConnected() && worker.send(what))
  const sendMetrics = (metrics: MetricsReport): Promise<void> => new Promise(resolve => {
    if (!worker.isConnected()) return resolve()
    const message: WorkerMessage = { kind: 'metrics', report: metrics }
    worker.send(message, () => resolve())
  })
  let limiter: WorkerLimiter | null = null
  let handler: WorkerCommands | null = null
  let isStale = false
  let spend: ReadonlyMap<string, bigint> | null = null
  let passedBefore: PassedShares['initial'] = null
  let capsuleKey: CapsuleKey | undefined
  const beginning = Promise.withResolvers<WorkerStart>()
  process.on('message', (order: SupervisorMessage) => {
    if (order.kind === 'begin') {
      passedBefore = order.beginning.passedShares ?? null
      capsuleKey = order.beginning.capsuleKey
      beginning.resolve(order.beginning)
    } else if (order.kind === 'limits') limiter?.receive(order.replies)
    else if (order.kind === 'spend') spend = order.spend
    else if (order.kind === 'metrics') void handler?.metricsReport()?.then(sendMetrics)
    else if (order.kind === 'control') void handler?.control(order.request).then(result => report({ kind: 'control', id: order.id, result }))
    else if (handler !== null) handler[order.kind]()
    else if (order.kind === 'reload') isStale = true
    // No client is served yet, so exit at once.
    else process.exit()
  })
  return {
    worker: worker.id,
    workerStart: beginning.promise,
    handleCommands: commands => {
      handler = commands
      if (isStale) commands.reload()
    },
    listening: listening => report({ kind: 'listening', listening }),
    reloaded: (text, drain) => report({ kind: 'reloaded', text, drain }),
    sendMetrics,
    budgetSpend: () => spend,
    passedShares: { get initial() { return passedBefore }, save: shares => report({ kind: 'passed', shares }) },
    get capsuleKey() { return capsuleKey },
    release: () => process.channel?.unref(),
    openLimiter: defaults => (limiter = new WorkerLimiter(defaults, systemClock, requests => report({ kind: 'limits', requests }))),
  }
}
