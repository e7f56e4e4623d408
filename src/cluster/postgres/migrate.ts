import type { Database, Query } from './database.ts'
import { MIGRATIONS } from './migrations.ts'

/** ms: another gateway may be migrating. */
const MIGRATION_TIMEOUT_MS = 60_000
/** A number that no other program uses for advisory locks: the letters GWMG. */
const MIGRATION_LOCK = 0x47574d47

/**
 * Migrates the schema `gateway` in one transaction; of several gateways that start together, one migrates and the others wait. A
 * later version's schema is not changed: migrations only add, so that two versions can run side by side.
 * @param migrations one script a version, the first at index 0; a released script is never edited @throws {DatabaseError}
 */
export async function migrate(database: Database, migrations = MIGRATIONS): Promise<void> {
  if (await versionOf(database.query) >= migrations.length) return
  await database.transaction(async query => {
    await query('SELECT pg_advisory_xact_lock($1)', [MIGRATION_LOCK], MIGRATION_TIMEOUT_MS)
    // Another gateway may have migrated before this one got the lock.
    const version = await versionOf(query)
    if (version >= migrations.length) return
    await query('CREATE SCHEMA IF NOT EXISTS gateway')
    await query('CREATE TABLE IF NOT EXISTS gateway.schema_version (version integer NOT NULL)')
    for (const script of migrations.slice(version)) await query(script, [], MIGRATION_TIMEOUT_MS)
    await query('DELETE FROM gateway.schema_version')
    await query('INSERT INTO gateway.schema_version VALUES ($1)', [migrations.length])
  })
}

/** 0 = no schema yet. */
async function versionOf(query: Query): Promise<number> {
  // Not to_regclass: inside a transaction it may miss tables that another one has created.
  const found = await query(`SELECT FROM pg_tables WHERE schemaname = 'gateway' AND tablename = 'schema_version'`)
  if (found.length === 0) return 0
  const [row] = await query('SELECT version FROM gateway.schema_version')
  return Number(row?.['version'] ?? 0)
}
