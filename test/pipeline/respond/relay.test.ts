import { once } from 'node:events'
import * as http from 'node:http'
import * as net from 'node:net'
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import type { Test } from 'tap'
import { GatewayError } from '../../../src/base/errors.ts'
import { Exchange } from '../../../src/pipeline/exchange/exchange.ts'
import type { Gateway } from '../../../src/pipeline/parts/gateway.ts'
import { Relay } from '../../../src/pipeline/respond/relay.ts'
import { StreamBreak } from '../../../src/pipeline/respond/response-stream.ts'
import type { RelayEnd, ResponseBody } from '../../../src/pipeline/respond/response-stream.ts'
import type { ClientRequest } from '../../../src/proxy/client/client.ts'
import { Deadlines } from '../../../src/proxy/http/deadlines.ts'
import { responseHead } from '../../../src/proxy/upstream/response-head.ts'
import { ResponseRecorder } from '../../../src/transcripts/recording.ts'
import { FakeClock } from '../../support/fake-clock.ts'

const TIMEOUTS = { connect: 1_000, firstByte: 2_000, idle: 60_000, total: 600_000 }
const EVENTS = ['content-type', 'text/event-stream']
/** More bytes than the system buffers for a client that does not read. */
const MUCH = Buffer.alloc(32 * 1024 * 1024, ': much\n\n')
const LAST_WORDS = 'data: {"error":{}}\n\n'

/** A relay to a client that does not read yet. @param goesOn can another response continue the stream? */
async function startRelay(t: Test, observer: ResponseBody | null = null, goesOn = true) {
  const server = http.createServer().listen(0, '127.0.0.1')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  await once(server, 'listening')
  const client = net.connect((server.address() as net.AddressInfo).port, '127.0.0.1')
  t.teardown(() => client.destroy())
  // The gateway cuts a response with a Content-Length by a reset.
  client.on('error', () => {})
  client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  const [, res] = (await once(server, 'request')) as [unknown, http.ServerResponse]
  const clock = new FakeClock()
  const expired: GatewayError[] = []
  const sent: Buffer[] = []
  const deadlines = new Deadlines(clock, TIMEOUTS, clock.monotonic(), error => expired.push(error))
  const exchange = new Exchange({
    id: 'id', req: {} as ClientRequest, res, startedAt: 0, startedWall: 0,
    clientAddress: '', trustedPeer: null, awaitsContinue: false,
  })
  exchange.recording = Object.assign(new ResponseRecorder(1), { push: (bytes: Buffer) => void sent.push(bytes) })
  const gateway = { clock, version: '0', config: { limits: null } } as unknown as Gateway
  const relay = new Relay(gateway, exchange, deadlines)
  const open = (status: number, headers: readonly string[]): GatewayError | null => {
    const head = responseHead(status, headers)
    const refusal = relay.accepts(head)
    if (refusal === null) relay.open(head, { body: observer, source: { resume: () => {} }, mayContinue: true })
    return refusal
  }
  // The reader of `outcome` decides how the response continues after a break.
  const ended = async (): Promise<RelayEnd> => {
    for (;;) {
      const outcome = await relay.outcome
      if (!(outcome instanceof StreamBreak)) return outcome
      if (!relay.isBroken) continue
      if (goesOn) relay.continueLater()
      else relay.fail(outcome.error, LAST_WORDS)
    }
  }
  return { relay, open, done: ended(), deadlines, clock, expired, client, res, sent }
}

t.test('the wait for the next upstream does not become shorter when the client reads again', async t => {
  const { relay, open, deadlines, clock, expired, client, res } = await startRelay(t)
  deadlines.connecting()
  deadlines.waiting()
  open(200, EVENTS)
  t.notOk(relay.data(MUCH), 'the relay waits until the client reads')
  relay.broken(new GatewayError('upstream_reset', 'gone'))
  await setImmediate()
  deadlines.betweenAttempts()
  deadlines.connecting()
  deadlines.waiting()
  client.resume()
  await once(res, 'drain')
  clock.advance(TIMEOUTS.firstByte)
  t.match(expired, [{ code: 'first_byte_timeout' }])
})

t.test('if the client does not read the continuation, the request ends with client_stalled', async t => {
  const { relay, open, deadlines, clock, expired } = await startRelay(t)
  deadlines.waiting()
  open(200, EVENTS)
  relay.data(MUCH)
  relay.broken(new GatewayError('upstream_reset', 'gone'))
  await setImmediate()
  deadlines.connecting()
  deadlines.waiting()
  open(200, EVENTS)
  t.notOk(relay.data(Buffer.from(': more\n\n')))
  clock.advance(TIMEOUTS.idle)
  t.match(expired, [{ code: 'client_stalled' }])
})

