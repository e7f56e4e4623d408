import type { CapsuleKey } from '../base/secrets/capsule-keys.ts'
import type { StartupSettings } from '../config/startup-settings.ts'
import type { PassedShares } from '../pipeline/parts/gateway.ts'
import type { LimiterReplies, LimiterRequest } from '../limits/workers/lease-messages.ts'
import type { MetricsReport } from '../telemetry/worker-metrics.ts'
import type { ControlRequest } from './control.ts'

export interface Addresses {
  readonly base: string
  readonly console: string | null
  /** URL for Prometheus; null = none. */
  readonly metrics: string | null
}

export interface Listening { readonly addresses: Addresses, readonly docs: string | null }

export interface WorkerStart {
  /** The text of the active configuration. The file may have changed since it was read. */
  readonly text: string
  readonly start: StartupSettings
  /** The first capsule key of all workers if no store has a key. */
  readonly capsuleKey?: CapsuleKey
  /** true for the one worker that reports alerts. */
  readonly reportsAlerts?: boolean
  /** The shares of budgets that the previous worker saved. */
  readonly passedShares?: PassedShares['initial']
}

/** A message from the supervisor to a worker. */
export type SupervisorMessage =
  | { readonly kind: 'begin'; readonly beginning: WorkerStart }
  | { readonly kind: 'drain' | 'close' | 'reload' }
  | { readonly kind: 'limits'; readonly replies: LimiterReplies }
  /** The spend of all workers, by key, in picodollars. */
  | { readonly kind: 'spend'; readonly spend: ReadonlyMap<string, bigint> }
  /** Requests a report of the worker's metrics. */
  | { readonly kind: 'metrics' }
  /** A control request. The worker sends the result with the same id. */
  | { readonly kind: 'control'; readonly id: number; readonly request: ControlRequest }

/** A message from a worker to the supervisor. */
export type WorkerMessage =
  | { readonly kind: 'listening'; readonly listening: Listening }
  /** `drain` is `server.drain` of the new configuration, in ms. */
  | { readonly kind: 'reloaded'; readonly text: string; readonly drain: number }
  | { readonly kind: 'limits'; readonly requests: readonly LimiterRequest[] }
  | { readonly kind: 'metrics'; readonly report: MetricsReport }
  /** Shares of budgets, for the worker that replaces this worker. */
  | { readonly kind: 'passed'; readonly shares: PassedShares['initial'] }
  | { readonly kind: 'control'; readonly id: number; readonly result: unknown }
