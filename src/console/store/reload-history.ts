import { createHash } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import { truncateAuditText } from '../../auth/audit.ts'
import { transaction } from '../../base/files/sqlite-schema.ts'
import { maskedDiff, type DiffLine } from '../../config/text/masked-diff.ts'
import type { ReloadEvent } from '../../config/reload-event.ts'

/** A reload as a process reports it. Each entry of `problems` is a text with place and message. */
export interface ReportedReload extends Omit<ReloadEvent, 'problems'> {
  readonly problems: readonly string[]
}

/** A reload as it is stored, without secrets. */
export interface StoredReload extends Pick<ReportedReload, 'at' | 'applied' | 'by' | 'changes' | 'problems'> {
  /** The changed lines; null = a text is unreadable, or too many lines changed. */
  readonly diff: readonly DiffLine[] | null
}

export interface GatewayReload extends StoredReload {
  /** The name of the gateway; null = there is only one gateway. */
  readonly gateway: string | null
}

interface ReloadRecord {
  /** Time of the reload, in ms since 1970. */
  readonly at: number
  readonly digest: Uint8Array
  /** The `StoredReload` as JSON. */
  readonly data: string
}

/** Uses IF NOT EXISTS, because a file of version 2 may lack this table. A new version number would empty the other tables. */
export const RELOAD_SCHEMA = `
  CREATE TABLE IF NOT EXISTS reloads (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    digest BLOB NOT NULL,
    data TEXT NOT NULL
  ) STRICT;`

export const MAX_RELOADS = 20
/** Maximum number of changes, and of problems, that are stored for each reload. */
const MAX_TEXTS = 100
/** ms in which equal reports are from several workers and count as one reload. */
const SAME_WITHIN = 5_000

/** The reloads of all workers. A file keeps them while the gateway restarts. */
export class ReloadHistory {
  readonly #db: DatabaseSync

  constructor(db: DatabaseSync) {
    this.#db = db
  }

  /** @returns false = another worker has already reported this reload */
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

  /** The reloads, the newest first. */
  read(): StoredReload[] {
    return this.records().map(({ data }) => JSON.parse(data) as StoredReload)
  }

  /** The reloads as records of the table, the newest first. */
  records(): ReloadRecord[] {
    return this.#db.prepare('SELECT at, digest, data FROM reloads ORDER BY id DESC').all()
      .map(({ at, digest, data }) => ({ at: Number(at), digest: digest as Uint8Array, data: String(data) }))
  }

  #isKnown(digest: Uint8Array, at: number): boolean {
    return this.#db.prepare('SELECT 1 FROM reloads WHERE digest = ? AND abs(at - ?) < ?').get(digest, Math.round(at), SAME_WITHIN) !== undefined
  }
}