t.test('after the gateway sends an event-stream head, a response of another type is upstream_invalid', async t => {
  const { relay, open } = await startRelay(t)
  relay.openEventStream()
  t.match(open(200, [...EVENTS, 'content-encoding', 'gzip']), { code: 'upstream_invalid' })
  t.match(open(201, EVENTS), { code: 'upstream_invalid' })
  t.match(open(200, ['content-type', 'application/json']), { code: 'upstream_invalid' })
  t.ok(relay.isWaiting)
  t.equal(open(200, [...EVENTS, 'content-encoding', 'identity']), null)
})

t.test('a head that is sent before the upstream responds has x-request-id', async t => {
  const { relay, client } = await startRelay(t)
  relay.openEventStream()
  relay.sendEvents(': here\n\n')
  const [head] = (await once(client, 'data')) as [Buffer]
  t.match(head.toString('latin1'), /\r\nx-request-id: id\r\n/)
})

t.test('a client gets 5 s after the total timeout to read a complete stream', async t => {
  const said = streamBody({ terminated: true })
  const { relay, open, done, clock, client } = await startRelay(t, said)
  open(200, EVENTS)
  relay.data(MUCH)
  relay.stop(new GatewayError('total_timeout', 'too late'))
  clock.advance(5_000)
  t.match(await done, { code: 'total_timeout' })
  await once(client.resume(), 'close')
})

/** More bytes than the system buffers: after the client reads these, the gateway has written again. */
const STEP = 40 * 1024 * 1024
const PIECE = MUCH.subarray(0, 1024 * 1024)

