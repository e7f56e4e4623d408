import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import t from 'tap'
import { systemClock } from '../../../src/base/clock.ts'
import { GatewayError } from '../../../src/base/errors.ts'
import { UpstreamCall } from '../../../src/proxy/upstream/upstream-call.ts'
import { Deadlines } from '../../../src/proxy/http/deadlines.ts'
import { createProxy } from '../../../src/proxy/upstream/http-proxy.ts'
import { ReadTurns, Reader } from '../../../src/proxy/http/read-turns.ts'
import { createTransport } from '../../../src/proxy/upstream/transport.ts'
import { addressOf, requestWith } from '../../support/upstream-address.ts'

const KB = 1024
const MB = 1024 * KB

t.test('fast responses share a turn of the event loop, and every byte is read', async t => {
  const responses = 40
  const chunks = 4 * KB
  const cell = new Int32Array(new SharedArrayBuffer(4))
  const upstream = new Worker(new URL('threads/full-kernel.ts', import.meta.url), {
    workerData: { cell, responses, chunks },
  })
  t.teardown(() => upstream.terminate())
  const [port] = await once(upstream, 'message') as [number]
  const url = new URL(`http://127.0.0.1:${port}`)
  const transport = createTransport({ origin: url.origin, socketPath: null, connectTimeout: 60_000, ca: null })
  t.teardown(() => transport.destroy())
  const readTurns = new ReadTurns()
  const limits = { connect: 60_000, firstByte: 60_000, idle: 60_000, total: 60_000 }
  let inTurn = 0
  let most = 0
  let all = 0
  const read = () => {
    const deadlines = new Deadlines(systemClock, limits, systemClock.monotonic(), error => call.abort(error))
    const { promise, resolve } = Promise.withResolvers<GatewayError | null>()
    const call = new UpstreamCall({
      upstream: addressOf(url.origin, transport),
      request: requestWith(),
      deadlines,
      readTurns,
      client: null,
      decompresses: false,
      credential: null,
      sink: {
        head: () => null,
        data: ({ length }) => {
          inTurn += length
          all += length
          most = Math.max(most, inTurn)
          return true
        },
        end: () => resolve(null),
        broken: resolve,
      },
    })
    t.teardown(() => deadlines.stop())
    void call.run(createProxy()).then(error => error && resolve(error))
    return promise
  }
  const reading = Promise.all(Array.from({ length: responses }, read))
  let over = false
  const nextTurn = () => {
    inTurn = 0
    // When the kernel buffers are full, all requests are sent and nothing is read yet.
    if (!over) setImmediate(nextTurn)
  }
  setImmediate(nextTurn)
  while (Atomics.load(cell, 0) === 0 && all === 0) await new Promise(resolve => setImmediate(resolve))
  Atomics.wait(cell, 0, 0)
  t.strictSame(await reading, Array(responses).fill(null))
  over = true
  t.equal(all, responses * chunks * KB)
  // The work of a turn, and one read of each response that did not wait for its turn.
  t.ok(most <= MB + responses * 64 * KB, `${Math.round(most / KB)} kB in a turn`)
})

/** Reads a response in pieces of 16 kB in its turns, until `isOver`. Adds its name to `order` at each turn. */
function readAtFullSpeed(turns: ReadTurns, name: string, order: string[], isOver: () => boolean): void {
  const reader = new Reader(() => read())
  const read = () => {
    if (isOver()) return
    order.push(name)
    while (turns.count(reader, 16 * KB));
    turns.waitForTurn(reader)
  }
  read()
}

t.test('waiting responses are read in turn', async t => {
  const turns = new ReadTurns()
  const order: string[] = []
  const over = Promise.withResolvers<void>()
  for (const name of ['a', 'b', 'c']) {
    readAtFullSpeed(turns, name, order, () => {
      if (order.length === 300) over.resolve()
      return order.length === 300
    })
  }
  await over.promise
  t.equal(order.join(''), 'abc'.repeat(100))
})

t.test('a slow response does not wait for fast responses', async t => {
  const turns = new ReadTurns()
  let isOver = false
  for (const name of ['a', 'b']) readAtFullSpeed(turns, name, [], () => isOver)
  const slow = new Reader(() => t.fail('a response that never waits is not resumed'))
  for (let chunk = 0; chunk < 1_000; chunk++) {
    if (!turns.count(slow, 200)) t.fail(`chunk ${chunk} has to wait`)
    await new Promise(resolve => setImmediate(resolve))
  }
  isOver = true
})

t.test('a single response waits once per megabyte', async t => {
  const turns = new ReadTurns()
  const over = Promise.withResolvers<void>()
  let waits = 0
  const reader = new Reader(() => read())
  const read = () => {
    let bytes = 0
    while (turns.count(reader, 31 * KB)) bytes += 31 * KB
    t.ok(bytes > 900 * KB && bytes <= MB, `${bytes} bytes`)
    if (++waits === 3) over.resolve()
    else turns.waitForTurn(reader)
  }
  read()
  await over.promise
})
