import { randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Cursors } from '../src/console/reports/cursors.ts'
import { openReports } from '../src/console/reports/reports.ts'
import type { Reports } from '../src/console/reports/reports.ts'
import { LedgerStore } from '../src/ledger/write/ledger-store.ts'

/**
 * Claim: with ten million requests in the ledger, every report of the console is
 * there in under a second.
 *
 *   node bench/console.ts [million requests] [file that is made, or used again]
 */

const millions = Number(process.argv[2] ?? 10)
const kept = process.argv[3]
const rows = Math.round(millions * 1e6)

const DAYS = 90
const DAY = 86_400_000
const now = Date.now()
const started = now - DAYS * DAY
/** Inserted in one transaction. */
const MANY = 250_000
const ROUNDS = 7
/** Seals the cursors of the reports. */
const secret = randomBytes(32)

/**
 * Requests as of a company: 200 keys of which few are busy, six models each of the
 * 24 that there are, four upstreams, 3 % of failures, times to the first byte from
 * 20 ms to some seconds.
 */
function fill(db: DatabaseSync): void {
  const insert = db.prepare(`
    WITH RECURSIVE n(n) AS (SELECT CAST(? AS INTEGER) UNION ALL SELECT n + 1 FROM n LIMIT ${MANY}),
    dice AS MATERIALIZED (SELECT n, abs(random() % 100000) / 100000.0 AS k, abs(random() >> 8) AS a,
      abs(random() >> 8) AS b, abs(random() >> 8) AS c, abs(random() >> 8) AS d FROM n),
    made AS MATERIALIZED (SELECT n, CAST(200 * k * k * k AS INTEGER) AS k, a % 6 AS m,
      c % 1000 < 30 AS failed, a, b, c, d FROM dice)
    INSERT INTO requests (request_id, started_at, first_byte_ms, duration_ms, key, protocol, endpoint, model,
      upstream, upstream_model, status, "end", error, source, input_tokens, cached_input_tokens,
      output_tokens, reasoning_tokens, cost_pico_usd, price, price_version, attempts, bytes_in, bytes_out,
      route)
    SELECT printf('01990000-0000-7000-8000-%012d', n), ${started} + n * ${DAYS * DAY} / ${rows},
      iif(failed, NULL, 20 + d % 1000 * (c % 997) / 250), 40 + d % 20000 / 10.0,
      printf('team-%03d', k), 'chat', 'chat.completions', printf('model-%02d', (k * 7 + m) % 24),
      iif(failed AND c % 7 = 0, NULL, printf('upstream-%d', (k * 7 + m) % 4)),
      printf('model-%02d', (k * 7 + m) % 24),
      CASE WHEN NOT failed THEN 200 WHEN c % 7 = 0 THEN 429 WHEN c % 5 = 0 THEN NULL ELSE 503 END,
      CASE WHEN NOT failed THEN 'complete' WHEN c % 7 = 0 THEN 'refused' WHEN c % 5 = 0 THEN 'client_gone'
        ELSE 'error' END,
      iif(failed, 'rate_limited', NULL), iif(d % 50 = 0, 'estimated', 'reported'), a % 9000, a % 300,
      b % 2000, 0, a % 9000 * 400000 + b % 2000 * 1600000,
      '{"input":"0.40","cachedInput":"0.10","output":"1.60"}', 'config',
      '[{"upstream":"upstream-1","model":null,"outcome":"ok","ms":1200.2,"atMs":2.1,"status":200}]',
      912, 4711, 'routes[2], line 41: path /v1/*, model gpt-* -> openai (ordered)'
    FROM made WHERE n < ${rows}`)
  for (let n = 0; n < rows; n += MANY) insert.run(n)
}

function make(file: string): void {
  const begun = performance.now()
  const store = new LedgerStore(file, 'bench')
  const db = new DatabaseSync(file)
  db.exec('PRAGMA synchronous = OFF; PRAGMA cache_size = -500000')
  fill(db)
  const filled = performance.now()
  while (store.sum()) db.exec('PRAGMA wal_checkpoint(PASSIVE)')
  console.log(
    `${rows} rows in ${seconds(filled - begun)}, their sums in ${seconds(performance.now() - filled)}`,
  )
  for (const table of ['hours', 'days', 'detailed_days', 'dimension_days', 'first_byte_hours']) {
    console.log(`${table}: ${db.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.['n']} rows`)
  }
  db.close()
  store.close()
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}

const ago = (days: number) => new Date(now - days * DAY).toISOString()
const month = ago(15).slice(0, 7)

