import type { DatabaseSync } from 'node:sqlite'
import type { CircuitChange } from '../../routing/circuit-log.ts'

/** A change of a circuit. `worker` is the number of the process; 0 = there is one process. */
export interface StoredCircuitChange extends CircuitChange {
  readonly worker: number
}

/** Uses IF NOT EXISTS, because a file of version 2 may lack this table. A new version number would empty the other tables. */
export const CIRCUIT_SCHEMA = `
  CREATE TABLE IF NOT EXISTS circuit_changes (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    upstream TEXT NOT NULL,
    data TEXT NOT NULL
  ) STRICT;
  CREATE INDEX IF NOT EXISTS circuit_changes_by_upstream ON circuit_changes (upstream, at);`

/** Maximum number of changes: as many as three circuits make that open and close every minute for a day. */
const MAX_CHANGES = 10_000
/** Number of additions after which old changes are deleted. */
const TRIM_INTERVAL = 100

/** The changes of circuits. A file keeps them while the gateway restarts. */
export class CircuitHistory {
  readonly #db: DatabaseSync

  constructor(db: DatabaseSync) {
    this.#db = db
  }

  add(change: StoredCircuitChange): void {
    const { lastInsertRowid } = this.#db.prepare('INSERT INTO circuit_changes (at, upstream, data) VALUES (?, ?, ?)')
      .run(Math.round(change.at), change.upstream, JSON.stringify(change))
    if (Number(lastInsertRowid) % TRIM_INTERVAL !== 0) return
    this.#db.prepare('DELETE FROM circuit_changes WHERE id <= (SELECT max(id) FROM circuit_changes) - ?').run(MAX_CHANGES)
  }

  /**
   * The changes of an upstream's circuits, the oldest first. Includes the last change of each circuit before the period.
   * @param from ms since 1970
   * @param to ms since 1970
   */
  read(upstream: string, from: number, to: number): StoredCircuitChange[] {
    const changes = this.#db.prepare('SELECT data FROM circuit_changes WHERE upstream = ? AND at < ? ORDER BY id')
      .all(upstream, Math.ceil(to))
      .map(({ data }) => JSON.parse(String(data)) as StoredCircuitChange)
    const before = new Map(changes.filter(({ at }) => at < from).map(change => [`${change.worker} ${change.model}`, change]))
    return [...before.values(), ...changes.filter(({ at }) => at >= from)]
  }
}
