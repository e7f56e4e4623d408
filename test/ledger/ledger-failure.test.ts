import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync, chownSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, rmdirSync, writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Worker } from 'node:worker_threads'
import t from 'tap'
import { openReader } from '../../src/ledger/read/file-reader.ts'
import { StoreError } from '../../src/base/files/store-error.ts'
import { toLedgerFailure } from '../../src/ledger/ledger-failure.ts'
import { draft, MIDNIGHT, UNBINDABLE, row } from './rows.ts'
import { watch } from './watched.ts'

/** A user that every system has. */
const NOBODY = 65_534

function ids(file: string): string[] {
  using reader = openReader(file)
  return [...reader.rows({})].map(({ requestId }) => requestId)
}

t.test('while the file is locked, rows wait, the operator is alerted and no row is lost', async t => {
  const file = join(t.testdir(), 'gateway.db')
  await using watched = watch(file)
  const { ledger } = watched
  ledger.close(row('before'))
  await ledger.flush()
  const other = new DatabaseSync(file)
  other.exec('BEGIN EXCLUSIVE')
  const entry = ledger.open(() => draft('during', { startedAt: MIDNIGHT + 1 }))
  ledger.close(row('during', { startedAt: MIDNIGHT + 1 }), entry)
  await watched.heard('locked')
  t.match(ledger.stats(), { written: 1, waiting: 1, lost: 0, healthy: false, lastError: { code: 'locked' } })
  other.exec('ROLLBACK')
  other.close()
  await ledger.flush()
  await watched.heard('recovered')
  t.strictSame(ids(file), ['before', 'during'])
  t.match(ledger.stats(), { written: 2, waiting: 0, lost: 0, healthy: true })
})

t.test('a directory in place of the file is reported, and rows are written after the directory is removed', async t => {
  const file = join(t.testdir({ 'gateway.db': {} }), 'gateway.db')
  await using watched = watch(file)
  const { ledger } = watched
  await watched.heard('unwritable')
  t.match(ledger.stats().lastError, { message: /this is a directory/ })
  ledger.close(row('early'))
  rmdirSync(file)
  await ledger.flush()
  t.strictSame(ids(file), ['early'])
})

t.test('the memory for waiting rows is bounded, and dropped rows are counted', async t => {
  const dir = t.testdir({ data: 'a file where the directory should be' })
  const file = join(dir, 'data', 'gateway.db')
  await using watched = watch(file, { maxWaiting: 10 })
  const { ledger } = watched
  await watched.heard('unwritable')
  for (let n = 0; n < 8; n += 1) ledger.close(row(`kept${n}`, { startedAt: MIDNIGHT + n }))
  const late = [8, 9, 10, 11].map(n => ({
    n, entry: ledger.open(() => draft(`kept${n}`, { startedAt: MIDNIGHT + n })),
  }))
  t.match(ledger.stats(), { waiting: 10, lost: 0 }, 'a checkpoint that does not fit does not count as lost')
  for (const { n, entry } of late) ledger.close(row(`kept${n}`, { startedAt: MIDNIGHT + n }), entry)
  for (let n = 0; n < 5; n += 1) ledger.close(row(`lost${n}`))
  await watched.heard('overflow')
  t.match(ledger.stats(), { written: 0, waiting: 10, lost: 7, healthy: false })
  rmSync(join(dir, 'data'))
  await ledger.flush()
  await watched.heard('recovered')
  t.strictSame(ids(file), Array.from({ length: 10 }, (_, n) => `kept${n}`))
  t.match(ledger.stats(), { written: 10, waiting: 0, lost: 7, healthy: true })
  t.equal(watched.told.filter(one => one !== 'recovered' && one.code === 'overflow').length, 1, 'told once')
})

