import type { WallTime } from '../base/clock.ts'
import { EventLog } from '../base/event-log.ts'

/** A failure of a candidate, for the operator. */
export interface CircuitFailure {
  readonly at: WallTime
  /** `status 503 overloaded_error`, `connect_timeout`, `health check: status 500` */
  readonly reason: string
  /** null = a health check failed, not a request. */
  readonly requestId: string | null
}

/** The failures behind an open circuit: the first since the last success, and the latest. */
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

/** The latest changes of this process. */
export class CircuitLog extends EventLog<CircuitChange> {
  constructor() {
    super(MAX_CHANGES)
  }
}
