import type { DatabaseSync, SQLOutputValue } from 'node:sqlite'

const AUDIT_ACTIONS = [
  'key.created', 'key.changed', 'key.rotated', 'key.revoked', 'key.blocked',
  'key.unblocked', 'login', 'login.refused', 'logout',
  'bodies.read', 'config.reloaded', 'config.rejected',
] as const

export interface AuditEvent {
  /** ms since 1970 */
  readonly at: number
  /** `console: ops`, `key: team-a`, `command line: root` */
  readonly actor: string
  /** Of whom it came from; null for the command line. */
  readonly address: string | null
  readonly action: (typeof AUDIT_ACTIONS)[number]
  /** The key that it is about. */
  readonly subject: string | null
  readonly detail: string | null
}

export interface StoredAuditEvent extends AuditEvent {
  /** Counts up. */
  readonly id: number
}

/** Who did something, for the audit list. */
export type Actor = Pick<AuditEvent, 'actor' | 'address'>

export const AUDIT_SCHEMA = `
  CREATE TABLE audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    address TEXT,
    action TEXT NOT NULL,
    subject TEXT,
    detail TEXT
  ) STRICT;
  CREATE INDEX audit_by_action ON audit (action, id);`

/**
 * Entries that are kept of each action and kind of actor, so that entries which anyone can cause without end remove
 * only their own kind.
 */
const MAX_EVENTS_PER_KIND = 10_000
/**
 * Users of the console and the command line; holders of keys, and clients that claim to be one; strangers at the login.
 */
const ACTOR_KINDS = [
  "actor NOT GLOB 'key: *' AND actor <> 'console: unknown'", "actor GLOB 'key: *'",
  "actor = 'console: unknown'",
] as const
const MAX_TEXT_LENGTH = 256

/** Entries between two looks for those beyond: a look goes over all that are kept. */
const TRIM_INTERVAL = 100

/**
 * Adds an entry, in the transaction that is open if one is; the
 * oldest of its like beyond those kept go now and then.
 */
export function recordAuditEvent(
  db: DatabaseSync, { at, actor, address, action, subject, detail }: AuditEvent,
): void {
  const { lastInsertRowid } = db
    .prepare('INSERT INTO audit (at, actor, address, action, subject, detail) VALUES (?, ?, ?, ?, ?, ?)')
    .run(at, truncateAuditText(actor), address, action, subject, detail && truncateAuditText(detail))
  if (Number(lastInsertRowid) % TRIM_INTERVAL !== 0) return
  // Of every action: one of two that take turns may never be the one at which it is looked.
  for (const kind of ACTOR_KINDS) {
    const trim = db.prepare(`DELETE FROM audit WHERE action = ? AND ${kind} AND id <=
      (SELECT id FROM audit WHERE action = ? AND ${kind} ORDER BY id DESC LIMIT 1 OFFSET ?)`)
    for (const each of AUDIT_ACTIONS) trim.run(each, each, MAX_EVENTS_PER_KIND)
  }
}

/**
 * The newest entries first.
 *
 * @param before an id: those that came before it; null = from the newest on
 */
export function readAuditEvents(db: DatabaseSync, before: number | null, count: number): StoredAuditEvent[] {
  return db.prepare('SELECT * FROM audit WHERE id < ? ORDER BY id DESC LIMIT ?')
    .all(before ?? Number.MAX_SAFE_INTEGER, count)
    .map(row => ({
      id: Number(row['id']),
      at: Number(row['at']),
      actor: String(row['actor']),
      address: textOf(row['address']),
      action: row['action'] as AuditEvent['action'],
      subject: textOf(row['subject']),
      detail: textOf(row['detail']),
    }))
}

function textOf(value: SQLOutputValue | undefined): string | null {
  return typeof value === 'string' ? value : null
}

/** Names that were tried at the login are anything that anybody sends. */
export function truncateAuditText(text: string): string {
  return text.length <= MAX_TEXT_LENGTH ? text : `${text.slice(0, MAX_TEXT_LENGTH)}…`
}