t.test('rows that are unwritten at shutdown are counted as lost', async t => {
  const dir = t.testdir({ data: 'a file where the directory should be' })
  const watched = watch(join(dir, 'data', 'gateway.db'))
  await watched.heard('unwritable')
  for (let n = 0; n < 3; n += 1) watched.ledger.close(row(`r${n}`))
  watched.ledger.open(() => draft('running'))
  const flushed = watched.ledger.flush()
  await watched.ledger.shutdown(20)
  await flushed
  t.match(watched.ledger.stats(), { written: 0, waiting: 0, lost: 3, lastError: { code: 'shutdown' } })
})

t.test('shutdown tries once more to write to an unwritable file, and then ends without waiting', async t => {
  for (const fixed of [false, true]) {
    const dir = t.testdir({ data: 'a file where the directory should be' })
    const file = join(dir, 'data', 'gateway.db')
    const { ledger, heard } = watch(file)
    await heard('unwritable')
    for (let n = 0; n < 3; n += 1) ledger.close(row(`r${n}`, { startedAt: MIDNIGHT + n }))
    if (fixed) rmSync(join(dir, 'data'))
    const began = performance.now()
    await ledger.shutdown()
    t.ok(performance.now() - began < 4_000, 'shutdown does not wait 5 s')
    t.match(ledger.stats(), fixed ? { written: 3, lost: 0 } : { written: 0, lost: 3 })
    if (fixed) t.strictSame(ids(file), ['r0', 'r1', 'r2'])
  }
})

for (const [what, content] of [
  ['text', 'this is no database '.repeat(1000)],
  ['a few bytes', 'oops'],
  ['the start of a database followed by noise', `SQLite format 3\0${'\x10\0\x01\x01\0@ \xff'.repeat(2000)}`],
] as const) {
  t.test(`a file with ${what} is kept byte for byte, and a new ledger is started`, async t => {
    const bytes = Buffer.from(content, 'latin1')
    const dir = t.testdir()
    const file = join(dir, 'gateway.db')
    writeFileSync(file, bytes)
    await using watched = watch(file)
    watched.ledger.close(row('a'))
    await watched.ledger.flush()
    await watched.heard('recovered')
    t.match(watched.told, [{ code: 'corrupt', message: /gateway\.db\.corrupt-\d{8}T\d{6}Z/ }, 'recovered'])
    t.strictSame(ids(file), ['a'])
    const kept = readdirSync(dir).filter(name => name.includes('.corrupt-'))
    t.equal(kept.length, 1)
    t.ok(readFileSync(join(dir, kept[0] ?? '')).equals(bytes))
  })
}

t.test('a ledger that becomes corrupt while open is kept with its log, and a new ledger is started', async t => {
  const dir = t.testdir()
  const file = join(dir, 'gateway.db')
  await using watched = watch(file)
  const { ledger } = watched
  // More rows than the page cache holds, so that SQLite reads pages again.
  for (let n = 0; n < 20_000; n += 1) ledger.close(row(`before${n}`, { key: `key${n * 7919 % 20_000}` }))
  await ledger.flush()
  const other = new DatabaseSync(file)
  other.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  other.close()
  const size = readFileSync(file).length
  // The inode stays the same, so that only a read finds the damage.
  const noise = Buffer.alloc(size - 4096, 0xee)
  writeFileSync(file, Buffer.concat([readFileSync(file).subarray(0, 4096), noise]), { flag: 'r+' })
  for (let n = 0; n < 1000; n += 1) {
    ledger.close(row(`after${n}`, { startedAt: MIDNIGHT + n, key: `key${n}` }))
  }
  await watched.heard('corrupt')
  await ledger.flush()
  t.strictSame(ids(file), Array.from({ length: 1000 }, (_, n) => `after${n}`))
  t.match(ledger.stats(), { written: 21_000, waiting: 0, lost: 0, healthy: true })
  const kept = readdirSync(dir).filter(name => /\.corrupt-[^-]+$/.test(name))
  t.equal(kept.length, 1)
  // SQLite may have written a part of its WAL into the file.
  t.ok(readFileSync(join(dir, kept[0] ?? '')).includes(noise.subarray(0, 64 * 1024)))
})

