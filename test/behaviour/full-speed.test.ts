import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Worker } from 'node:worker_threads'
import t from 'tap'
import type { Test } from 'tap'
import { startTestGateway } from '../support/gateway.ts'
import { post, proxyTo } from '../support/wire.ts'
import type { ClientsOrder } from './threads/full-speed-peers.ts'

const KB = 1024
/** Turns of the event loop without progress. */
const STILL_TURNS = 100

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/** Sockets that this process opens or accepts while the test runs. */
function watchSockets(t: Test, channel: 'net.client.socket' | 'net.server.socket'): Socket[] {
  const sockets: Socket[] = []
  const add = (message: unknown) => void sockets.push((message as { socket: Socket }).socket)
  subscribe(channel, add)
  t.teardown(() => unsubscribe(channel, add))
  return sockets
}

/** A gateway with an upstream that sends at full speed, and with clients that do not read. */
async function stalledStreams(t: Test) {
  const worker = new Worker(new URL('threads/full-speed-peers.ts', import.meta.url))
  t.teardown(() => worker.terminate())
  const [port] = await once(worker, 'message') as [number]
  const gateway = await startTestGateway(t, proxyTo(`http://127.0.0.1:${port}`))
  const upstreams = watchSockets(t, 'net.client.socket')
  const clients = watchSockets(t, 'net.server.socket')
  const request = post('/v1/chat/completions', { model: 'm', stream: true, messages: [] })
  /** Opens `count` more streams; settles when no stream makes progress. */
  const open = async (count: number) => {
    const expected = upstreams.length + count
    worker.postMessage({ port: Number(new URL(gateway.url).port), count, request } satisfies ClientsOrder, [])
    let last = -1
    for (let turns = 0; turns < STILL_TURNS; turns++) {
      await wait(1)
      const read = upstreams.reduce((sum, { bytesRead }) => sum + bytesRead, 0)
      if (read !== last || upstreams.length < expected) turns = 0
      last = read
    }
  }
  return { upstreams, clients, open }
}

/** @returns used bytes outside of V8's heap */
async function bytesInUse(): Promise<number> {
  collectGarbage()
  // V8 frees the bytes in another thread.
  collectGarbage()
  return process.memoryUsage().arrayBuffers
}

t.test('the gateway buffers at most 192 kB of a stream whose client does not read', async t => {
  const { upstreams, clients, open } = await stalledStreams(t)
  await open(1)
  const [upstream, client] = [upstreams[0] as Socket, clients[0] as Socket]
  const held = upstream.bytesRead - (client.bytesWritten - client.writableLength)
  t.ok(held <= 192 * KB, `${Math.round(held / KB)} kB`)
})

t.test('each stream whose client does not read uses at most 320 kB of memory', async t => {
  const count = 50
  const { open } = await stalledStreams(t)
  // Opens one stream first, for the parser and other parts that all streams share.
  await open(1)
  const before = await bytesInUse()
  await open(count)
  const kept = (await bytesInUse() - before) / count
  t.ok(kept <= 320 * KB, `${Math.round(kept / KB)} kB for each`)
})
