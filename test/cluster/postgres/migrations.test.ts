import t from 'tap'
import { Database } from '../../../src/cluster/postgres/database.ts'
import { migrate } from '../../../src/cluster/postgres/migrate.ts'
import { MIGRATIONS } from '../../../src/cluster/postgres/migrations.ts'
import { startPostgres, withoutPostgres } from '../../support/postgres.ts'
import type { TestPostgres } from '../../support/postgres.ts'

/** A column, by its table and name. */
interface Column {
  readonly type: unknown
  /** PostgreSQL rejects a row without this column. */
  readonly isNeeded: boolean
}

async function columns(server: TestPostgres): Promise<Map<string, Column>> {
  const rows = await server.query(`SELECT table_name, column_name, data_type, ordinal_position,
      is_nullable = 'NO' AND column_default IS NULL AND is_identity = 'NO' AS needed
    FROM information_schema.columns WHERE table_schema = 'gateway'`)
  return new Map(rows.map(row => [
    `${String(row['table_name'])}.${String(row['column_name'])}`,
    { type: [row['data_type'], row['ordinal_position']], isNeeded: row['needed'] === true },
  ]))
}

async function names(server: TestPostgres, sql: string): Promise<unknown[]> {
  const rows = await server.query(sql)
  return rows.map(({ name }) => name)
}

const FUNCTIONS = `SELECT proname || '(' || pg_get_function_arguments(oid) || ')' AS name FROM pg_proc WHERE pronamespace = 'gateway'::regnamespace`
const INDEXES = `SELECT indexname AS name FROM pg_indexes WHERE schemaname = 'gateway'`

t.test('a gateway of an earlier version works with the latest schema', { skip: withoutPostgres }, async t => {
  const server = await startPostgres(t)
  for (let version = 1; version < MIGRATIONS.length; version++) {
    await t.test(`version ${version} reads and writes the latest schema`, async t => {
      await server.createDatabase()
      const database = new Database({ url: server.url(), name: 'test' })
      t.teardown(() => database.close())
      await migrate(database, MIGRATIONS.slice(0, version))
      await database.query(`SELECT gateway.add_partition('2026-11-01')`)
      const [before, functions, indexes] = [await columns(server), await names(server, FUNCTIONS), await names(server, INDEXES)]
      const tables = new Set([...before.keys()].map(name => name.split('.', 1)[0]))
      const add = (id: string) => database.query(`INSERT INTO gateway.requests (journal, request_id, started_at, key, "end", source)
        VALUES (1, $1, extract(epoch FROM timestamp '2026-11-02') * 1000, 'team-a', 'complete', 'none')`, [id])
      await add('before')

      await migrate(database, MIGRATIONS)
      await migrate(database, MIGRATIONS.slice(0, version))
      t.strictSame(await server.query('SELECT version FROM gateway.schema_version'), [{ version: MIGRATIONS.length }])
      const after = await columns(server)
      for (const [name, column] of before) t.strictSame(after.get(name), column, `${name} is as it was`)
      for (const [name, { isNeeded }] of after) {
        if (tables.has(name.split('.', 1)[0]) && !before.has(name)) t.notOk(isNeeded, `a row may lack ${name}`)
      }
      const [all, allIndexes] = [await names(server, FUNCTIONS), await names(server, INDEXES)]
      for (const name of functions) t.ok(all.includes(name), `${String(name)} is still there`)
      for (const name of indexes) t.ok(allIndexes.includes(name), `${String(name)} is still there`)
      await add('after')
      t.strictSame(await server.query(`SELECT key, requests::int FROM gateway.days`), [{ key: 'team-a', requests: 2 }])
    })
  }
})

t.test('several gateways can start at once on an empty database', { skip: withoutPostgres }, async t => {
  const server = await startPostgres(t)
  const databases = Array.from({ length: 4 }, () => new Database({ url: server.url(), name: 'test' }))
  await Promise.all(databases.map(database => migrate(database, MIGRATIONS)))
  t.strictSame(await server.query('SELECT version FROM gateway.schema_version'), [{ version: MIGRATIONS.length }])
  t.comment('a later version has added to the schema')
  await server.query('UPDATE gateway.schema_version SET version = 99')
  await migrate(databases[0] as Database, MIGRATIONS)
  t.strictSame(await server.query('SELECT version FROM gateway.schema_version'), [{ version: 99 }])
  for (const database of databases) database.close()
})