t.test('the database of another program is not changed', async t => {
  const file = join(t.testdir(), 'other.db')
  const other = new DatabaseSync(file)
  other.exec('CREATE TABLE precious (it TEXT)')
  other.close()
  const bytes = readFileSync(file)
  const watched = watch(file)
  watched.ledger.close(row('a'))
  await watched.heard('foreign')
  await watched.ledger.shutdown(20)
  t.equal(watched.ledger.stats().lost, 1)
  t.ok(readFileSync(file).equals(bytes))
})

t.test('a ledger of a newer version is not changed', async t => {
  const file = join(t.testdir(), 'gateway.db')
  await watch(file).ledger.shutdown()
  const newer = new DatabaseSync(file)
  newer.exec('PRAGMA user_version = 1000')
  newer.close()
  const watched = watch(file)
  watched.ledger.close(row('a'))
  await watched.heard('newer')
  await watched.ledger.shutdown(20)
  t.match(watched.told[0], { code: 'newer', message: /version 1000/ })
})

for (const what of ['deleted', 'moved away'] as const) {
  t.test(`a ledger file that is ${what} while open is created again`, async t => {
    const file = join(t.testdir(), 'gateway.db')
    await using watched = watch(file)
    const { ledger } = watched
    const entry = ledger.open(() => draft('across', { startedAt: MIDNIGHT + 1 }))
    ledger.close(row('before'))
    await ledger.flush()
    if (what === 'deleted') rmSync(file)
    else renameSync(file, `${file}.old`)
    ledger.close(row('across', { startedAt: MIDNIGHT + 1 }), entry)
    await ledger.flush()
    await watched.heard('recovered')
    t.match(watched.told, [{ code: 'moved' }, 'recovered'])
    t.strictSame(ids(file), ['across'])
    ledger.close(row('after', { startedAt: MIDNIGHT + 2 }))
    await ledger.flush()
    t.strictSame(ids(file), ['across', 'after'])
    // The old file still has the checkpoint of the running request, because the process no longer writes there.
    if (what === 'moved away') t.strictSame(ids(`${file}.old`), ['before', 'across'])
  })
}

t.test('a directory that is deleted while the ledger is open is created again', async t => {
  const dir = join(t.testdir(), 'data')
  const file = join(dir, 'gateway.db')
  await using watched = watch(file)
  watched.ledger.close(row('before'))
  await watched.ledger.flush()
  rmSync(dir, { recursive: true })
  watched.ledger.close(row('after'))
  await watched.ledger.flush()
  t.strictSame(ids(file), ['after'])
})

t.test('rows wait while the directory is replaced by a file', async t => {
  const dir = join(t.testdir(), 'data')
  const file = join(dir, 'gateway.db')
  await using watched = watch(file)
  const { ledger } = watched
  ledger.close(row('before'))
  await ledger.flush()
  // A file in place of the directory prevents writes, even for root, like a read-only file system.
  renameSync(dir, `${dir}.away`)
  writeFileSync(dir, '')
  ledger.close(row('during', { startedAt: MIDNIGHT + 1 }))
  await watched.heard('unwritable')
  rmSync(dir)
  renameSync(`${dir}.away`, dir)
  await ledger.flush()
  t.strictSame(ids(file), ['before', 'during'])
  t.strictSame(watched.told.filter(one => one !== 'recovered' && one.code === 'crash'), [],
    'the writing thread is no part of the trouble')
})

