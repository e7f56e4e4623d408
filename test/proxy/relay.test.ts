import { once } from 'node:events'
import * as http from 'node:http'
import * as net from 'node:net'
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import type { Test } from 'tap'
import { GatewayError } from '../../src/errors.ts'
import { Deadlines } from '../../src/proxy/deadlines.ts'
import type { Observer } from '../../src/proxy/relay.ts'
import { Relay } from '../../src/proxy/relay.ts'
import { FakeClock } from '../support/fake-clock.ts'

const TIMEOUTS = { connect: 1_000, firstByte: 2_000, idle: 60_000, total: 600_000 }
const EVENTS = ['content-type', 'text/event-stream']
/** More than the system takes for a client that does not read. */
const MUCH = Buffer.alloc(32 * 1024 * 1024, ': much\n\n')
const LAST_WORDS = 'data: {"error":{}}\n\n'

/** A relay whose stream another answer may go on with or not, to a client that does not read yet. */
async function startRelay(t: Test, observer: Observer | null = null, goesOn = true) {
  const server = http.createServer().listen(0, '127.0.0.1')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  await once(server, 'listening')
  const client = net.connect((server.address() as net.AddressInfo).port, '127.0.0.1')
  t.teardown(() => client.destroy())
  client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  const [, res] = (await once(server, 'request')) as [unknown, http.ServerResponse]
  const clock = new FakeClock()
  const expired: GatewayError[] = []
  const deadlines = new Deadlines(clock, TIMEOUTS, clock.monotonic(), error => expired.push(error))
  const relay = new Relay({
    res,
    own: () => ({ version: '0', requestId: 'id', limits: [] }),
    clock,
    deadlines,
    inspect: () => observer,
    onFirstByte: () => {},
    lastWords: () => LAST_WORDS,
    resume: () => {},
    rescue: () => goesOn,
  })
  return { relay, deadlines, clock, expired, client, res }
}

t.test('a client that reads again while another answer is waited for does not shorten that wait', async t => {
  const { relay, deadlines, clock, expired, client, res } = await startRelay(t)
  deadlines.connecting()
  deadlines.waiting()
  relay.head(200, EVENTS, '1.1')
  t.notOk(relay.data(MUCH), 'the client is to read first')
  relay.broken(new GatewayError('upstream_reset', 'gone'))
  deadlines.rest()
  deadlines.connecting()
  deadlines.waiting()
  client.resume()
  await once(res, 'drain')
  clock.advance(TIMEOUTS.firstByte)
  t.match(expired, [{ code: 'first_byte_timeout' }])
})

t.test('a client that does not read when the other answer comes is the one that is waited for', async t => {
  const { relay, deadlines, clock, expired } = await startRelay(t)
  deadlines.waiting()
  relay.head(200, EVENTS, '1.1')
  relay.data(MUCH)
  relay.broken(new GatewayError('upstream_reset', 'gone'))
  deadlines.connecting()
  deadlines.waiting()
  relay.head(200, EVENTS, '1.1')
  t.notOk(relay.data(Buffer.from(': more\n\n')))
  clock.advance(TIMEOUTS.idle)
  t.match(expired, [{ code: 'client_stalled' }])
})

t.test('a stream that comes compressed, behind a head that does not say so, is refused', async t => {
  const { relay } = await startRelay(t)
  relay.open()
  t.match(relay.head(200, [...EVENTS, 'content-encoding', 'gzip'], '1.1'), { code: 'upstream_invalid' })
  t.ok(relay.waits)
  t.equal(relay.head(200, [...EVENTS, 'content-encoding', 'identity'], '1.1'), null)
})

t.test('all was said, but the client has not taken it by the total timeout: one moment more', async t => {
  const said: Observer = { push: () => {}, end: () => {}, terminated: true, atBoundary: true, filter: null }
  const { relay, clock, client } = await startRelay(t, said)
  relay.head(200, EVENTS, '1.1')
  relay.data(MUCH)
  relay.stop(new GatewayError('total_timeout', 'too late'))
  clock.advance(5_000)
  t.match(await relay.done, { code: 'total_timeout' })
  await once(client.resume(), 'close')
})

/** More than the system holds for a client: who has taken so much has let the gateway write. */
const STEP = 40 * 1024 * 1024
const PIECE = MUCH.subarray(0, 1024 * 1024)

/** An answer of so many bytes that is there at once. */
async function startWhole(t: Test, total: number) {
  const started = await startRelay(t)
  const { relay, deadlines, client } = started
  deadlines.waiting()
  relay.head(200, ['content-type', 'application/json', 'content-length', String(total)], '1.1')
  for (let sent = 0; sent < total; sent += PIECE.length) relay.data(PIECE)
  let came = 0
  let due = 0
  const taken = async (bytes: number) => {
    due += bytes
    const { promise, resolve } = Promise.withResolvers<void>()
    const count = (piece: Buffer) => {
      came += piece.length
      if (came < due) return
      client.off('data', count).pause()
      resolve()
    }
    client.on('data', count).resume()
    await promise
  }
  return { ...started, taken }
}

t.test('a client that takes a large answer slowly does read, though all of it was there at once', async t => {
  const { relay, clock, expired, taken } = await startWhole(t, 3 * STEP)
  relay.end()
  for (let step = 0; step < 3; step++) {
    await taken(STEP)
    clock.advance(TIMEOUTS.idle * 0.6)
    t.strictSame(expired, [])
  }
  t.equal(await relay.done, null)
})

t.test('a client that stops in the middle of a large answer is waited for from there', async t => {
  const { relay, clock, expired, taken } = await startWhole(t, 2 * STEP)
  relay.end()
  clock.advance(TIMEOUTS.idle - 1)
  await taken(STEP)
  clock.advance(TIMEOUTS.idle / 2)
  t.strictSame(expired, [])
  while (expired.length === 0) {
    clock.advance(TIMEOUTS.idle)
    await setImmediate()
  }
  t.match(expired, [{ code: 'client_stalled' }])
})

t.test('what waits for a slow client goes out before the break', async t => {
  const { relay, taken, client } = await startWhole(t, 2 * STEP)
  relay.broken(new GatewayError('upstream_cut', 'cut'))
  t.match(await relay.done, { code: 'upstream_cut' })
  await taken(2 * STEP)
  await once(client.resume(), 'close')
})

t.test('a client that reads a stream slowly is told why it breaks, behind what waits for it', async t => {
  const open: Observer = { push: () => {}, end: () => {}, terminated: false, atBoundary: true, filter: null }
  const { relay, client } = await startRelay(t, open, false)
  relay.head(200, EVENTS, '1.1')
  t.notOk(relay.data(MUCH))
  relay.broken(new GatewayError('upstream_cut', 'cut'))
  let tail = ''
  client.on('data', (piece: Buffer) => {
    tail = (tail + piece.toString('latin1')).slice(-100)
  })
  await once(client, 'close')
  t.ok(tail.endsWith(`: much\n\n\r\n${LAST_WORDS.length.toString(16)}\r\n${LAST_WORDS}\r\n`), tail)
})
