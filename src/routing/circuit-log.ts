/** A failure of a candidate, for the operator. */
export interface CircuitFailure {
  /** ms since 1970 */
  readonly at: number
  /** `status 503 overloaded_error`, `connect_timeout`, `health check: status 500` */
  readonly reason: string
  /** null = no request failed, but a health check. */
  readonly requestId: string | null
}

/** The failures behind an open circuit: the first since it worked, and the latest. */
export interface CircuitCause {
  readonly first: CircuitFailure | null
  readonly last: CircuitFailure | null
}

/** A circuit has opened or closed. */
export interface CircuitChange extends CircuitCause {
  /** ms since 1970 */
  readonly at: number
  readonly upstream: string
  /** null = no request named one, or the whole upstream fails its health checks. */
  readonly model: string | null
  readonly state: 'open' | 'closed'
  /** Failures in a row until then. */
  readonly failures: number
}

type Listener = (change: CircuitChange) => void

/** Changes that are kept in memory. */
const MAX_CHANGES = 200

/** The latest changes of the circuits of this process, and who wants to hear of the next. */
export class CircuitLog {
  readonly #changes: CircuitChange[] = []
  readonly #listeners = new Set<Listener>()

  /** The oldest first. */
  get changes(): readonly CircuitChange[] {
    return this.#changes
  }

  add(change: CircuitChange): void {
    this.#changes.push(change)
    if (this.#changes.length > MAX_CHANGES) this.#changes.shift()
    for (const listener of this.#listeners) listener(change)
  }

  /** @param listener must not throw */
  subscribe(listener: Listener): void {
    this.#listeners.add(listener)
  }
}
