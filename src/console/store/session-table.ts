import type { DatabaseSync, StatementSync } from 'node:sqlite'

/** A session. Times are ms since 1970. */
export interface SessionRecord {
  readonly kind: 'user' | 'key' | 'oidc'
  /** Name of the user or the key; for single sign-on, the mail address or the subject. */
  readonly name: string
  /** What the login verified. If it is no longer valid, the session ends. */
  readonly credential: string
  readonly createdAt: number
  readonly seenAt: number
}

/** ms without a request after which a session ends. */
export const IDLE_TIMEOUT = 30 * 60_000
/** ms after the login at which a session ends. A working day limits the use of a stolen session. */
export const MAX_SESSION_AGE = 12 * 60 * 60_000
/** ms between two writes of `seenAt`. */
export const SEEN_AT_INTERVAL = 30_000
/** Maximum number of sessions. If there are more, the least recently used session is deleted. */
export const MAX_SESSIONS = 10_000
/** Maximum number of sessions of one user or key, so that many logins do not end the sessions of other users. */
export const MAX_SESSIONS_PER_LOGIN = 100

export class SessionTable {
  readonly #db: DatabaseSync
  readonly #find: StatementSync

  constructor(db: DatabaseSync) {
    this.#db = db
    this.#find = db.prepare('SELECT kind, name, credential, created_at, seen_at FROM sessions WHERE digest = ?')
  }

  open(digest: Uint8Array, session: Pick<SessionRecord, 'kind' | 'name' | 'credential'>, now: number): void {
    this.#db.prepare('DELETE FROM sessions WHERE seen_at < ? OR created_at < ? OR seen_at > ?').run(
      now - IDLE_TIMEOUT, now - MAX_SESSION_AGE, now + SEEN_AT_INTERVAL,
    )
    this.#db.prepare(`DELETE FROM sessions WHERE digest IN
      (SELECT digest FROM sessions WHERE kind = ? AND name = ? ORDER BY seen_at DESC LIMIT -1 OFFSET ?)`)
      .run(session.kind, session.name, MAX_SESSIONS_PER_LOGIN - 1)
    this.#db.prepare(`DELETE FROM sessions WHERE digest IN
      (SELECT digest FROM sessions ORDER BY seen_at DESC LIMIT -1 OFFSET ?)`).run(MAX_SESSIONS - 1)
    this.#db.prepare('INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?)').run(digest, session.kind, session.name, session.credential, now, now)
  }

  /** @param extend true if the user is active: the session is extended @returns null = there is no such session, or it has ended */
  find(digest: Uint8Array, now: number, extend: boolean): SessionRecord | null {
    const row = this.#find.get(digest)
    if (row === undefined) return null
    const session = sessionOf(row)
    // If the last use is in the future, the clock was set back, and the age of the session is unknown.
    if (now >= expiryOf(session) || session.seenAt > now + SEEN_AT_INTERVAL) {
      this.close(digest)
      return null
    }
    if (!extend || now - session.seenAt < SEEN_AT_INTERVAL) return session
    this.#db.prepare('UPDATE sessions SET seen_at = ? WHERE digest = ?').run(now, digest)
    return { ...session, seenAt: now }
  }

  close(digest: Uint8Array): void {
    this.#db.prepare('DELETE FROM sessions WHERE digest = ?').run(digest)
  }
}

/** @param row a row of the session table, in the file or in PostgreSQL */
export function sessionOf(row: Readonly<Record<string, unknown>>): SessionRecord {
  return {
    kind: row['kind'] as SessionRecord['kind'],
    name: String(row['name']),
    credential: String(row['credential']),
    createdAt: Number(row['created_at']),
    seenAt: Number(row['seen_at']),
  }
}

/** The time at which the session ends if there is no further request, in ms since 1970. */
export function expiryOf({ seenAt, createdAt }: SessionRecord): number {
  return Math.min(seenAt + IDLE_TIMEOUT, createdAt + MAX_SESSION_AGE)
}
