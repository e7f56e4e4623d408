import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { pbkdf2 } from 'node:crypto'
import { once } from 'node:events'
import { closeSync, constants, openSync, readFileSync, readSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { LogDestination } from '../../../src/process/log-destination.ts'
import { GATEWAY } from '../../cli/command.ts'

const linux = process.platform === 'linux' ? false : 'only there can a pipe be opened anew'
const MODULE = new URL('../../../src/process/log-destination.ts', import.meta.url)

/**
 * Keeps the threads busy that write without waiting, so that what is left to them is not there by chance.
 * @returns resolves when they are free
 */
function keepThreadsBusy(t: Test): Promise<unknown> {
  const ended = Promise.all(Array.from({ length: 8 }, () => {
    return new Promise(resolve => pbkdf2('a', 'b', 200_000, 64, 'sha512', resolve))
  }))
  t.teardown(() => ended)
  return ended
}

/** A log that writes to a file, and the current text of that file. */
function logAt(t: Test) {
  const path = join(t.testdir(), 'log')
  const lines = new LogDestination(openSync(path, 'w'))
  return { lines, written: () => readFileSync(path, 'utf8') }
}

t.test('flushSync writes all lines even if all threads of the thread pool are busy', async t => {
  const { lines, written } = logAt(t)
  void keepThreadsBusy(t)
  lines.write('the last\n')
  lines.flushSync()
  t.equal(written(), 'the last\n')
})

t.test('flushSync during a running write neither loses nor repeats a line', async t => {
  const { lines, written } = logAt(t)
  const busy = keepThreadsBusy(t)
  const numbers = Array.from({ length: 400 }, (_, i) => String(i))
  for (const number of numbers) lines.write(`${number} ${'x'.repeat(90)}\n`)
  lines.flushSync()
  // A flush waits only for a limited time.
  await busy
  await lines.flush()
  const said = written().trimEnd().split('\n').map(line => Number(line.replace(/ x+$/, '')))
  t.same(said.toSorted((a, b) => a - b), numbers.map(Number))
})

t.test('a process whose log is on a full disk still exits', async t => {
  const program = `
    const { LogDestination } = await import(${JSON.stringify(MODULE.href)})
    const lines = new LogDestination(1)
    process.once('exit', () => lines.flushSync())
    for (let i = 0; i < 1000; i++) lines.write('x'.repeat(99) + '\\n')
    await lines.flush()
    process.exit(3)`
  const full = openSync('/dev/full', 'w')
  t.teardown(() => closeSync(full))
  const args = ['--input-type=module', '--eval', program]
  const { status } = spawnSync(process.execPath, args, {
    stdio: ['ignore', full, 'ignore'], timeout: 60_000, killSignal: 'SIGKILL',
  })
  t.equal(status, 3, 'on a full disk')
})

t.test('workers whose log is a full pipe exit on SIGTERM', { skip: linux }, async t => {
  const dir = t.testdir({
    'gateway.yaml': `
server: { listen: 127.0.0.1:0, workers: 2 }
upstreams: { sim: { simulator: true } }
routes: [{ to: sim }]
auth: open
`,
  })
  const pipe = join(dir, 'log')
  execFileSync('mkfifo', [pipe])
  // Opens both ends of the pipe, so that the pipe stays open.
  const reader = openSync(pipe, 'r+')
  const log = openSync(pipe, 'w')
  t.teardown(() => {
    for (const fd of [reader, log]) closeSync(fd)
  })
  const args = ['-i', process.execPath, GATEWAY, 'serve', '--config', join(dir, 'gateway.yaml')]
  const child = spawn('env', args, { stdio: ['ignore', log, 'ignore'] })
  t.teardown(() => child.kill('SIGKILL'))
  const read = Buffer.alloc(65_536)
  for (let said = ''; !said.includes('"listening"');) {
    said += read.toString('latin1', 0, readSync(reader, read))
  }
  fill(pipe)
  child.kill('SIGTERM')
  const [code] = await once(child, 'exit')
  t.equal(code, 0)
})

function fill(pipe: string): void {
  const fd = openSync(pipe, constants.O_WRONLY | constants.O_NONBLOCK)
  for (const size of [4096, 1]) {
    try {
      for (;;) writeSync(fd, Buffer.alloc(size))
    } catch {
      // The pipe has no room for a piece of this size.
    }
  }
  closeSync(fd)
}
