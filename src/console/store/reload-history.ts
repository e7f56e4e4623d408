import { createHash } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import { truncateAuditText } from '../../auth/audit.ts'
import { transaction } from '../../base/sqlite-schema.ts'
import { maskedDiff } from '../../config/masked-diff.ts'
import type { DiffLine } from '../../config/masked-diff.ts'
import type { ReloadEvent } from '../../config/reload-event.ts'

/** A reload that a process reports, with places and messages as text. */
export interface ReportedReload extends Omit<ReloadEvent, 'problems'> {
  readonly problems: readonly string[]
}

/** A reload of the past, without secrets. */
export interface StoredReload extends Pick<ReportedReload, 'at' | 'applied' | 'by' | 'changes' | 'problems'> {
  /** null where there is none: the file could not be read, or too much differs. */
  readonly diff: readonly DiffLine[] | null
}

/** A table that version 2 of the file may lack: it is made without a new version, which would empty the others. */
export const RELOAD_SCHEMA = `
  CREATE TABLE IF NOT EXISTS reloads (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    digest BLOB NOT NULL,
    data TEXT NOT NULL
  ) STRICT;`

/** Reloads that are kept. */
const MAX_RELOADS = 20
/** Changes and problems that are kept of each. */
const MAX_TEXTS = 100
/** ms within which the same reload of several workers is one. */
const SAME_WITHIN = 5_000

/** The last reloads of all workers, for longer than the process runs. */
export class ReloadHistory {
  readonly #db: DatabaseSync

  constructor(db: DatabaseSync) {
    this.#db = db
  }

  /** @returns false where another worker has reported it */
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
    return this.#db.prepare('SELECT data FROM reloads ORDER BY id DESC').all().map(({ data }) => JSON.parse(String(data)) as StoredReload)
  }

  #isKnown(digest: Uint8Array, at: number): boolean {
    return this.#db.prepare('SELECT 1 FROM reloads WHERE digest = ? AND abs(at - ?) < ?').get(digest, Math.round(at), SAME_WITHIN) !== undefined
  }
}
