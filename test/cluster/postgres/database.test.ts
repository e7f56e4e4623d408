import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { Database } from '../../../src/cluster/postgres/database.ts'
import { freePort } from '../../support/free-port.ts'
import { PASSWORD, startPostgres, withoutPostgres } from '../../support/postgres.ts'
import { startTcpProxy } from '../../support/tcp-proxy.ts'

const ENCODED = encodeURIComponent(PASSWORD)

t.test('a connection to PostgreSQL', { skip: withoutPostgres }, async t => {
  const server = await startPostgres(t)

  t.test('a silent connection times out, and the next query opens another connection', async t => {
    const proxy = await startTcpProxy(t, server.port)
    let lost = 0
    const database = new Database({ url: server.url(proxy.port), name: 'test', onLost: () => void lost++ })
    t.teardown(() => database.close())
    t.strictSame(await database.query('SELECT 1 AS one'), [{ one: 1 }])
    proxy.silence()
    await t.rejects(database.query('SELECT 2', [], 50), { code: 'timeout' })
    t.equal(lost, 1)
    t.equal(database.isOpen, false)
    proxy.heal()
    t.strictSame(await database.query('SELECT 3 AS three'), [{ three: 3 }])
  })

  t.test('a broken connection rejects the running query', async t => {
    const proxy = await startTcpProxy(t, server.port)
    const database = new Database({ url: server.url(proxy.port), name: 'test' })
    t.teardown(() => database.close())
    await database.query('SELECT 1')
    const answer = database.query('SELECT pg_sleep(60)')
    proxy.cut()
    await t.rejects(answer, { code: 'unreachable' })
  })

  t.test('an error in SQL leaves the connection open', async t => {
    const database = new Database({ url: server.url(), name: 'test' })
    t.teardown(() => database.close())
    await t.rejects(database.query('SELECT * FROM nowhere'), { code: 'rejected', sqlState: '42P01' })
    t.equal(database.isOpen, true)
  })

  t.test('a failed transaction changes nothing', async t => {
    const database = new Database({ url: server.url(), name: 'test' })
    t.teardown(() => database.close())
    await t.rejects(database.transaction(async query => {
      await query('CREATE TABLE never (id integer)')
      throw new Error('on purpose')
    }), /on purpose/)
    t.strictSame(await database.query(`SELECT FROM pg_tables WHERE tablename = 'never'`), [])
  })

  t.test('the error of a wrong password does not contain the password', async t => {
    const url = `postgres://gateway:${ENCODED}x@127.0.0.1:${server.port}/postgres`
    const database = new Database({ url, name: 'test' })
    const error = await database.query('SELECT 1').then(() => null, (reason: Error) => reason)
    t.match(error, { code: 'unreachable', message: /password authentication failed/ })
    t.notMatch(String(error?.stack), PASSWORD)
    t.notMatch(String(error?.stack), ENCODED)
  })
})

t.test('a closed port is reported', async t => {
  const database = new Database({ url: `postgres://u:${ENCODED}@127.0.0.1:${await freePort()}/db`, name: 'test' })
  await t.rejects(database.query('SELECT 1'), { code: 'unreachable' })
})

t.test('a server that accepts connections but never responds times out', async t => {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const database = new Database({ url: `postgres://u:${ENCODED}@127.0.0.1:${port}/db`, name: 'test' })
  await t.rejects(database.query('SELECT 1', [], 50), { code: 'timeout' })
})
