import { text } from 'node:stream/consumers'
import { Readable } from 'node:stream'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import type { Reports } from '../../../src/console/reports/reports.ts'
import { ClusterLedger } from '../../../src/cluster/ledger/cluster-ledger.ts'
import type { LedgerRow } from '../../../src/ledger/row.ts'
import { Database } from '../../../src/cluster/postgres/database.ts'
import { migrate } from '../../../src/cluster/postgres/migrate.ts'
import { MIGRATIONS } from '../../../src/cluster/postgres/migrations.ts'
import { startPostgres, withoutPostgres } from '../../support/postgres.ts'
import type { TestPostgres } from '../../support/postgres.ts'
import { startTcpProxy } from '../../support/tcp-proxy.ts'
import { row, stored } from '../../ledger/rows.ts'
import { DAY, filled, HOUR, iso, NOW, withReports } from './filled.ts'

/** Requests of several days, of two keys or without a key; some failed, unpriced or estimated. */
const ROWS: readonly LedgerRow[] = Array.from({ length: 120 }, (_, n) => row(`r${n}`, {
  startedAt: NOW - n * 3 * HOUR - n * 1001,
  key: [null, 'team-a', 'team-b'][n % 3] ?? null,
  model: n % 5 === 0 ? null : `model-${n % 4}`,
  upstream: n % 7 === 0 ? null : `upstream-${n % 2}`,
  group: n % 5 === 0 ? 'science' : null,
  protocol: n % 4 === 0 ? 'messages' : 'chat',
  status: n % 11 === 0 ? 502 : 200,
  end: n % 11 === 0 ? 'upstream_error' : 'complete',
  source: n % 6 === 0 ? 'estimated' : 'reported',
  costPico: n % 4 === 0 ? null : BigInt(n) * 9_000_000_000_001n,
  firstByteMs: n % 9 === 0 ? null : n * 3.7,
} as Partial<LedgerRow>))

const QUERIES: Readonly<Record<string, (reports: Reports) => Promise<unknown>>> = {
  'the panel of a day': reports => reports.panel({}, null),
  'the panel of a key and a month': reports => reports.panel({ from: iso(NOW - 30 * DAY) }, 'team-a'),
  upstreams: reports => reports.upstreamFigures({ from: iso(NOW - 10 * DAY - 90_000), to: iso(NOW - 7 * HOUR - 1) }),
  'billing by key': reports => reports.billing({ from: iso(NOW - 20 * DAY) }, null),
  'billing by model, without a key': reports => reports.billing({ from: iso(NOW - 20 * DAY), by: 'model', without: 'key' }, null),
  'billing by upstream': reports => reports.billing({ from: iso(NOW - 3 * DAY), by: 'upstream', model: 'model-1' }, null),
  'billing by key and status': reports => reports.billing({ from: iso(NOW - 20 * DAY), by: 'key,status' }, null),
  'billing by group, protocol and model': reports => reports.billing({ from: iso(NOW - 20 * DAY), by: 'group,protocol,model', without: 'upstream' }, null),
  'billing as CSV': reports => text(Readable.from(reports.billingCsv({ from: iso(NOW - 20 * DAY) }, null))),
  'unpriced models': reports => reports.unpricedModels(10),
  budgets: reports => reports.budgets([
    { key: 'team-a', group: null, model: null, per: 'month', limit_usd: '5' }, { key: 'team-b', group: null, model: 'model-*', per: 'total', limit_usd: '7' },
    { key: null, group: { name: 'company', members: ['company', 'science'] }, model: null, per: 'total', limit_usd: '9' },
  ], {}),
  'a statement': reports => reports.statement({ month: '2026-10', key: 'team-a' }, null),
  'requests of a key and model': async reports => (await reports.logs({ from: iso(NOW - 9 * DAY), key: 'team-a', model: 'model-1' }, null)).rows,
  'requests without an upstream': async reports => (await reports.logs({ from: iso(NOW - 15 * DAY), without: 'upstream' }, null)).rows,
  'failed requests': async reports => (await reports.logs({ from: iso(NOW - 15 * DAY), end: 'failed', limit: 5 }, null)).rows,
  'requests with a status': async reports => (await reports.logs({ from: iso(NOW - 15 * DAY), status: '2xx', limit: 7 }, null)).rows,
  'requests of a query': async reports => (await reports.logs({
    from: iso(NOW - 15 * DAY), q: 'key:TEAM-*,none -status:5xx attempts:1 cost>0.01 ttft>2ms -error:rate model:model-1,none', limit: 9,
  }, null)).rows,
  'requests with an error': async reports => (await reports.logs({ from: iso(NOW - 15 * DAY), q: 'error:OK* end:failed' }, null)).rows,
  'requests in the order of their cost': async reports => (await reports.logs({ from: iso(NOW - 15 * DAY), sort: '-cost', limit: 9 }, null)).rows,
  'the second page of an order': async reports => {
    const query = { from: iso(NOW - 15 * DAY), sort: 'ttft', limit: 9 } as const
    const { next } = await reports.logs(query, null)
    return (await reports.logs({ ...query, before: next as string }, null)).rows
  },
  'the panel of three hours by minute': reports => reports.panel({ from: iso(NOW - 3 * HOUR), slice: 'minute' }, null),
  'requests as CSV': reports => text(Readable.from(reports.logsCsv({ from: iso(NOW - 15 * DAY) }, null))),
  'one request': reports => reports.requestDetails('r5', null),
  filters: reports => reports.filters(null),
  'use of keys': async reports => [...await reports.keyUse()].sort(),
}

