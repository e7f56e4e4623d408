import cluster from 'node:cluster'
import { EventEmitter, on } from 'node:events'
import { Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { pino } from 'pino'
import t from 'tap'
import { supervise } from '../../src/gateway/supervisor.ts'
import type { WorkerStart } from '../../src/gateway/worker-messages.ts'

const { execPath } = process
cluster.setupPrimary({ exec: fileURLToPath(new URL('idle-worker.ts', import.meta.url)), execArgv: [] })

t.afterEach(() => {
  process.execPath = execPath
})

/** A supervisor of one worker, and its log. */
function start() {
  const lines = new EventEmitter()
  const sink = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines.emit('line', JSON.parse(String(chunk)))
      done()
    },
  })
  const said = on(lines, 'line')
  const log = pino({}, sink)
  return {
    supervisor: supervise(1, 0, { text: '', start: { telemetry: { prometheus: null, otlp: null }, cluster: null } } as WorkerStart, { log, version: '0' }),
    /** Resolves with the next log line with this message. */
    async said(msg: string): Promise<Record<string, unknown>> {
      for (;;) {
        const { value: [line] } = await said.next() as { value: [Record<string, unknown>] }
        if (line['msg'] === msg) return line
      }
    },
  }
}

// Node reports ENOENT with an event, and throws ENOTDIR and errors about missing memory.
for (const [path, code] of [['/nowhere/node', 'ENOENT'], ['/dev/null/node', 'ENOTDIR']] as const) {
  t.test(`the supervisor retries the start of a replacement worker after ${code}`, async t => {
    const { supervisor, said } = start()
    t.ok(await supervisor.ready)
    process.execPath = path
    Object.values(cluster.workers ?? {})[0]?.process.kill('SIGKILL')
    t.match(await said('worker could not be started'), { err: { code } })
    process.execPath = execPath
    await said('worker listens again')
    supervisor.close()
    t.notOk(await supervisor.ended)
  })

  t.test(`the supervisor ends if the start of its first worker fails with ${code}`, async t => {
    process.execPath = path
    const { supervisor, said } = start()
    await said('worker could not be started')
    t.equal(await supervisor.ready, null)
    t.ok(await supervisor.ended)
  })
}

t.test('a status query to a worker removes its listeners', async t => {
  const { supervisor } = start()
  t.ok(await supervisor.ready)
  const [worker] = Object.values(cluster.workers ?? {})
  const before = worker?.listenerCount('exit')
  await supervisor.status()
  t.equal(worker?.listenerCount('exit'), before)
  supervisor.close()
  t.notOk(await supervisor.ended)
})