t.test('a writing thread that dies is restarted, and no row is lost or doubled', async t => {
  const threads: Worker[] = []
  const onWorker = (worker: Worker) => threads.push(worker)
  process.on('worker', onWorker)
  // Keeps the process alive, because an ending thread without unwritten rows does not.
  const alive = setInterval(() => undefined, 1000)
  t.teardown(() => {
    process.off('worker', onWorker)
    clearInterval(alive)
  })
  const file = join(t.testdir(), 'gateway.db')
  await using watched = watch(file)
  const { ledger } = watched
  const rows = 6000
  ledger.close(row('r0'))
  await ledger.flush()
  for (let n = 1; n < rows; n += 1) {
    ledger.close(row(`r${n}`, { startedAt: MIDNIGHT + n }))
    if (n % 2000 !== 999) continue
    // Ends the thread while it writes the rows of the flush.
    const flushed = ledger.flush()
    const thread = threads.at(-1)
    if (thread !== undefined) {
      const ended = once(thread, 'exit')
      void thread.terminate()
      await ended
    }
    await flushed
    if (threads.at(-1) === thread) await once(process, 'worker')
  }
  await ledger.flush()
  t.equal(threads.length, 4)
  t.strictSame(ids(file), Array.from({ length: rows }, (_, n) => `r${n}`))
  t.match(ledger.stats(), { written: rows, waiting: 0, lost: 0, healthy: true, lastError: { code: 'crash' } })
})

t.test('a row that SQLite refuses does not affect other rows', async t => {
  const file = join(t.testdir(), 'gateway.db')
  await using watched = watch(file)
  const { ledger } = watched
  ledger.close(row('a'))
  ledger.close(row('unbindable', UNBINDABLE))
  ledger.close(row('no time', { startedAt: NaN }))
  ledger.close(row('b'))
  await ledger.flush()
  t.strictSame(ids(file), ['a', 'b'])
  t.match(ledger.stats(), { written: 2, waiting: 0, lost: 2, healthy: true, lastError: { code: 'row' } })
})

t.test('rows wait while the disk is full, and are written when there is space', async t => {
  const dir = mkdtempSync(join(tmpdir(), 'ledger-'))
  t.teardown(() => rmSync(dir, { recursive: true }))
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=400k', 'tmpfs', dir], { stdio: 'ignore' })
  } catch {
    t.comment('skipped: no right to mount a small disk')
    return
  }
  t.teardown(() => execFileSync('umount', ['-l', dir]))
  const file = join(dir, 'gateway.db')
  await using watched = watch(file)
  const { ledger } = watched
  ledger.close(row('r0'))
  await ledger.flush()
  const rows = 5000
  for (let n = 1; n < rows; n += 1) ledger.close(row(`r${n}`, { startedAt: MIDNIGHT + n }))
  await watched.heard('full')
  t.match(ledger.stats(), { lost: 0, healthy: false, lastError: { code: 'full' } })
  execFileSync('mount', ['-o', 'remount,size=64m', dir])
  await ledger.flush()
  await watched.heard('recovered')
  t.strictSame(ids(file), Array.from({ length: rows }, (_, n) => `r${n}`))
  t.match(ledger.stats(), { written: rows, waiting: 0, lost: 0, healthy: true })
})

t.test('rows wait while the file system is read-only, and are written after a writable one is mounted', async t => {
  const dir = mkdtempSync(join(tmpdir(), 'ledger-'))
  t.teardown(() => rmSync(dir, { recursive: true }))
  const [image, disk] = [join(dir, 'image'), join(dir, 'disk')]
  mkdirSync(disk)
  const turnReadOnly = mountExt4(image, disk)
  if (turnReadOnly === null) {
    t.comment('skipped: no right to mount an ext4 image, or no mkfs.ext4')
    return
  }
  let isMounted = true
  const unmount = () => {
    if (isMounted) execFileSync('umount', ['-l', disk])
    isMounted = false
  }
  t.teardown(unmount)
  const file = join(disk, 'gateway.db')
  await using watched = watch(file)
  const { ledger } = watched
  ledger.close(row('before'))
  await ledger.flush()
  const entry = ledger.open(() => draft('across', { startedAt: MIDNIGHT + 1 }))
  turnReadOnly()
  ledger.close(row('across', { startedAt: MIDNIGHT + 1 }), entry)
  for (let n = 0; n < 100; n += 1) ledger.close(row(`during${n}`, { startedAt: MIDNIGHT + 2 + n }))
  await watched.heard('unwritable')
  t.match(ledger.stats(), { written: 1, waiting: 101, lost: 0, healthy: false, lastError: { code: 'unwritable' } })
  t.strictSame(ids(file), ['before'], 'what was written can be read')
  unmount()
  await ledger.flush()
  await watched.heard('recovered')
  t.strictSame(ids(file), ['across', ...Array.from({ length: 100 }, (_, n) => `during${n}`)])
  t.match(ledger.stats(), { written: 102, waiting: 0, lost: 0, healthy: true })
})

