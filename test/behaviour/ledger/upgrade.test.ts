import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import type { Test } from 'tap'
import { COLUMN_LIST, COLUMNS, encode } from '../../../src/ledger/columns.ts'
import { LedgerStore } from '../../../src/ledger/write/ledger-store.ts'
import type { LedgerRow } from '../../../src/ledger/row.ts'
import { DAY, filled, iso, NOW, withReports } from '../../console/reports/filled.ts'
import { NOTHING_USED, row } from '../../ledger/rows.ts'
import { toVersion7 } from '../../ledger/version-7.ts'

const TODAY = NOW - (NOW % DAY)

/** Requests of several days, with different values in each dimension of the sums. */
function requests(name: string, from: number, days: number): LedgerRow[] {
  return Array.from({ length: days * 12 }, (_, n) => row(`${name} ${n}`, {
    startedAt: from + n * DAY / 12,
    key: [null, 'a', 'b'][n % 3] ?? null,
    group: n % 5 === 0 ? null : 'science',
    model: `model-${n % 2}`,
    protocol: n % 4 === 0 ? 'messages' : 'chat',
    status: [200, 503, null][n % 7] ?? 200,
    costPico: n % 6 === 0 ? null : 2n ** 62n + BigInt(n),
  }))
}

const QUERIES = ['status', 'key,status', 'group', 'protocol,model', 'status,group,upstream'].flatMap(by => [
  { by, from: iso(TODAY - 9 * DAY) }, { by, from: iso(TODAY - 9 * DAY), key: 'a' }, { by, from: iso(TODAY - DAY), to: iso(TODAY) },
])

/** Checks that the billing of a file equals that of a new file with the same rows. */
async function compare(t: Test, file: string, name: string, rows: readonly LedgerRow[]): Promise<void> {
  await withReports(file, upgraded => withReports(filled(join(file, '..', name), rows), async fresh => {
    for (const query of QUERIES) {
      t.strictSame(await upgraded.billing(query, null), await fresh.billing(query, null), `${name}: ${JSON.stringify(query)}`)
    }
  }))
}

function write(store: LedgerStore, rows: readonly LedgerRow[]): void {
  store.write({ seq: 1, drafts: [], closed: rows.map(encode) })
}

function state(file: string): Record<string, unknown> {
  using db = new DatabaseSync(file)
  return { ...db.prepare(`SELECT detailed_from - ${TODAY / DAY} AS since, up_to = detailed_up_to AS same,
    (SELECT min(day) - ${TODAY / DAY} FROM detailed_days) AS first FROM summed`).get() }
}

t.test('after an upgrade, new days have sums by status, protocol and group, and old days are read from rows', async t => {
  const directory = t.testdir({ old: {}, summed: {}, unsummed: {}, changed: {}, entered: {} })
  const old = requests('old', TODAY - 8 * DAY, 4)
  const file = filled(directory, old, 40)
  toVersion7(file)
  const store = new LedgerStore(file, 'later')
  t.teardown(() => store.close())
  await compare(t, file, 'old', old)
  const summed = [...old, ...requests('late', TODAY - 5 * DAY, 1), ...requests('new', TODAY - 4 * DAY, 3)]
  write(store, summed.slice(old.length))
  while (store.sum());
  t.strictSame(state(file), { since: -4, same: 1, first: -4 })
  await compare(t, file, 'summed', summed)
  const unsummed = [...summed, ...requests('last', TODAY - 2 * DAY, 3)]
  write(store, unsummed.slice(summed.length))
  await compare(t, file, 'unsummed', unsummed)
  const changed = unsummed.map((each, n) => (n % 3 === 0 ? { ...each, status: 429, group: 'art', costPico: 1n } : each))
  write(store, changed.filter((_, n) => n % 3 === 0))
  await compare(t, file, 'changed', changed)
  store.sum()
  await compare(t, file, 'entered', changed)
})

