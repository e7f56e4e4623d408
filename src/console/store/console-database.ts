import { Database, type DatabaseOptions, type Row } from '../../cluster/postgres/database.ts'
import { DatabaseError } from '../../cluster/postgres/database-error.ts'
import { migrate } from '../../cluster/postgres/migrate.ts'
import { MIGRATIONS } from '../../cluster/postgres/migrations.ts'

/** Maximum ms of a query, because a user waits for the page. */
const TIMEOUT_MS = 1_000
/** ms after a failure without another attempt, so that not every request waits for PostgreSQL. */
export const RETRY_MS = 2_000

/** The PostgreSQL database that the consoles of all gateways share. */
export class ConsoleDatabase {
  readonly #database: Database
  #isMigrated = false
  #failedAt = -Infinity

  constructor(options: Pick<DatabaseOptions, 'url' | 'name'>) {
    this.#database = new Database(options)
  }

  /** @throws {DatabaseError} */
  query(sql: string, values: readonly unknown[]): Promise<Row[]> {
    return this.#database.query(sql, values, TIMEOUT_MS)
  }

  /** Runs `work`. @returns null = PostgreSQL is unreachable */
  async ask<T>(work: () => Promise<T>): Promise<T | null> {
    if (performance.now() - this.#failedAt < RETRY_MS) return null
    try {
      if (!this.#isMigrated) await migrate(this.#database, MIGRATIONS)
      this.#isMigrated = true
      return await work()
    } catch (error) {
      if (!(error instanceof DatabaseError)) throw error
      this.#failedAt = performance.now()
      return null
    }
  }

  close(): void {
    this.#database.close()
  }
}