/** A response of `total` bytes that is available immediately. */
async function startWhole(t: Test, total: number) {
  const started = await startRelay(t)
  const { relay, open, deadlines, client } = started
  deadlines.waiting()
  open(200, ['content-type', 'application/json', 'content-length', String(total)])
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

t.test('a client that reads a large response slowly has not stalled', async t => {
  const { relay, done, clock, expired, taken } = await startWhole(t, 3 * STEP)
  relay.end()
  for (let step = 0; step < 3; step++) {
    await taken(STEP)
    clock.advance(TIMEOUTS.idle * 0.6)
    t.strictSame(expired, [])
  }
  t.equal(await done, null)
})

t.test('if the client stops reading, the idle timeout counts from its last read', async t => {
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

t.test('waiting data is sent to a slow client before the response breaks', async t => {
  const { relay, done, taken, client } = await startWhole(t, 2 * STEP)
  relay.broken(new GatewayError('upstream_cut', 'cut'))
  t.match(await done, { code: 'upstream_cut' })
  await taken(2 * STEP)
  await closed(client.resume())
})

t.test('a client that reads slowly gets the waiting data, then the error event', async t => {
  const { relay, open, client } = await startRelay(t, streamBody(), false)
  open(200, EVENTS)
  t.notOk(relay.data(MUCH))
  relay.broken(new GatewayError('upstream_cut', 'cut'))
  let tail = ''
  client.on('data', (piece: Buffer) => {
    tail = (tail + piece.toString('latin1')).slice(-100)
  })
  await once(client, 'close')
  t.ok(tail.endsWith(`: much\n\n\r\n${LAST_WORDS.length.toString(16)}\r\n${LAST_WORDS}\r\n`), tail)
})

/** Resolves at the close; `once(client, 'close')` would reject after a reset. */
function closed(client: net.Socket): Promise<void> {
  return new Promise(resolve => client.once('close', () => resolve()))
}

/** The body of a stream that is forwarded unchanged. */
function streamBody(at: Partial<ResponseBody> = {}): ResponseBody {
  return {
    push: chunk => chunk, end: () => {}, rest: () => Buffer.alloc(0), terminated: false, isFinished: false,
    atBoundary: true, edits: false, missingEnd: null, translateHeaders: null, ...at,
  }
}

const CUT = new GatewayError('upstream_cut', 'cut')

/** Relays a stream that breaks. @returns all bytes for the client, and the outcome of the relay */
async function broken(
  t: Test, observer: ResponseBody, { headers = EVENTS, body = ': x\n\n', error = CUT, goesOn = false } = {},
) {
  const { relay, open, done, client, sent } = await startRelay(t, observer, goesOn)
  let text = ''
  client.on('data', (piece: Buffer) => {
    text += piece.toString('latin1')
  })
  open(200, headers)
  if (body !== '') relay.data(Buffer.from(body))
  relay.broken(error)
  await closed(client)
  return { text, end: await done, sent: String(Buffer.concat(sent)) }
}

t.test('a stream that breaks after a complete event ends with an error event', async t => {
  const { text, end, sent } = await broken(t, streamBody())
  t.ok(text.endsWith(`${LAST_WORDS}\r\n`), text)
  t.equal(sent, `: x\n\n${LAST_WORDS}`)
  t.equal(end, CUT)
})

t.test('a stream that breaks inside an event ends without an error event', async t => {
  const { text } = await broken(t, streamBody({ atBoundary: false }))
  t.ok(text.endsWith(': x\n\n\r\n'), text)
})

t.test('a stream with a content-length breaks without an error event', async t => {
  const headers = [...EVENTS, 'content-length', '100']
  const { text } = await broken(t, streamBody({ terminated: null }), { headers })
  t.match(text, /content-length: 100/)
  t.ok(text.endsWith(': x\n\n'), text)
})

t.test('a client that does not read gets no error event', async t => {
  const { text } = await broken(t, streamBody(), { error: new GatewayError('client_stalled', 'it does not read') })
  t.notMatch(text, LAST_WORDS)
})

t.test('the client gets the head of a response that breaks before its body', async t => {
  const { text } = await broken(t, streamBody({ atBoundary: false }), { body: '' })
  t.match(text, /^HTTP\/1\.1 200 OK\r\n/)
  t.notMatch(text, /0\r\n\r\n$/)
})

t.test('content-length is removed from a stream if the protocol has an end marker', async t => {
  const { text } = await broken(t, streamBody(), { headers: [...EVENTS, 'content-length', '7'] })
  t.notMatch(text, /content-length/)
})

t.test('a response that is not a stream is not continued', async t => {
  const { end } = await broken(t, streamBody({ terminated: null }), { headers: [], goesOn: true })
  t.equal(end, CUT)
})

t.test('a stream is not continued after an internal error', async t => {
  const fault = () => {
    throw new TypeError('a fault of our own')
  }
  for (const terminated of [false, true]) {
    const { end } = await broken(t, streamBody({ end: fault, terminated }), { goesOn: true })
    t.match(end, { code: 'internal' })
  }
})

t.test('a stream that the upstream ends inside an event ends without an error event', async t => {
  const observer = { ...streamBody({ atBoundary: false }) } as { -readonly [key in keyof ResponseBody]: ResponseBody[key] }
  // At the end of the stream an incomplete event counts as an event.
  observer.end = () => {
    observer.atBoundary = true
  }
  const { relay, open, done, client } = await startRelay(t, observer, false)
  let text = ''
  client.on('data', (piece: Buffer) => {
    text += piece.toString('latin1')
  })
  open(200, EVENTS)
  relay.data(Buffer.from('data: ha'))
  relay.end()
  await once(client, 'close')
  t.ok(text.endsWith('data: ha\r\n'), text)
  t.match(await done, { code: 'upstream_cut' })
})

t.test('if the client disconnects before it has read a complete stream, the request ends with client_gone', async t => {
  const { relay, open, done } = await startRelay(t, streamBody({ terminated: true }), false)
  open(200, EVENTS)
  relay.data(MUCH)
  relay.stop(new GatewayError('client_gone', 'gone'))
  t.match(await done, { code: 'client_gone' })
})

t.test('a relay that is stopped before it sends a head sends nothing', async t => {
  const { relay, open, res } = await startRelay(t)
  relay.stop(CUT)
  t.notOk(res.headersSent || res.destroyed)
  t.equal(open(200, EVENTS), null)
})

t.test('bytes excludes data that the client has not read, and no keep-alive follows such data', async t => {
  const { relay, open, sent } = await startRelay(t)
  relay.openEventStream()
  relay.sendEvents(': here\n\n')
  t.equal(relay.bytes, 8)
  open(200, EVENTS)
  relay.data(MUCH)
  t.ok(relay.bytes > 8 && relay.bytes < MUCH.length)
  relay.broken(CUT)
  await setImmediate()
  t.ok(relay.isWaiting)
  relay.sendEvents(': here\n\n')
  t.equal(sent.length, 2)
})

t.test('a client that closes after the end marker has the complete response', async t => {
  const { relay, open, done } = await startRelay(t, streamBody({ isFinished: true }))
  t.notOk(relay.clientClosed(), 'no head is sent yet')
  open(200, EVENTS)
  relay.data(Buffer.from('data: [DONE]\n\n'))
  t.ok(relay.clientClosed())
  t.equal(await done, null)
  t.ok(relay.delivered)
})

t.test('a client that closes before it has read all data does not have the complete response', async t => {
  const { relay, open } = await startRelay(t, streamBody({ isFinished: true }))
  open(200, EVENTS)
  relay.data(MUCH)
  t.notOk(relay.clientClosed())
})
