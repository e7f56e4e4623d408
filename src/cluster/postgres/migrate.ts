import type { Database, Query } from './database.ts'
import { MIGRATIONS } from './migrations.ts'

/** Milliseconds. Long, because another gateway may be migrating. */
const MIGRATION_TIMEOUT_MS = 60_000
/** Number of an advisory lock that no other program uses: the letters GWMG. */
const MIGRATION_LOCK = 0x47574d47

/**
 * Migrates the schema `gateway` in one transaction. If several gateways start together, one migrates and the others wait. The schema of a
 * later version is not changed. Two versions can use one schema, because migrations only add to it.
 * @param migrations one script for each version, the first at index 0; a released script is never edited @throws {DatabaseError}
 */
export async function migrate(database: Database, migrations = MIGRATIONS): Promise<void> {
  if (await versionOf(database.query) >= migrations.length) return
  await database.transaction(async query => {
    await query('SELECT pg_advisory_xact_lock($1)', [MIGRATION_LOCK], MIGRATION_TIMEOUT_MS)
    // Read the version again, because another gateway may have migrated before this gateway got the lock.
    const version = await versionOf(query)
    if (version >= migrations.length) return
    await query('CREATE SCHEMA IF NOT EXISTS gateway')
    await query('CREATE TABLE IF NOT EXISTS gateway.schema_version (version integer NOT NULL)')
    for (const script of migrations.slice(version)) await query(script, [], MIGRATION_TIMEOUT_MS)
    await query('DELETE FROM gateway.schema_version')
    await query('INSERT INTO gateway.schema_version VALUES ($1)', [migrations.length])
  })
}

/** @returns the version of the schema; 0 = there is no schema yet */
async function versionOf(query: Query): Promise<number> {
  // Do not use to_regclass: inside a transaction, it can miss tables that another transaction has created.
  const found = await query(`SELECT FROM pg_tables WHERE schemaname = 'gateway' AND tablename = 'schema_version'`)
  if (found.length === 0) return 0
  const [row] = await query('SELECT version FROM gateway.schema_version')
  return Number(row?.['version'] ?? 0)
}
