import { once } from 'node:events'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import type { Test } from 'tap'
import { SupervisedThread } from '../../../src/base/threads/supervised-thread.ts'

const ECHO = `import { parentPort } from 'node:worker_threads'
parentPort.on('message', message => {
  if (message === 'close') parentPort.close()
  else if (message === 'die') process.exit(1)
  else if (message === 'throw') throw new Error('boom')
  else if (message !== 'ignore') parentPort.postMessage(message)
})`
const DEAD = "throw new Error('no start')"
const DEAF = "import { parentPort } from 'node:worker_threads'\nparentPort.on('message', () => undefined)"

function supervised(t: Test, text: string) {
  const script = pathToFileURL(join(t.testdir({ 'thread.mjs': text }), 'thread.mjs'))
  const events: string[] = []
  const { promise: replied, resolve } = Promise.withResolvers<void>()
  const thread = new SupervisedThread<string>({
    name: 'test', script, restartDelayMs: [1, 4],
    onMessage: message => {
      events.push(message)
      resolve()
    },
    onDeath: cause => events.push(`died: ${cause}`),
    onRestart: () => {
      events.push('restarted')
      thread.post('again')
    },
  })
  thread.keepAlive(true)
  return { thread, events, replied }
}

t.test('a thread that fails is reported and restarted, and onRestart can post messages again', async t => {
  const { thread, events, replied } = supervised(t, ECHO)
  thread.post('throw')
  await replied
  t.strictSame(events, ['died: boom', 'restarted', 'again'])
  await thread.close(10_000)
  t.equal(events.length, 3, 'the end after `close` is not reported as a failure')
})

t.test('a thread that fails during its start is reported and restarted', async t => {
  const { thread, events } = supervised(t, DEAD)
  for (let started = 0; started < 3; started += 1) await once(process, 'worker')
  t.strictSame(events.slice(0, 3), ['died: no start', 'restarted', 'died: no start'])
  await thread.close(10_000)
})

t.test('a closed thread that does not end in time is terminated and not restarted', async t => {
  const { thread, events } = supervised(t, DEAF)
  await thread.close(1)
  t.strictSame(events, [])
})
