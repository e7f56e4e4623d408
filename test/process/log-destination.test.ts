import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, createReadStream, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t from 'tap'
import type { Test } from 'tap'
import { LogDestination } from '../../src/process/log-destination.ts'

const LINE = `${'x'.repeat(99)}\n`

/** A pipe that holds 64 kB and is open at both ends, so that a writer waits for a reader until the test ends. */
function pipe(t: Test): { path: string; fd: number } {
  const path = join(t.testdir(), 'pipe')
  execFileSync('mkfifo', [path])
  const fd = openSync(path, constants.O_RDWR)
  t.teardown(() => closeSync(fd))
  return { path, fd }
}

t.test('all log lines are written completely and in order', async t => {
  for (const count of [1, 1_000]) {
    const path = join(t.testdir(), 'log')
    const lines = new LogDestination(openSync(path, 'w'))
    let expected = ''
    for (let i = 0; i < count; i++) {
      const line = `${i} ü\n`
      expected += line
      lines.write(line)
    }
    await lines.flush()
    t.equal(readFileSync(path, 'utf8'), expected)
  }
})

t.test('a control character in a log line is escaped', async t => {
  const path = join(t.testdir(), 'log')
  const lines = new LogDestination(openSync(path, 'w'))
  lines.write('{"model":"a\u009b31m"}\n')
  await lines.flush()
  t.equal(readFileSync(path, 'utf8'), '{"model":"a\\u009b31m"}\n')
})

t.test('a line is written even if no other line follows', async t => {
  const { path, fd } = pipe(t)
  const reader = createInterface(createReadStream(path))
  new LogDestination(fd).write('alone\n')
  t.same(await once(reader, 'line'), ['alone'])
})

t.test('flushSync writes the last line immediately', async t => {
  const path = join(t.testdir(), 'log')
  const lines = new LogDestination(openSync(path, 'w'))
  lines.write('the last\n')
  lines.flushSync()
  t.equal(readFileSync(path, 'utf8'), 'the last\n')
})

t.test('if the pipe is not read, lines above the limit are dropped and their number is reported', async t => {
  const { path, fd } = pipe(t)
  const lines = new LogDestination(fd, 1024 * 1024)
  const count = 50_000
  for (let i = 0; i < count; i++) lines.write(LINE)
  const flushed = lines.flush()
  const dropped = once(lines, 'dropped')
  let read = 0
  const reader = createReadStream(path)
  reader.on('data', bytes => { read += bytes.length })
  const [lost] = await dropped as [number]
  await flushed
  t.ok(lost > 30_000, `${lost} lines`)
  lines.write('the end\n')
  await lines.flush()
  const expected = (count - lost) * LINE.length + 'the end\n'.length
  while (read < expected) await once(reader, 'data')
  t.equal(read, expected)
})

t.test('a closed pipe causes no error', async t => {
  const dir = t.testdir()
  const path = join(dir, 'pipe')
  execFileSync('mkfifo', [path])
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const lines = new LogDestination(openSync(path, constants.O_WRONLY))
  closeSync(reader)
  for (let i = 0; i < 3; i++) {
    lines.write(LINE)
    await lines.flush()
  }
  lines.flushSync()
})

t.test('a slow reader of a non-blocking pipe gets all lines', async t => {
  const path = join(t.testdir(), 'pipe')
  execFileSync('mkfifo', [path])
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  // Non-blocking, as node opens its standard output if it is a pipe.
  const fd = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)
  const lines = new LogDestination(fd)
  const count = 5_000
  for (let i = 0; i < count; i++) lines.write(`${i}\n${LINE}`)
  const flushed = lines.flush()
  let text = ''
  for await (const chunk of createReadStream('', { fd: openSync(path, 'r'), encoding: 'utf8' })) {
    text += chunk
    if (text.includes(`${count - 1}\n${LINE}`)) break
  }
  await flushed
  for (const each of [reader, fd]) closeSync(each)
  const numbers = text.split('\n').filter(line => /^\d+$/.test(line)).map(Number)
  t.same(numbers, Array.from({ length: count }, (_, i) => i))
})
