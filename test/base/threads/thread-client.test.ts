import { once } from 'node:events'
import t from 'tap'
import type { Test } from 'tap'
import { ThreadClient } from '../../../src/base/threads/thread-client.ts'
import type { ThreadOptions } from '../../../src/base/threads/thread-client.ts'
import type { EchoRequest } from './echo.ts'

const SCRIPT = new URL('echo.ts', import.meta.url)

function clientFor(t: Test, options: Partial<ThreadOptions> = {}) {
  const client = new ThreadClient({ name: 'echo', script: SCRIPT, ...options })
  t.teardown(() => client.terminate())
  return {
    client,
    request: (request: EchoRequest, timeoutMs?: number) =>
      client.request(request, timeoutMs === undefined ? {} : { timeoutMs }),
  }
}

t.test('each request gets its own reply, in whatever order the replies arrive', async t => {
  const { client, request } = clientFor(t)
  const order: unknown[] = []
  await Promise.all([request({ pauseMs: 50 }), request({ echo: 'now' })]
    .map(reply => reply.then(value => order.push(value))))
  t.same(order, ['now', 50])
  t.equal(client.pending, 0)
})

t.test('a serial client sends one request at a time', async t => {
  const { request } = clientFor(t, { serial: true })
  const order: unknown[] = []
  await Promise.all([request({ pauseMs: 50 }), request({ echo: 'now' })]
    .map(reply => reply.then(value => order.push(value))))
  t.same(order, [50, 'now'])
})

t.test('an error in the thread rejects only the request that caused the error', async t => {
  const { request } = clientFor(t)
  await t.rejects(request('throw'), {
    reason: 'thrown', message: 'too much', thrown: { name: 'RangeError', code: 'over', field: 'amount' },
  })
  t.equal(await request({ echo: 'still here' }), 'still here')
})

t.test('the end of a thread rejects the running request, and the next request starts another thread', async t => {
  const exits: boolean[] = []
  const { request } = clientFor(t, { serial: true, onExit: (_cause, hasReplied) => exits.push(hasReplied) })
  const [first, second] = [request('exit'), request({ echo: 'again' })]
  await t.rejects(first, { name: 'ThreadError', reason: 'ended' })
  t.equal(await second, 'again')
  await t.rejects(request('exit'), { name: 'ThreadError', reason: 'ended' })
  t.same(exits, [false, true])
})

t.test('a request that times out in the queue is not sent', async t => {
  const { request } = clientFor(t, { serial: true })
  const first = request({ pauseMs: 100 })
  await t.rejects(request('exit', 0), { name: 'ThreadError', reason: 'timeout', message: /within 0 ms/ })
  t.equal(await first, 100)
  t.equal(await request({ echo: 'alive' }), 'alive')
})

t.test('cancel rejects running and waiting requests', async t => {
  const { client, request } = clientFor(t, { serial: true })
  const both = Promise.allSettled([request({ pauseMs: 10 }), request({ echo: 'never' })])
  client.cancel('not now')
  for (const settled of await both) t.match(settled, { status: 'rejected', reason: { reason: 'closed', message: 'not now' } })
})

t.test('close waits for running requests, and rejects them after a time limit', async t => {
  const patient = clientFor(t)
  const last = patient.request({ pauseMs: 50 })
  await patient.client.close()
  t.equal(await last, 50)
  await t.rejects(patient.request({ echo: 'late' }), { name: 'ThreadError', reason: 'closed' })
  await patient.client.close()

  const impatient = clientFor(t)
  const started = once(process, 'worker')
  const cut = t.rejects(impatient.request({ pauseMs: 60_000 }), { name: 'ThreadError', reason: 'closed' })
  await started
  await impatient.client.close(50)
  await cut
})
