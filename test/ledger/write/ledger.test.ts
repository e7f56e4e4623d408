import { spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { openReader } from '../../../src/ledger/read/file-reader.ts'
import type { LedgerRow } from '../../../src/ledger/row.ts'
import { draft, MIDNIGHT, row } from '../rows.ts'
import { watch } from '../watched.ts'

function read(file: string): LedgerRow[] {
  using reader = openReader(file)
  return [...reader.rows({})]
}

t.test('after a flush, the file has each closed row unchanged', async t => {
  const file = join(t.testdir(), 'data', 'deep', 'gateway.db')
  await using watched = watch(file)
  const { ledger } = watched
  const entry = ledger.open(() => draft('a'))
  ledger.close(row('a'), entry)
  t.match(ledger.stats(), { written: 0, waiting: 1 })
  await ledger.flush()
  t.strictSame(read(file), [row('a')])
  t.match(ledger.stats(), { written: 1, waiting: 0, lost: 0, healthy: true, lastError: null })
  t.strictSame(watched.told, [])
})

t.test('a refused request is stored without a checkpoint', async t => {
  const file = join(t.testdir(), 'gateway.db')
  await using watched = watch(file)
  const refused = row('a', { end: 'refused', status: 401, key: null, attempts: [], costPico: 0n })
  watched.ledger.close(refused)
  await watched.ledger.flush()
  t.strictSame(read(file), [refused])
})

t.test('a running request has no row, and find returns its latest checkpoint', async t => {
  const file = join(t.testdir(), 'gateway.db')
  await using watched = watch(file)
  const { ledger } = watched
  const later = draft('a', { upstream: 'anthropic', firstByteMs: 12, costPico: 5n })
  let latest = draft('a')
  const entry = ledger.open(() => latest)
  await ledger.flush()
  latest = later
  ledger.updateDraft(entry)
  await ledger.flush()
  t.strictSame(read(file), [])
  using reader = openReader(file)
  t.strictSame(reader.find('a'), [{ row: later, running: true }])
  ledger.close(row('a'), entry)
  await ledger.flush()
  t.strictSame(reader.find('a'), [{ row: row('a'), running: false }])
})

t.test('rows are written in the order in which their requests ended', async t => {
  await using watched = watch(join(t.testdir(), 'gateway.db'))
  const { ledger } = watched
  const [a, b, c] = ['a', 'b', 'c'].map(id => ledger.open(() => draft(id)))
  ledger.close(row('c'), c)
  ledger.close(row('x'))
  ledger.close(row('a'), a)
  t.match(ledger.stats(), { waiting: 4 })
  const ids = ledger.unwritten().map(values => values[0])
  t.strictSame(ids, ['b', 'c', 'x', 'a'])
  ledger.close(row('b'), b)
  await ledger.flush()
  t.match(ledger.stats(), { written: 4, waiting: 0 })
})

t.test('a checkpoint after the row is closed changes nothing', async t => {
  const file = join(t.testdir(), 'gateway.db')
  await using watched = watch(file)
  let asked = 0
  const entry = watched.ledger.open(() => {
    asked++
    return draft('a')
  })
  watched.ledger.close(row('a'), entry)
  watched.ledger.updateDraft(entry)
  await watched.ledger.flush()
  watched.ledger.updateDraft(entry)
  await watched.ledger.flush()
  t.strictSame(read(file), [row('a')])
  t.equal(asked, 0, 'no checkpoint is made of an ended request')
})

t.test('a request id that a trusted proxy reuses does not overwrite the first request', async t => {
  const file = join(t.testdir(), 'gateway.db')
  await using watched = watch(file)
  const rows = [row('a'), row('a', { startedAt: MIDNIGHT + 1, status: 503, end: 'error' })]
  const entries = rows.map(({ startedAt }) => watched.ledger.open(() => draft('a', { startedAt })))
  for (const [n, one] of rows.entries()) watched.ledger.close(one, entries[n])
  await watched.ledger.flush()
  t.strictSame(read(file), rows)
})

t.test('thousands of rows of one turn of the event loop are each written once', async t => {
  const file = join(t.testdir(), 'gateway.db')
  await using watched = watch(file)
  const rows = Array.from({ length: 7500 }, (_, n) => row(`r${n}`, { startedAt: MIDNIGHT + n }))
  const entries = rows.map(({ requestId, startedAt }) =>
    watched.ledger.open(() => draft(requestId, { startedAt })))
  for (const [n, one] of rows.entries()) watched.ledger.close(one, entries[n])
  await watched.ledger.flush()
  t.strictSame(read(file), rows)
  t.equal(watched.ledger.stats().written, rows.length)
})

t.test('flush waits for earlier rows, not for later rows', async t => {
  const file = join(t.testdir(), 'gateway.db')
  await using watched = watch(file)
  let stop = false
  let n = 0
  const flood = () => {
    if (stop) return
    watched.ledger.close(row(`r${n++}`))
    setImmediate(flood)
  }
  flood()
  const before = n
  await watched.ledger.flush()
  stop = true
  t.ok(watched.ledger.stats().written >= before)
})

t.test('shutdown writes waiting rows, ends running requests as interrupted and leaves one file', async t => {
  const dir = t.testdir()
  const file = join(dir, 'gateway.db')
  const { ledger } = watch(file)
  ledger.open(() => draft('running', { startedAt: MIDNIGHT + 1 }))
  ledger.close(row('ended'))
  await ledger.shutdown()
  t.strictSame(read(file), [row('ended'), draft('running', { startedAt: MIDNIGHT + 1 })])
  t.strictSame(readdirSync(dir).filter(name => !/-(wal|shm)$/.test(name)), ['gateway.db'])
})

t.test('a row that is closed after shutdown is counted as lost', async t => {
  const watched = watch(join(t.testdir(), 'gateway.db'))
  await watched.ledger.shutdown()
  watched.ledger.open(() => draft('a'))
  watched.ledger.close(row('a'))
  await watched.heard('shutdown')
  t.match(watched.ledger.stats(), { written: 0, lost: 1, waiting: 0 })
  await watched.ledger.shutdown()
})

t.test('only rows older than the limit are deleted', async t => {
  const file = join(t.testdir(), 'gateway.db')
  const day = 86_400_000
  const now = Date.now()
  {
    await using watched = watch(file)
    for (let n = 0; n < 1200; n += 1) watched.ledger.close(row(`old${n}`, { startedAt: now - 2 * day + n }))
    watched.ledger.close(row('young', { startedAt: now - day / 2 }))
    await watched.ledger.flush()
  }
  await using watched = watch(file, { keep: day })
  // The thread starts to delete at its start; each row here is written after one step of the deletion.
  for (let n = 0; read(file).length > 1 + n; n += 1) {
    watched.ledger.close(row(`new${n}`, { startedAt: now + n }))
    await watched.ledger.flush()
  }
  t.notOk(read(file).some(({ requestId }) => requestId.startsWith('old')))
  t.equal(read(file)[0]?.requestId, 'young')
})

t.test('names are cut to 256 characters, which bounds the memory of waiting rows', async t => {
  const file = join(t.testdir(), 'gateway.db')
  await using watched = watch(file)
  watched.ledger.close(row('a', { model: 'm'.repeat(1_000_000) }))
  await watched.ledger.flush()
  t.equal(read(file)[0]?.model, 'm'.repeat(256))
})

t.test('an open ledger does not keep the process alive', async t => {
  const dir = t.testdir({
    'main.mjs': `
      import { openLedger } from ${JSON.stringify(import.meta.resolve('../../../src/ledger/write/threaded-ledger.ts'))}
      openLedger({ file: process.argv[2], keep: null, onTrouble() {}, onRecovered() {} })`,
  })
  const args = [join(dir, 'main.mjs'), join(dir, 'gateway.db')]
  const child = spawn(process.execPath, args, { stdio: 'inherit' })
  const code = await new Promise(resolve => child.once('exit', resolve))
  t.equal(code, 0)
})