async function asked(reports: Reports): Promise<[name: string, ask: () => Promise<unknown>][]> {
  const middle = (await reports.logs({ from: ago(DAYS), to: ago(45), limit: 1 }, null))
  const some = middle.rows[0]?.request_id ?? ''
  const all = { from: ago(DAYS) }
  const cursors = new Cursors(secret)
  const last = Number(cursors.open((await reports.logs({}, null)).last ?? '', 'after'))
  const budgets = Array.from({ length: 200 }, (_, n) => ({
    key: `team-${String(n).padStart(3, '0')}`, group: null, model: null, per: n % 2 ? 'total' : 'month', limit_usd: '500',
  }) as const)
  const logs = (name: string, query: Parameters<Reports['logs']>[0], own: string | null = null) =>
    [`logs: ${name}`, () => reports.logs(query, own)] as [string, () => Promise<unknown>]
  return [
    ['panel: 1 hour', () => reports.panel({ from: ago(1 / 24) }, null)],
    ['panel: 24 hours', () => reports.panel({}, null)],
    ['panel: 7 days', () => reports.panel({ from: ago(7) }, null)],
    ['panel: 90 days', () => reports.panel({ from: ago(DAYS) }, null)],
    ['panel: 30 days of one key', () => reports.panel({ from: ago(30) }, 'team-003')],
    ['upstreams: 30 days', () => reports.upstreamFigures({ from: ago(30) })],
    ['billing: 30 days by key', () => reports.billing({ from: ago(30), by: 'key' }, null)],
    ['billing: 90 days by model', () => reports.billing({ from: ago(DAYS), by: 'model' }, null)],
    ['billing: 30 days by key and model, a page', () => reports.billing({ from: ago(30), by: 'key,model', limit: 50 }, null)],
    ['billing: 30 days by key, model and upstream', () => reports.billing({ from: ago(30), by: 'key,model,upstream' }, null)],
    ['billing: 7 days by protocol', () => reports.billing({ from: ago(7), by: 'protocol' }, null)],
    ['billing: 30 days by key and status', () => reports.billing({ from: ago(30), by: 'key,status' }, null)],
    ['billing: 90 days of one key', () => reports.billing({ from: ago(DAYS) }, 'team-003')],
    ['budgets: 200', () => reports.budgets(budgets, {})],
    ['statement', () => reports.statement({ key: 'team-000', month }, null)],
    ['filters', () => reports.filters(null)],
    ['keys', () => reports.keyUse()],
    ['story', () => reports.requestDetails(some, null)],
    logs('newest', all),
    logs('a page in the middle', { ...all, to: ago(45) }),
    logs('a busy key', { ...all, key: 'team-000' }),
    logs('a quiet key', { ...all, key: 'team-199' }),
    logs('a key that is none', { ...all, key: 'nobody' }),
    logs('a key and a model that it rarely asks for', { ...all, key: 'team-199', model: 'model-01' }),
    logs('an upstream', { ...all, upstream: 'upstream-2' }),
    logs('failed', { ...all, end: 'failed' }),
    logs('503', { ...all, status: '503' }),
    logs('5xx of a quiet key', { ...all, status: '5xx', key: 'team-190' }),
    logs('a status that never was', { ...all, status: '418' }),
    logs('nothing sent, of an upstream', { ...all, status: 'none', upstream: 'upstream-3' }),
    logs('200 and timeout, never', { ...all, status: '200', end: 'timeout' }),
    logs('complete, of a quiet key', { ...all, end: 'complete', key: 'team-195', status: '2xx' }),
    logs('live tail', { after: cursors.seal(String(last - 500)) }),
    ['logs.csv: the first 64 kB', async () => {
      for await (const _ of reports.logsCsv({ ...all, end: 'failed' }, null)) break
    }],
  ]
}

async function measure(file: string): Promise<void> {
  const reports = openReports({ file, deadline: 600_000, secret })
  console.log('\n| report | first, ms | median, ms | max, ms |\n|---|---|---|---|')
  for (const [name, ask] of await asked(reports)) {
    const times: number[] = []
    for (let round = 0; round < ROUNDS; round += 1) {
      const begun = performance.now()
      await ask()
      times.push(performance.now() - begun)
    }
    const [first = 0] = times
    times.sort((a, b) => a - b)
    const cells = [first, times[Math.floor(ROUNDS / 2)] ?? 0, times.at(-1) ?? 0].map(ms => ms.toFixed(1))
    console.log(`| ${name} | ${cells.join(' | ')} |`)
  }
  await reports.close()
}

const directory = mkdtempSync(join(tmpdir(), 'console-'))
const file = kept ?? join(directory, 'gateway.db')
if (!existsSync(file)) make(file)
await measure(file)
rmSync(directory, { recursive: true })