async function fill(t: Test, server: TestPostgres, journals: Readonly<Record<string, readonly LedgerRow[]>>): Promise<void> {
  await server.createDatabase()
  const database = new Database({ url: server.url(), name: 'test' })
  t.teardown(() => database.close())
  await migrate(database, MIGRATIONS)
  const ledger = new ClusterLedger(database)
  for (const [name, rows] of Object.entries(journals)) {
    t.strictSame(await ledger.insert(await ledger.register(name, name), rows.map(stored)), [])
  }
}

t.test('reports of the ledger in PostgreSQL', { skip: withoutPostgres }, async t => {
  const server = await startPostgres(t)

  t.test('reports from PostgreSQL equal reports from a file with the same rows', async t => {
    await fill(t, server, { gw1: ROWS.slice(0, 50), gw2: ROWS.slice(50) })
    const folder = t.testdir({ full: {}, empty: {} })
    const file = filled(join(folder, 'full'), ROWS)
    const nothing = filled(join(folder, 'empty'), [])
    await withReports(file, ofFile => withReports(nothing, async ofCluster => {
      for (const [name, query] of Object.entries(QUERIES)) {
        t.strictSame(await query(ofCluster), await query(ofFile), name)
        t.equal(ofCluster.clusterFailure, null, name)
      }
    }, { cluster: { url: server.url(), instance: 'gw1' } }))
  })

  t.test('the log has new requests of each gateway', async t => {
    await fill(t, server, { gw1: ROWS.slice(0, 3) })
    await withReports(filled(t.testdir({}), []), async reports => {
      const { last } = await reports.logs({}, null)
      const database = new Database({ url: server.url(), name: 'test' })
      const ledger = new ClusterLedger(database)
      await ledger.insert(await ledger.register('gw2', 'gw2'), [stored(row('new', { startedAt: NOW }))])
      database.close()
      const { rows } = await reports.logs({ after: last ?? '' }, null)
      t.strictSame(rows.map(({ request_id: id }) => id), ['new'])
    }, { cluster: { url: server.url(), instance: 'gw1' } })
  })

  for (const fault of ['cut', 'silence'] as const) {
    t.test(`while PostgreSQL is unreachable (${fault}), reports cover only this gateway and contain the failure`, async t => {
      await fill(t, server, { gw1: [row('here')], gw2: [row('there')] })
      const proxy = await startTcpProxy(t, server.port)
      const query = { from: iso(NOW - 2 * DAY) }
      await withReports(filled(t.testdir({}), [row('here')]), async reports => {
        const requests = async () => (await reports.panel(query, null)).now.figures.requests
        t.equal(await requests(), 2)
        const { last } = await reports.logs(query, null)
        proxy[fault]()
        t.equal(await requests(), 1)
        t.match(reports.clusterFailure, /./)
        t.strictSame((await reports.logs({ ...query, after: last ?? '' }, null)).rows, [], 'a cursor of the ledger in PostgreSQL finds no rows in the file')
        proxy.heal()
        let found = 1
        while (found === 1) found = await requests()
        t.equal(found, 2)
        t.equal(reports.clusterFailure, null)
      }, { cluster: { url: server.url(proxy.port), instance: 'gw1' } })
    })
  }
})
