import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import t from 'tap'
import { isAlive, lockInstance, removeStaleLocks } from '../../../src/ledger/file/instance.ts'
import { acquireLock, isLocked } from '../../../src/ledger/file/lock.ts'

const LOCK = JSON.stringify(import.meta.resolve('../../../src/ledger/file/lock.ts'))

t.test('a lock has at most one holder, and creates a single file', async t => {
  const dir = t.testdir()
  const path = join(dir, 'lock')
  t.notOk(isLocked(path))
  const release = acquireLock(path, 0)
  t.ok(isLocked(path))
  t.throws(() => acquireLock(path, 0), /locked/)
  t.strictSame(readdirSync(dir), ['lock'])
  release()
  t.notOk(isLocked(path))
  t.strictSame(readdirSync(dir), [])
  acquireLock(path, 0)()
})

t.test('the lock of a killed process is free, although the lock file exists', async t => {
  const dir = t.testdir()
  const path = join(dir, 'lock')
  const script = join(dir, 'holder.mjs')
  writeFileSync(script, `
    import { acquireLock } from ${LOCK}
    globalThis.release = acquireLock(${JSON.stringify(path)}, 0)
    process.stdout.write('held')
    setInterval(() => undefined, 1000)`)
  const child = spawn(process.execPath, [script], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(child.stdout, 'data')
  t.ok(isLocked(path))
  child.kill('SIGKILL')
  await once(child, 'exit')
  t.ok(existsSync(path))
  t.notOk(isLocked(path))
  acquireLock(path, 0)()
})

t.test('the lock of an ended thread is free', async t => {
  const path = join(t.testdir(), 'lock')
  const thread = new Worker(`
    const { parentPort } = require('node:worker_threads')
    import(${LOCK}).then(({ acquireLock }) => {
      globalThis.release = acquireLock(${JSON.stringify(path)}, 0)
      parentPort.postMessage('held')
      setInterval(() => undefined, 1000)
    })`, { eval: true, execArgv: [] })
  await once(thread, 'message')
  t.ok(isLocked(path))
  await thread.terminate()
  t.notOk(isLocked(path))
})

t.test('after a process waits for a lock and gets it, other processes see the lock as held', async t => {
  const dir = t.testdir()
  const path = join(dir, 'lock')
  const release = acquireLock(path, 0)
  const script = join(dir, 'waiter.mjs')
  writeFileSync(script, `
    import { acquireLock } from ${LOCK}
    process.stdout.write('waiting')
    globalThis.release = acquireLock(${JSON.stringify(path)}, 20_000)
    process.stdout.write('held')
    setInterval(() => undefined, 1000)`)
  const child = spawn(process.execPath, [script], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  await once(child.stdout, 'data')
  release()
  await once(child.stdout, 'data')
  t.ok(isLocked(path))
})

t.test('locks of dead instances are removed, and locks of live instances stay', async t => {
  const dir = t.testdir()
  const ledger = join(dir, 'gateway.db')
  const end = lockInstance(ledger, 'living')
  writeFileSync(`${ledger}-live-dead`, '')
  writeFileSync(join(dir, 'other.db-live-dead'), '')
  t.ok(isAlive(ledger, 'living'))
  t.notOk(isAlive(ledger, 'dead'))
  t.notOk(isAlive(ledger, 'never heard of'))
  removeStaleLocks(ledger)
  t.strictSame(readdirSync(dir).sort(), ['gateway.db-live-living', 'other.db-live-dead'])
  end()
  t.notOk(isAlive(ledger, 'living'))
})
