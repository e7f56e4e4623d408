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
  /** Address of the actor; null = the command line. */
  readonly address: string | null
  readonly action: (typeof AUDIT_ACTIONS)[number]
  /** The key of the event. */
  readonly subject: string | null
  readonly detail: string | null
}

export interface StoredAuditEvent extends AuditEvent {
  /** Ascending. */
  readonly id: number
}

/** Who did something. */
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
 * Number of events that are kept for each action and kind of actor. So events that anyone can cause in any number
 * displace only events of their own kind.
 */
const MAX_EVENTS_PER_KIND = 10_000
/**
 * Kinds: users of the console and of the command line; holders of keys, and clients that claim to have a key; unknown
 * users at the login.
 */
const ACTOR_KINDS = [
  "actor NOT GLOB 'key: *' AND actor <> 'console: unknown'", "actor GLOB 'key: *'",
  "actor = 'console: unknown'",
] as const
const MAX_TEXT_LENGTH = 256

/** Number of new events between two trims: a trim reads all events. */
const TRIM_INTERVAL = 100

/**
 * Adds an event, in the open transaction if there is one. Every TRIM_INTERVAL events it deletes the oldest events of each
 * kind.
 */
export function recordAuditEvent(
  db: DatabaseSync, { at, actor, address, action, subject, detail }: AuditEvent,
): void {
  const { lastInsertRowid } = db
    .prepare('INSERT INTO audit (at, actor, address, action, subject, detail) VALUES (?, ?, ?, ?, ?, ?)')
    .run(at, truncateAuditText(actor), address, action, subject, detail && truncateAuditText(detail))
  if (Number(lastInsertRowid) % TRIM_INTERVAL !== 0) return
  // Trim every action: with two alternating actions, one may never be the hundredth.
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

/** Names that were tried at the login can be any text. */
export function truncateAuditText(text: string): string {
  return text.length <= MAX_TEXT_LENGTH ? text : `${text.slice(0, MAX_TEXT_LENGTH)}…`
}
