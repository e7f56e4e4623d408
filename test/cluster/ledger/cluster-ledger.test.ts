import { readFileSync } from 'node:fs'
import t from 'tap'
import { ClusterLedger } from '../../../src/cluster/ledger/cluster-ledger.ts'
import { Database } from '../../../src/cluster/postgres/database.ts'
import { migrate } from '../../../src/cluster/postgres/migrate.ts'
import { MIGRATIONS } from '../../../src/cluster/postgres/migrations.ts'
import { startPostgres, withoutPostgres } from '../../support/postgres.ts'
import { MIDNIGHT, row, stored } from '../../ledger/rows.ts'

const DAY = 86_400_000

t.test('a ledger in PostgreSQL', { skip: withoutPostgres }, async t => {
  const server = await startPostgres(t)
  const opened = async (): Promise<ClusterLedger> => {
    await server.createDatabase()
    const database = new Database({ url: server.url(), name: 'test' })
    t.teardown(() => database.close())
    await migrate(database, MIGRATIONS)
    return new ClusterLedger(database)
  }

  t.test('a row is stored as it was written, and inserting it again changes nothing', async t => {
    const ledger = await opened()
    const journal = await ledger.register('a', 'gw1')
    const entry = stored(row('one', { costPico: 9_007_199_254_740_993n, durationMs: 0.125 }))
    t.strictSame(await ledger.insert(journal, [entry]), [])
    await ledger.insert(journal, [entry])
    const [found, ...others] = await server.query('SELECT * FROM gateway.requests')
    t.strictSame(others, [])
    const { id, journal: number, ...rest } = found ?? {}
    t.equal(number, journal)
    t.ok(id)
    t.strictSame(JSON.parse(JSON.stringify(rest)), Object.fromEntries(
      Object.entries(entry).map(([name, value]) => [name, typeof rest[name] === 'string' ? String(value) : value])))
    const [sums] = await server.query('SELECT requests, input_low, cost_high, cost_low FROM gateway.hours')
    t.strictSame(sums, { requests: '1', input_low: '1200', cost_high: '9007199', cost_low: '254740993' })
  })

  t.test('the query of the documentation sums the cost of each key', async t => {
    const ledger = await opened()
    const journal = await ledger.register('a', 'gw1')
    await ledger.insert(journal, [stored(row('one')), stored(row('two')), stored(row('old', { startedAt: 0 }))])
    const page = readFileSync(new URL('../../../docs/more-than-one-machine.md', import.meta.url), 'utf8')
    const [found, ...others] = await server.query(/```sql\n(.*?)```/s.exec(page)?.[1] ?? '')
    t.strictSame(others, [])
    t.match(found, { key: 'team-a', requests: '2' })
    t.equal(Number(found?.['usd']), 0.00132)
  })

  t.test('two journals can have a request with the same id', async t => {
    const ledger = await opened()
    for (const id of ['a', 'b']) await ledger.insert(await ledger.register(id, id), [stored(row('one'))])
    const [days] = await server.query('SELECT requests FROM gateway.days')
    t.strictSame(days, { requests: '2' })
  })

  t.test('a journal keeps its number when its instance is renamed', async t => {
    const ledger = await opened()
    t.equal(await ledger.register('a', 'gw1'), await ledger.register('a', 'gw2'))
  })

  t.test('a changed row replaces the earlier row, also in the sums', async t => {
    const ledger = await opened()
    const journal = await ledger.register('a', 'gw1')
    await ledger.insert(journal, [stored(row('one', { end: 'interrupted', costPico: 5n, firstByteMs: null }))])
    const [before] = await server.query('SELECT id FROM gateway.requests')
    await ledger.insert(journal, [stored(row('one', { key: 'other', costPico: null }))])
    const rows = await server.query('SELECT id, "end", key FROM gateway.requests')
    t.equal(rows.length, 1)
    t.match(rows[0], { end: 'complete', key: 'other' })
    t.ok(Number(rows[0]?.['id']) > Number(before?.['id']), 'the changed row has a new id')
    const days = await server.query('SELECT key, requests, errors, unpriced, cost_low FROM gateway.days ORDER BY key')
    t.strictSame(days, [
      { key: 'other', requests: '1', errors: '0', unpriced: '1', cost_low: '0' },
      { key: 'team-a', requests: '0', errors: '0', unpriced: '0', cost_low: '0' },
    ])
    const times = await server.query('SELECT sum(times) AS times FROM gateway.first_byte_hour_buckets WHERE scope = 0')
    t.strictSame(times, [{ times: '1' }])
  })

  t.test('sums by day exist for each combination of key, group, protocol and status', async t => {
    const ledger = await opened()
    const journal = await ledger.register('a', 'gw1')
    const dear = 2n ** 63n - 1n
    await ledger.insert(journal, [
      stored(row('one', { group: 'science', costPico: dear })), stored(row('two', { group: 'science', costPico: dear })),
      stored(row('three', { status: null, protocol: null, costPico: 5n })), stored(row('four', { status: 503, costPico: null })),
    ])
    await ledger.insert(journal, [stored(row('four', { status: 200, costPico: 7n }))])
    const days = await server.query(`SELECT day, key, "group", protocol, status, requests::int, unpriced::int,
        (cost_high::numeric * 1000000000 + cost_low)::text AS cost
      FROM gateway.detailed_days WHERE requests > 0 ORDER BY cost_high DESC, cost_low`)
    const day = MIDNIGHT / DAY
    t.strictSame(days, [
      { day, key: 'team-a', group: 'science', protocol: 'chat', status: '200', requests: 2, unpriced: 0, cost: String(2n * dear) },
      { day, key: 'team-a', group: null, protocol: null, status: null, requests: 1, unpriced: 0, cost: '5' },
      { day, key: 'team-a', group: null, protocol: 'chat', status: '200', requests: 1, unpriced: 0, cost: '7' },
    ])
  })

  t.test('requests without key, model and upstream are summed under null', async t => {
    const ledger = await opened()
    const journal = await ledger.register('a', 'gw1')
    await ledger.insert(journal, [stored(row('one', { key: null, model: null, upstream: null, firstByteMs: null }))])
    await ledger.insert(journal, [stored(row('two', { key: null, model: null, upstream: null, firstByteMs: null }))])
    t.strictSame(await server.query('SELECT key, model, upstream, requests FROM gateway.hours'),
      [{ key: null, model: null, upstream: null, requests: '2' }])
    t.strictSame(await server.query('SELECT DISTINCT name, requests FROM gateway.dimension_days'),
      [{ name: null, requests: '2' }])
  })

  t.test('a name with a NUL character is stored without it', async t => {
    const ledger = await opened()
    const journal = await ledger.register('a', 'gw1')
    t.strictSame(await ledger.insert(journal, [stored(row('one', { model: 'a\0b \\u0000' }))]), [])
    t.strictSame(await server.query('SELECT model FROM gateway.requests'), [{ model: 'a\ufffdb \\u0000' }])
  })

  t.test('a row that PostgreSQL refuses does not block other rows', async t => {
    const ledger = await opened()
    const journal = await ledger.register('a', 'gw1')
    const rows = Array.from({ length: 7 }, (_, n) => stored(row(`r${n}`)))
    const wrong = { ...rows[3], status: 'no number' }
    const refused = await ledger.insert(journal, rows.with(3, wrong))
    t.strictSame(refused, [wrong])
    t.strictSame(await server.query('SELECT count(*) AS rows FROM gateway.requests'), [{ rows: '6' }])
  })

  t.test('rows of months beyond the limit are deleted, and the sums of those months stay', async t => {
    const ledger = await opened()
    const journal = await ledger.register('a', 'gw1')
    const september = Date.UTC(2026, 8, 30, 23, 59)
    await ledger.insert(journal, [stored(row('old', { startedAt: september })), stored(row('new'))])
    t.equal(await ledger.expire(60 * DAY, MIDNIGHT), 0, 'a row of the month is not too old yet')
    t.equal(await ledger.expire(51 * DAY, MIDNIGHT), 1)
    t.strictSame(await server.query('SELECT request_id FROM gateway.requests'), [{ request_id: 'new' }])
    t.strictSame(await server.query('SELECT sum(requests) AS requests FROM gateway.days'), [{ requests: '2' }])
    t.comment('another gateway does not know yet that the month was deleted')
    await ledger.insert(journal, [stored(row('late', { startedAt: september }))])
    t.strictSame(await server.query('SELECT count(*) AS rows FROM gateway.requests'), [{ rows: '2' }])
  })

  t.test('first-byte times of old hours are moved to the sums by day', async t => {
    const ledger = await opened()
    const journal = await ledger.register('a', 'gw1')
    await ledger.insert(journal, [stored(row('one')), stored(row('two'))])
    await ledger.expire(null, MIDNIGHT + 100 * DAY)
    t.strictSame(await server.query('SELECT count(*) AS rows FROM gateway.hours'), [{ rows: '0' }])
    t.strictSame(await server.query('SELECT count(*) AS rows FROM gateway.first_byte_hour_buckets'), [{ rows: '0' }])
    t.strictSame(await server.query('SELECT times FROM gateway.first_byte_day_buckets WHERE scope = 0'), [{ times: '2' }])
  })

  t.test('several gateways insert rows at once', async t => {
    await opened()
    const ledgers = Array.from({ length: 4 }, () => {
      const database = new Database({ url: server.url(), name: 'test' })
      t.teardown(() => database.close())
      return new ClusterLedger(database)
    })
    await Promise.all(ledgers.map(async (ledger, n) => {
      const journal = await ledger.register(`j${n}`, 'gw')
      for (let batch = 0; batch < 5; batch++) {
        await ledger.insert(journal, Array.from({ length: 20 }, (_, at) => stored(row(`r${batch}-${at}`))))
      }
    }))
    t.strictSame(await server.query('SELECT requests FROM gateway.hours'), [{ requests: '400' }])
  })
})
