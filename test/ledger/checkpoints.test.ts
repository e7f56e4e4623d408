import { once } from 'node:events'
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Worker } from 'node:worker_threads'
import t from 'tap'
import { Checkpoints } from '../../src/ledger/checkpoints.ts'

t.test('what was written is in the database itself once nobody writes, and no thread is left', async t => {
  const dir = t.testdir()
  const file = join(dir, 'ledger.db')
  const db = new DatabaseSync(file)
  t.teardown(() => db.close())
  db.exec('PRAGMA journal_mode = WAL; CREATE TABLE rows (n INTEGER) STRICT')
  /** What a copy of the database without its write-ahead log has. */
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
  const checkpoints = new Checkpoints(file, { start: 1, idle: 1 })
  for (const round of [1, 2]) {
    db.exec(`INSERT INTO rows VALUES (${round})`)
    t.not(copied(), round, 'it is in the log only')
    const started = once(process, 'worker') as Promise<[Worker]>
    checkpoints.written()
    checkpoints.written()
    const [thread] = await started
    await once(thread, 'exit')
    t.equal(copied(), round, 'a write after the end starts another thread')
  }
})
