import { createHash } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import { truncateAuditText } from '../../auth/audit.ts'
import { transaction } from '../../base/files/sqlite-schema.ts'
import { maskedDiff } from '../../config/text/masked-diff.ts'
import type { DiffLine } from '../../config/text/masked-diff.ts'
import type { ReloadEvent } from '../../config/reload-event.ts'

/** A reload reported by a process, with places and messages as text. */
export interface ReportedReload extends Omit<ReloadEvent, 'problems'> {
  readonly problems: readonly string[]
}

/** A stored reload, without secrets. */
export interface StoredReload extends Pick<ReportedReload, 'at' | 'applied' | 'by' | 'changes' | 'problems'> {
  /** null = the file could not be read, or too much changed. */
  readonly diff: readonly DiffLine[] | null
}

/** A reload of one of several gateways. */
export interface GatewayReload extends StoredReload {
  /** The name of the gateway; null = there is only one. */
  readonly gateway: string | null
}

/** A row of the table of reloads. */
export interface ReloadRecord {
  /** ms since 1970 */
  readonly at: number
  readonly digest: Uint8Array
  /** A StoredReload as JSON. */
  readonly data: string
}

/** A table that a file of version 2 may lack. It is added without a new version, which would empty the other tables. */
export const RELOAD_SCHEMA = `
  CREATE TABLE IF NOT EXISTS reloads (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    digest BLOB NOT NULL,
    data TEXT NOT NULL
  ) STRICT;`

/** Reloads that are kept. */
export const MAX_RELOADS = 20
/** Changes and problems that are kept of each. */
const MAX_TEXTS = 100
/** ms within which equal reports of several workers are one reload. */
const SAME_WITHIN = 5_000

/** The last reloads of all workers, kept over restarts. */
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

  /** The newest first. */
  read(): StoredReload[] {
    return this.records().map(({ data }) => JSON.parse(data) as StoredReload)
  }

  /** The newest first. */
  records(): ReloadRecord[] {
    return this.#db.prepare('SELECT at, digest, data FROM reloads ORDER BY id DESC').all()
      .map(({ at, digest, data }) => ({ at: Number(at), digest: digest as Uint8Array, data: String(data) }))
  }

  #isKnown(digest: Uint8Array, at: number): boolean {
    return this.#db.prepare('SELECT 1 FROM reloads WHERE digest = ? AND abs(at - ?) < ?').get(digest, Math.round(at), SAME_WITHIN) !== undefined
  }
}
