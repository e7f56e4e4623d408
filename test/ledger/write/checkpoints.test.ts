import { EventEmitter, once } from 'node:events'
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Worker } from 'node:worker_threads'
import t from 'tap'
import type { Test } from 'tap'
import { Checkpoints } from '../../../src/ledger/write/checkpoints.ts'

/** A database in WAL mode, and the number of rows in a copy without the WAL. */
function database(t: Test) {
  const dir = t.testdir()
  const file = join(dir, 'ledger.db')
  const db = new DatabaseSync(file)
  t.teardown(() => db.close())
  db.exec('PRAGMA journal_mode = WAL; CREATE TABLE rows (n INTEGER) STRICT')
  const copied = () => {
    const copy = join(dir, 'copy.db')
    copyFileSync(file, copy)
    const alone = new DatabaseSync(copy)
    try {
      return alone.prepare('SELECT count(*) AS n FROM rows').get()?.['n']
    } catch {
      return 'no table'
    } finally {
      alone.close()
    }
  }
  return { file, db, copied }
}

t.test('a thread copies the write-ahead log into the database during continuous writes, and ends when writes stop', async t => {
  const { file, db, copied } = database(t)
  const copy = () => t.fail('a thread is to do it')
  const checkpoints = new Checkpoints(file, copy, { start: 1, quiet: Infinity, idle: 1 })
  for (const round of [1, 2]) {
    db.exec(`INSERT INTO rows VALUES (${round})`)
    t.not(copied(), round, 'the row is in the log only')
    const started = once(process, 'worker') as Promise<[Worker]>
    checkpoints.written()
    checkpoints.written()
    const [thread] = await started
    await once(thread, 'exit')
    t.equal(copied(), round, 'a write after the end starts another thread')
  }
})

t.test('a thread that dies is replaced at the next write', async t => {
  const { file, db, copied } = database(t)
  const copy = () => t.fail('a thread is to do it')
  const checkpoints = new Checkpoints(file, copy, { start: 1, quiet: Infinity, idle: 600_000 })
  const start = async () => {
    const started = once(process, 'worker') as Promise<[Worker]>
    checkpoints.written()
    const [thread] = await started
    await once(thread, 'online')
    return thread
  }
  const first = await start()
  await first.terminate()
  db.exec('INSERT INTO rows VALUES (1)')
  const second = await start()
  checkpoints.stop()
  await once(second, 'exit')
  t.equal(copied(), 1)
})

t.test('single writes are copied without a thread', async t => {
  const { file } = database(t)
  const onWorker = () => t.fail('a single write starts no thread')
  process.on('worker', onWorker)
  t.teardown(() => process.removeListener('worker', onWorker))
  const copied = new EventEmitter()
  const copy = () => copied.emit('copied')
  const checkpoints = new Checkpoints(file, copy, { start: 1, quiet: 0, idle: 1 })
  for (const round of [1, 2]) {
    const done = once(copied, 'copied')
    checkpoints.written()
    await done
    t.pass(`round ${round}`)
  }
})

t.test('an incomplete copy is repeated until it is complete; the next write starts another copy', async t => {
  const { file } = database(t)
  const tries = new EventEmitter()
  let count = 0
  const copy = () => {
    tries.emit('try', ++count)
    return count === 3
  }
  const checkpoints = new Checkpoints(file, copy, { start: 1, quiet: 0, idle: 1 })
  const third = new Promise<void>(resolve => tries.on('try', n => { if (n === 3) resolve() }))
  checkpoints.written()
  await third
  const fourth = once(tries, 'try')
  checkpoints.written()
  t.same(await fourth, [4], 'the next copy starts at the next write')
  checkpoints.stop()
})
