import { createHash } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import { truncateAuditText } from '../../auth/audit.ts'
import { transaction } from '../../base/files/sqlite-schema.ts'
import { maskedDiff, type DiffLine } from '../../config/text/masked-diff.ts'
import type { ReloadEvent } from '../../config/reload-event.ts'

/** Reported by a process. `problems`: place and message as text. */
export interface ReportedReload extends Omit<ReloadEvent, 'problems'> {
  readonly problems: readonly string[]
}

/** Without secrets. */
export interface StoredReload extends Pick<ReportedReload, 'at' | 'applied' | 'by' | 'changes' | 'problems'> {
  /** null = unreadable, or too much changed */
  readonly diff: readonly DiffLine[] | null
}

export interface GatewayReload extends StoredReload {
  /** Name of the gateway; null = there is one gateway. */
  readonly gateway: string | null
}

interface ReloadRecord {
  /** ms since 1970 */
  readonly at: number
  readonly digest: Uint8Array
  /** A StoredReload as JSON. */
  readonly data: string
}

/** A file of version 2 may lack this table: a new version number would empty the other tables. */
export const RELOAD_SCHEMA = `
  CREATE TABLE IF NOT EXISTS reloads (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    digest BLOB NOT NULL,
    data TEXT NOT NULL
  ) STRICT;`

export const MAX_RELOADS = 20
/** Stored changes, and stored problems, of each reload. */
const MAX_TEXTS = 100
/** ms; equal reports within this time are one reload of several workers */
const SAME_WITHIN = 5_000

/** Of all workers. Survives restarts. */
export class ReloadHistory {
  readonly #db: DatabaseSync

  constructor(db: DatabaseSync) {
    this.#db = db
  }

  /** @returns false = another worker has already reported it */
  add({ at, applied, by, before, text, changes, problems }: ReportedReload): boolean {
    const digest = createHash('sha256').update(JSON.stringify([applied, before, text, changes, problems])).digest()
    if (this.#isKnown(digest, at)) return false
    const stored: StoredReload = {
      at, applied, by: truncateAuditText(by),
      changes: changes.slice(0, MAX_TEXTS), problems: problems.slice(0, MAX_TEXTS), diff: text === null ? null : maskedDiff(before, text),
    }
    return transaction(this.#db, () => {
      if (this.#isKnown(digest, at)) return false
      this.#db.prepare('INSERT INTO reloads (at, digest, data) VALUES (?, ?, ?)').run(Math.round(at), digest, JSON.stringify(stored))
      this.#db.prepare('DELETE FROM reloads WHERE id <= (SELECT max(id) FROM reloads) - ?').run(MAX_RELOADS)
      return true
    })
  }

  /** Newest first. */
  read(): StoredReload[] {
    return this.records().map(({ data }) => JSON.parse(data) as StoredReload)
  }

  /** Newest first. */
  records(): ReloadRecord[] {
    return this.#db.prepare('SELECT at, digest, data FROM reloads ORDER BY id DESC').all()
      .map(({ at, digest, data }) => ({ at: Number(at), digest: digest as Uint8Array, data: String(data) }))
  }

  #isKnown(digest: Uint8Array, at: number): boolean {
    return this.#db.prepare('SELECT 1 FROM reloads WHERE digest = ? AND abs(at - ?) < ?').get(digest, Math.round(at), SAME_WITHIN) !== undefined
  }
}
