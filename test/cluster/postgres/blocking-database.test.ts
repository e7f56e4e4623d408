import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { BlockingDatabase } from '../../../src/cluster/postgres/blocking-database.ts'
import { startPostgres, withoutPostgres } from '../../support/postgres.ts'

t.test('queries of BlockingDatabase', { skip: withoutPostgres }, async t => {
  const server = await startPostgres(t)
  const database = new BlockingDatabase({ url: server.url(), name: 'test' })
  t.teardown(() => database.close())

  t.test('a query returns its rows, with whole numbers as bigint', async t => {
    const sql = 'SELECT 9007199254740993 AS large, 1::int AS small, 0.5::float8 AS half, NULL::text AS none, $1 AS given'
    t.strictSame(database.query(sql, ['text'], 5_000),
      [{ large: 9007199254740993n, small: 1n, half: 0.5, none: null, given: 'text' }])
  })

  t.test('a rejected query throws an error with its code, and the connection stays open', async t => {
    t.throws(() => database.query('SELECT * FROM none', [], 5_000), { name: 'DatabaseError', code: 'rejected', sqlState: '42P01' })
    t.strictSame(database.query('SELECT 1 AS n', [], 5_000), [{ n: 1n }])
  })

  t.test('a slow query times out, and the next query gets its own response', async t => {
    t.throws(() => database.query('SELECT pg_sleep(60)', [], 50), { code: 'timeout' })
    t.strictSame(database.query('SELECT 2 AS n', [], 5_000), [{ n: 2n }])
  })

  t.test('a closed database opens again for the next query', async t => {
    database.close()
    t.strictSame(database.query('SELECT 3 AS n', [], 5_000), [{ n: 3n }])
  })
})

t.test('a server that never responds fails at the deadline', async t => {
  const silent = createServer(() => undefined)
  await new Promise<void>(resolve => silent.listen(0, '127.0.0.1', resolve))
  t.teardown(() => silent.close())
  const { port } = silent.address() as AddressInfo
  const database = new BlockingDatabase({ url: `postgres://gateway@127.0.0.1:${port}/gateway`, name: 'test' })
  t.teardown(() => database.close())
  t.throws(() => database.query('SELECT 1', [], 50), { code: 'timeout', message: /50 ms/ })
})
