import type { DatabaseSync } from 'node:sqlite'

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
  readonly subject: string | null
  readonly detail: string | null
}

export interface StoredAuditEvent extends AuditEvent { readonly id: number }

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

/** For each action and kind of actor: events that anyone can cause in any number displace only events of their own kind. */
const MAX_EVENTS_PER_KIND = 10_000
/** Users of the console and of the command line; holders of keys and clients that claim to be; unknown users at the login. */
const ACTOR_KINDS = [
  "actor NOT GLOB 'key: *' AND actor <> 'console: unknown'", "actor GLOB 'key: *'",
  "actor = 'console: unknown'",
] as const
const MAX_TEXT_LENGTH = 256

const TRIM_INTERVAL = 100

/** Adds an event, in the open transaction if there is one. Every TRIM_INTERVAL events, the oldest of each kind are deleted. */
export function recordAuditEvent(db: DatabaseSync, { at, actor, address, action, subject, detail }: AuditEvent): void {
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

/** Returns the newest events first. @param before only events older than the one with this id; null = all */
export function readAuditEvents(db: DatabaseSync, before: number | null, count: number): StoredAuditEvent[] {
  return db.prepare('SELECT * FROM audit WHERE id < ? ORDER BY id DESC LIMIT ?')
    .all(before ?? Number.MAX_SAFE_INTEGER, count)
    .map(row => ({ ...row }) as unknown as StoredAuditEvent)
}

/** A name that was tried at the login can be any text. */
export function truncateAuditText(text: string): string {
  return text.length <= MAX_TEXT_LENGTH ? text : `${text.slice(0, MAX_TEXT_LENGTH)}…`
}
