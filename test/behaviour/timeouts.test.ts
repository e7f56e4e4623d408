import t from 'tap'
import type { Test } from 'tap'
import { startTestGateway } from '../support/gateway.ts'
import { openSession, postH2 } from '../support/http2.ts'
import { STREAM_HEAD, chunk, connect, post, startWireUpstream } from '../support/wire.ts'
import type { Wire } from '../support/wire.ts'

const EVENT = chunk('data: {"choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n')
const SHORT: Record<string, string> = {
  connect: 'connect: 100ms',
  first_byte: 'first_byte: 1s',
  idle: 'idle: 1s',
  total: 'total: 2s',
}

/** A gateway with one short timeout, and an upstream that does nothing after `play`. */
async function setUp(t: Test, short: string, play: (wire: Wire) => void = () => {}, scheme = 'http') {
  const torn = Promise.withResolvers<void>()
  const upstream = await startWireUpstream(t, async wire => {
    if (scheme === 'http') await wire.request()
    play(wire)
    await wire.ended
    torn.resolve()
  })
  const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${upstream.url.replace('http', scheme)}", usage: as_is } }
timeouts: { connect: 20s, first_byte: 20s, idle: 20s, total: 20s }
routes: [{ to: up, timeouts: { ${SHORT[short]} } }]
`)
  return { gateway, torn: torn.promise }
}

const CHAT = post('/v1/chat/completions', { model: 'm', stream: true, messages: [] })
const PLAIN = post('/v1/files', {})

for (const [what, short, play, scheme, code] of [
  ['a TLS handshake without a response', 'connect', undefined, 'https', 'connect_timeout'],
  ['an upstream that sends nothing', 'first_byte', undefined, 'http', 'first_byte_timeout'],
  ['an upstream that sends only interim responses', 'first_byte', (wire: Wire) => {
    wire.send('HTTP/1.1 103 Early Hints\r\n\r\n')
  }, 'http', 'first_byte_timeout'],
  ['an upstream that sends nothing', 'total', undefined, 'http', 'total_timeout'],
] as const) {
  t.test(`timeouts.${short}: ${what} gives 504 ${code}`, async t => {
    const { gateway, torn } = await setUp(t, short, play, scheme)
    const client = await connect(t, gateway.url)
    client.send(PLAIN)
    t.match(await client.until(/\}\}$/), new RegExp(`^HTTP/1\\.1 504 [^]*"code":"${code}"`))
    // A connection that is not established yet stays open, because other requests may use it.
    if (short !== 'connect') await torn
    const line = await gateway.waitForLog(each => each.msg === 'exchange')
    t.equal(line.error, code)
    t.equal(line.status, 504)
    t.match(line.why, `(timeouts.${short})`, 'the message names the setting')
    if (code === 'total_timeout') t.match(client.text, /x-should-retry: false/i)
  })
}

for (const [when, short, sent, code] of [
  ['after the head, before the first byte', 'first_byte', STREAM_HEAD, 'first_byte_timeout'],
  ['in mid-stream', 'idle', STREAM_HEAD + EVENT, 'idle_timeout'],
  ['in mid-stream', 'total', STREAM_HEAD + EVENT, 'total_timeout'],
] as const) {
  t.test(`${short}: if an upstream stalls ${when}, the client gets an error event and an abrupt end`, async t => {
    const { gateway, torn } = await setUp(t, short, wire => wire.send(sent))
    const client = await connect(t, gateway.url)
    client.send(CHAT)
    await client.ended
    t.match(client.text, /^HTTP\/1\.1 200 /)
    t.match(client.text, new RegExp(`data: \\{"error":\\{[^\\n]*"code":"${code}"\\}\\}\n\n\r\n$`))
    await torn
    t.match(client.text, `(timeouts.${short})`, 'the message names the setting')
    t.equal((await gateway.waitForLog(each => each.msg === 'exchange')).error, code)
  })
}

t.test('idle: an HTTP/2 client gets an error event if the upstream stalls', async t => {
  const { gateway } = await setUp(t, 'idle', wire => wire.send(STREAM_HEAD + EVENT))
  const session = await openSession(t, gateway.url)
  const request = postH2(session, '/v1/chat/completions', { model: 'm', stream: true, messages: [] })
  t.not(await request.closed, 0)
  t.match(request.text, /"code":"idle_timeout"/)
})

t.test('hazard: the first_byte timeout does not fire in mid-stream', async t => {
  const { gateway } = await setUp(t, 'first_byte', wire => {
    wire.send(STREAM_HEAD + EVENT)
    setTimeout(() => wire.send(`${EVENT + chunk('data: [DONE]\n\n')}0\r\n\r\n`), 1_500)
  })
  const client = await connect(t, gateway.url)
  client.send(CHAT)
  t.match(await client.until(/0\r\n\r\n$/), /\[DONE\]/)
})

t.test('the idle timeout counts from the last byte, not from the first', async t => {
  const { gateway } = await setUp(t, 'idle', wire => {
    wire.send(STREAM_HEAD)
    let sent = 0
    const timer = setInterval(() => {
      wire.send(EVENT)
      if (++sent < 12) return
      clearInterval(timer)
      wire.send(`${chunk('data: [DONE]\n\n')}0\r\n\r\n`)
    }, 100)
  })
  const client = await connect(t, gateway.url)
  client.send(CHAT)
  t.match(await client.until(/0\r\n\r\n$/), /\[DONE\]/)
})

/** Sends more than all buffers on the way hold. */
function flood(wire: Wire): void {
  wire.send('HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nTransfer-Encoding: chunked\r\n\r\n')
  const piece = chunk('x'.repeat(64 * 1024))
  const more = () => {
    while (!wire.socket.destroyed) if (!wire.socket.write(piece)) break
    wire.socket.once('drain', more)
  }
  more()
}

for (const version of ['HTTP/1.1', 'HTTP/2']) {
  t.test('idle: the upstream connection of a client that does not read ends ' +
    `after the idle timeout, over ${version}`, async t => {
    const { gateway, torn } = await setUp(t, 'idle', flood)
    if (version === 'HTTP/2') {
      const request = postH2(await openSession(t, gateway.url), '/v1/files', {})
      request.stream.removeAllListeners('data').pause()
    } else {
      const client = await connect(t, gateway.url)
      client.send(PLAIN)
      await client.until(/\r\n\r\n/)
      client.socket.pause()
    }
    await torn
    const line = await gateway.waitForLog(each => each.msg === 'exchange')
    t.equal(line.error, 'client_stalled')
  })
}

t.test('idle: a client that does not read the end of a complete response is disconnected', async t => {
  const size = 12 * 1024 * 1024
  const { gateway } = await setUp(t, 'idle', wire => {
    wire.send(`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n`)
    wire.send('x'.repeat(size))
  })
  const client = await connect(t, gateway.url)
  client.send(PLAIN)
  await client.until(/\r\n\r\n/)
  client.socket.pause()
  t.equal((await gateway.waitForLog(each => each.msg === 'exchange')).error, 'client_stalled')
  client.socket.resume()
  await client.ended
  t.ok(client.text.length < size, 'its connection was ended')
})