/** Sums rows like a running process of version 7, which has one table less. */
function sumAsVersion7(file: string, store: LedgerStore): void {
  using db = new DatabaseSync(file)
  db.exec('CREATE TABLE kept AS SELECT * FROM detailed_days; CREATE TABLE kept_state AS SELECT * FROM summed')
  while (store.sum());
  db.exec(`DELETE FROM detailed_days; INSERT INTO detailed_days SELECT * FROM kept;
    UPDATE summed SET (detailed_up_to, detailed_from) = (SELECT detailed_up_to, detailed_from FROM kept_state);
    DROP TABLE kept; DROP TABLE kept_state`)
}

t.test('while an older gateway sums rows of the same file, sums are read from rows', async t => {
  const directory = t.testdir({ beside: {}, after: {} })
  const old = requests('old', TODAY - 8 * DAY, 4)
  const file = filled(directory, old)
  toVersion7(file)
  const store = new LedgerStore(file, 'later')
  t.teardown(() => store.close())
  const before = [...old, ...requests('new', TODAY - 4 * DAY, 1)]
  write(store, before.slice(old.length))
  store.sum()
  t.strictSame(state(file), { since: -4, same: 1, first: -4 })
  const beside = [...before, ...requests('beside', TODAY - 4 * DAY, 2)]
  write(store, beside.slice(before.length))
  sumAsVersion7(file, store)
  await compare(t, file, 'beside', beside)
  const after = [...beside, ...requests('after', TODAY - 3 * DAY, 3)]
  write(store, after.slice(beside.length))
  store.sum()
  t.match(state(file), { since: -2, same: 1 })
  await compare(t, file, 'after', after)
})

/**
 * What a process of version 7 does with a row that is there already, and in the sums: it takes it out of those that it
 * knows, and enters it under a new id.
 * @param request has no tokens, no cost and no time to the first byte, before as now
 */
function replaceAsVersion7(file: string, request: LedgerRow): void {
  using db = new DatabaseSync(file)
  const { startedAt, key, model, upstream } = request
  const hour = Math.floor(startedAt / 3_600_000)
  const day = Math.floor(startedAt / DAY)
  const taken = 'SET requests = requests - 1, unpriced = unpriced - 1 WHERE'
  db.exec('BEGIN IMMEDIATE')
  db.prepare(`UPDATE hours ${taken} hour = ? AND key = ? AND model = ? AND upstream = ?`).run(hour, key, model, upstream)
  db.prepare(`UPDATE days ${taken} day = ? AND key = ? AND model = ? AND upstream = ?`).run(day, key, model, upstream)
  db.prepare(`UPDATE dimension_days ${taken} day = ? AND name IN (?, ?, ?)`).run(day, key, model, upstream)
  db.prepare(`INSERT OR REPLACE INTO requests (id, ${COLUMN_LIST})
    VALUES ((SELECT max(id) + 1 FROM requests), ${COLUMNS.map(() => '?').join(', ')})`).run(...encode(request))
  db.exec('COMMIT')
}

t.test('a row that an older gateway replaces is counted once', async t => {
  const directory = t.testdir({ replaced: {}, summed: {}, after: {} })
  const replaced = row('replaced', { startedAt: TODAY - 2 * DAY, usage: NOTHING_USED, costPico: null, firstByteMs: null, status: null })
  const before = [...requests('old', TODAY - 3 * DAY, 2), replaced]
  const file = filled(directory, before)
  const store = new LedgerStore(file, 'later')
  t.teardown(() => store.close())
  const answered = { ...replaced, status: 200 }
  const rows = [...before.slice(0, -1), answered]
  replaceAsVersion7(file, answered)
  await compare(t, file, 'replaced', rows)
  while (store.sum());
  await compare(t, file, 'summed', rows)
  const after = [...rows, ...requests('after', TODAY - DAY, 2)]
  write(store, after.slice(rows.length))
  while (store.sum());
  t.strictSame(state(file), { since: -1, same: 1, first: -3 })
  await compare(t, file, 'after', after)
})
