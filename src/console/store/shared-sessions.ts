import type { ConsoleDatabase } from './console-database.ts'
import { expiryOf, IDLE_TIMEOUT, MAX_SESSION_AGE, MAX_SESSIONS, MAX_SESSIONS_PER_LOGIN, SEEN_AT_INTERVAL, sessionOf } from './session-table.ts'
import type { SessionRecord } from './session-table.ts'

/** The console's sessions of all gateways, in PostgreSQL. */
export class SharedSessions {
  readonly #database: ConsoleDatabase

  constructor(database: ConsoleDatabase) {
    this.#database = database
  }

  /** @returns false = PostgreSQL is unreachable */
  async open(digest: Uint8Array, { kind, name, credential }: Pick<SessionRecord, 'kind' | 'name' | 'credential'>, now: number): Promise<boolean> {
    return await this.#database.ask(async () => {
      await this.#query('DELETE FROM gateway.console_sessions WHERE seen_at < $1 OR created_at < $2', [now - IDLE_TIMEOUT, now - MAX_SESSION_AGE])
      const trim = (condition: string, kept: number, values: readonly unknown[]) => this.#query(`DELETE FROM gateway.console_sessions
        WHERE digest IN (SELECT digest FROM gateway.console_sessions WHERE ${condition} ORDER BY seen_at DESC OFFSET ${kept})`, values)
      await trim('kind = $1 AND name = $2', MAX_SESSIONS_PER_LOGIN - 1, [kind, name])
      await trim('TRUE', MAX_SESSIONS - 1, [])
      await this.#query('INSERT INTO gateway.console_sessions VALUES ($1, $2, $3, $4, $5, $5)', [digest, kind, name, credential, now])
      return true
    }) ?? false
  }

  /**
   * @param extend true if the user is active: the session is extended
   * @returns null = no such session, an ended session, or PostgreSQL is unreachable
   */
  find(digest: Uint8Array, now: number, extend: boolean): Promise<SessionRecord | null> {
    return this.#database.ask(async () => {
      const [row] = await this.#query('SELECT * FROM gateway.console_sessions WHERE digest = $1', [digest])
      if (row === undefined) return null
      const session = sessionOf(row)
      // Unlike in `SessionTable`, a last use in the future is valid, because the clock of another gateway may be ahead.
      if (now >= expiryOf(session)) {
        await this.#delete(digest)
        return null
      }
      if (!extend || now - session.seenAt < SEEN_AT_INTERVAL) return session
      await this.#query('UPDATE gateway.console_sessions SET seen_at = greatest(seen_at, $2) WHERE digest = $1', [digest, now])
      return { ...session, seenAt: now }
    })
  }

  async close(digest: Uint8Array): Promise<void> {
    await this.#database.ask(() => this.#delete(digest))
  }

  /** @param own used as the secret of all gateways if they have none @returns hexadecimal; null = PostgreSQL is unreachable */
  secret(own: string): Promise<string | null> {
    return this.#database.ask(async () => {
      const name = 'console_secret'
      await this.#query('INSERT INTO gateway.settings VALUES ($1, $2) ON CONFLICT (name) DO NOTHING', [name, own])
      const [row] = await this.#query('SELECT value FROM gateway.settings WHERE name = $1', [name])
      return String(row?.['value'])
    })
  }

  #delete(digest: Uint8Array) {
    return this.#query('DELETE FROM gateway.console_sessions WHERE digest = $1', [digest])
  }

  #query(sql: string, values: readonly unknown[]) {
    return this.#database.query(sql, values)
  }
}