/** Mounts a new file system. @returns makes it read-only, as a disk error does; null = a mount is not possible here */
function mountExt4(image: string, directory: string): (() => void) | null {
  try {
    execFileSync('truncate', ['-s', '16M', image], { stdio: 'ignore' })
    execFileSync('mkfs.ext4', ['-q', image], { stdio: 'ignore' })
    execFileSync('mount', ['-o', 'loop,errors=remount-ro', image, directory], { stdio: 'ignore' })
  } catch {
    return null
  }
  const device = execFileSync('findmnt', ['-no', 'SOURCE', directory], { encoding: 'utf8' }).trim()
  return () => writeFileSync(`/sys/fs/ext4/${basename(device)}/trigger_fs_error`, '1')
}

for (const [what, mode] of [['with mode 600', 0o600], ['with mode 644', 0o644]] as const) {
  t.test(`a ledger of another owner ${what} is reported and not changed, and rows wait`, async t => {
    if (process.getuid?.() !== 0) {
      t.comment('skipped: only the superuser can change the owner of a file')
      return
    }
    const dir = mkdtempSync(join(tmpdir(), 'ledger-'))
    t.teardown(() => rmSync(dir, { recursive: true }))
    chmodSync(dir, 0o777)
    const file = join(dir, 'gateway.db')
    const owners = watch(file)
    owners.ledger.close(row('theirs'))
    await owners.ledger.shutdown()
    chmodSync(file, mode)
    process.seteuid?.(NOBODY)
    t.teardown(() => process.seteuid?.(0))
    await using watched = watch(file)
    const { ledger } = watched
    ledger.close(row('ours', { startedAt: MIDNIGHT + 1 }))
    await watched.heard('unwritable')
    t.match(ledger.stats(), { written: 0, waiting: 1, lost: 0, healthy: false })
    t.match(ledger.stats().lastError?.message, /another user/)
    t.strictSame(readdirSync(dir).filter(name => name.includes('corrupt')), [], 'it is not moved away')
    process.seteuid?.(0)
    chownSync(file, NOBODY, NOBODY)
    process.seteuid?.(NOBODY)
    await ledger.flush()
    await watched.heard('recovered')
    t.strictSame(ids(file), ['theirs', 'ours'])
  })
}

t.test('an error of Node.js or SQLite becomes the failure code that says what the operator can do', async t => {
  const dir = t.testdir({ directory: {} })
  const thrown = (work: () => void): unknown => {
    try {
      work()
    } catch (error) {
      return error
    }
    throw new Error('nothing was thrown')
  }
  t.equal(toLedgerFailure(thrown(() => new DatabaseSync(join(dir, 'directory')))).code, 'unwritable')
  t.equal(toLedgerFailure(thrown(() => mkdirSync(join(dir, 'directory')))).code, 'unwritable')
  t.strictSame(toLedgerFailure(new StoreError('newer', 'of tomorrow')), { code: 'newer', message: 'of tomorrow' })
  t.strictSame(toLedgerFailure('a string'), { code: 'unwritable', message: 'a string' })
  t.equal(toLedgerFailure(Object.assign(new Error('no space'), { code: 'ENOSPC' })).code, 'full')
  const db = new DatabaseSync(':memory:')
  db.exec('CREATE TABLE strict (n INTEGER NOT NULL) STRICT')
  const insert = db.prepare('INSERT INTO strict VALUES (?)')
  t.equal(toLedgerFailure(thrown(() => insert.run('x'))).code, 'row')
  t.equal(toLedgerFailure(thrown(() => insert.run(null))).code, 'row')
  t.equal(toLedgerFailure(thrown(() => insert.run(2n ** 64n))).code, 'row')
})
