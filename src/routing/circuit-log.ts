import type { WallTime } from '../base/clock.ts'
import { EventLog } from '../base/event-log.ts'

/** A failure of a candidate, as the operator sees it. */
export interface CircuitFailure {
  readonly at: WallTime
  /** For example `status 503 overloaded_error`, `connect_timeout` or `health check: status 500`. */
  readonly reason: string
  /** The request that failed; null = a health check failed. */
  readonly requestId: string | null
}

/** The failures that opened a circuit: the first failure since the last success, and the latest failure. */
export interface CircuitCause {
  readonly first: CircuitFailure | null
  readonly last: CircuitFailure | null
}

export interface CircuitChange extends CircuitCause {
  readonly at: WallTime
  readonly upstream: string
  /** null = the request had no model, or the upstream fails its health checks. */
  readonly model: string | null
  readonly state: 'open' | 'closed'
  /** Consecutive failures. */
  readonly failures: number
}

const MAX_CHANGES = 200

/** The latest circuit changes in this process. */
export class CircuitLog extends EventLog<CircuitChange> {
  constructor() {
    super(MAX_CHANGES)
  }
}
