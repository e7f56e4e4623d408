import type { CapsuleKey } from '../base/secrets/capsule-keys.ts'
import type { StartupSettings } from '../config/startup-settings.ts'
import type { PassedShares } from '../pipeline/parts/gateway.ts'
import type { LimiterReplies, LimiterRequest } from '../limits/workers/lease-messages.ts'
import type { MetricsReport } from '../telemetry/worker-metrics.ts'
import type { ControlRequest } from './control.ts'

export interface Addresses {
  readonly base: string
  readonly console: string | null
  /** null = not served */
  readonly metrics: string | null
}

export interface Listening { readonly addresses: Addresses, readonly docs: string | null }

export interface WorkerStart {
  /** Of the active configuration: the file may have changed since. */
  readonly text: string
  readonly start: StartupSettings
  /** The key that all workers start with if no store has one. */
  readonly capsuleKey?: CapsuleKey
  /** true for one worker only */
  readonly reportsAlerts?: boolean
  /** The shares that the replaced worker saved. */
  readonly passedShares?: PassedShares['initial']
}

/** From the supervisor to a worker. */
export type SupervisorMessage =
  | { readonly kind: 'begin'; readonly beginning: WorkerStart }
  | { readonly kind: 'drain' | 'close' | 'reload' }
  | { readonly kind: 'limits'; readonly replies: LimiterReplies }
  /** Of the keys of all workers, picodollars. */
  | { readonly kind: 'spend'; readonly spend: ReadonlyMap<string, bigint> }
  /** Requests a report of the worker's metrics. */
  | { readonly kind: 'metrics' }
  /** The worker sends the result with the same id. */
  | { readonly kind: 'control'; readonly id: number; readonly request: ControlRequest }

/** From a worker to the supervisor. */
export type WorkerMessage =
  | { readonly kind: 'listening'; readonly listening: Listening }
  /** `drain`: from the configuration, ms. */
  | { readonly kind: 'reloaded'; readonly text: string; readonly drain: number }
  | { readonly kind: 'limits'; readonly requests: readonly LimiterRequest[] }
  | { readonly kind: 'metrics'; readonly report: MetricsReport }
  /** For the worker that replaces this one. */
  | { readonly kind: 'passed'; readonly shares: PassedShares['initial'] }
  | { readonly kind: 'control'; readonly id: number; readonly result: unknown }
