import t from 'tap'
import type { Test } from 'tap'
import { KEY, startTestGateway } from '../support/gateway.ts'
import { openSession, postH2 } from '../support/http2.ts'
import { STREAM_HEAD, chunk, connect, post, proxyTo, startWireUpstream } from '../support/wire.ts'
import type { Wire } from '../support/wire.ts'

const BODY = { model: 'm', stream: true, messages: [] }

/** One stream event of each protocol, and the error event for its clients. */
const PROTOCOLS: Record<string, { path: string; event: string; error: RegExp }> = {
  chat: {
    path: '/v1/chat/completions',
    event: 'data: {"choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n',
    error: /^data: \{"error":\{"message":"[^"]+","type":"server_error",.*"code":"upstream_cut"\}\}\n\n$/,
  },
  responses: {
    path: '/v1/responses',
    event: 'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"hi"}\n\n',
    error: /^event: error\ndata: \{"type":"error","code":"upstream_cut",.*\}\n\n$/,
  },
  messages: {
    path: '/v1/messages',
    event: 'event: content_block_delta\n' +
      'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}\n\n',
    error: /^event: error\ndata: \{"type":"error","error":\{"type":"api_error","message":"[^"]+"\},"request_id":"[^"]+"\}\n\n$/,
  },
  generate: {
    path: '/v1beta/models/m:streamGenerateContent?alt=sse',
    event: 'data: {"candidates":[{"index":0,"content":{"parts":[{"text":"hi"}]}}]}\n\n',
    error: /^data: \{"error":\{"code":502,"message":"[^"]+","status":"INTERNAL","details":\[.*\]\}\}\n\n$/,
  },
}

/** The ways in which a chunked stream is cut after a complete event. */
const CUTS: Record<string, (wire: Wire) => void> = {
  'a reset': wire => wire.socket.resetAndDestroy(),
  'a close without the last chunk': wire => wire.socket.end(),
  'a proper end of HTTP without the terminal event': wire => wire.send('0\r\n\r\n'),
  'a malformed chunk': wire => wire.send('zz\r\n'),
}

/** One gateway for all tests; a header of the request selects what the upstream plays. */
const plays = new Map<string, (wire: Wire) => Promise<void>>()
const upstream = await startWireUpstream(t, async wire => {
  for (let request = await wire.nextRequest(); request !== null; request = await wire.nextRequest()) {
    await plays.get(/\r\nx-play: (\d+)/i.exec(request.head)?.[1] ?? '')?.(wire)
  }
})
const gateway = await startTestGateway(t, proxyTo(upstream.url))

/** The upstream sends the head and the start of a response, and cuts after the client has received both. */
function cutAfter(beginning: string, cut: (wire: Wire) => void) {
  const seen = Promise.withResolvers<void>()
  const play = String(plays.size)
  plays.set(play, async wire => {
    wire.send(beginning)
    await seen.promise
    cut(wire)
  })
  return { seen: seen.resolve, header: `X-Play: ${play}`, headers: { 'x-play': play } }
}

async function loggedAsCut(t: Test, id: unknown): Promise<void> {
  const line = await gateway.waitForLog(each => each.msg === 'exchange' && each.request === id)
  t.equal(line.error, 'upstream_cut')
  t.equal(line.level, 40)
}

for (const [protocol, { path, event, error }] of Object.entries(PROTOCOLS)) {
  for (const [what, cut] of Object.entries(CUTS)) {
    t.test(`${protocol}: ${what} gives an error event of the protocol and an abrupt end`, async t => {
      const { seen, header } = cutAfter(STREAM_HEAD + chunk(event), cut)
      const client = await connect(t, gateway.url)
      client.send(post(path, BODY, [header]))
      const before = await client.until(/hi/)
      seen()
      await client.ended
      const rest = unchunk(client.text.slice(before.length))
      t.match(rest.body, error)
      t.notOk(rest.complete, 'no last chunk')
      await loggedAsCut(t, idIn(client.text))
    })
  }

  t.test(`${protocol}: an HTTP/2 client gets the error event and RST_STREAM`, async t => {
    const { seen, headers } = cutAfter(STREAM_HEAD + chunk(event), wire => wire.socket.resetAndDestroy())
    const session = await openSession(t, gateway.url)
    const request = postH2(session, path, BODY, headers)
    await request.until(/hi/)
    seen()
    t.not(await request.closed, 0, 'RST_STREAM')
    t.match(request.text.slice(event.length), error)
  })

  for (const [what, cut] of Object.entries(CUTS)) {
    t.test(`${protocol}: ${what} in the middle of an event gives an abrupt end without an error event`, async t => {
      const half = event.slice(0, -3)
      const { seen, header } = cutAfter(STREAM_HEAD + chunk(half), cut)
      const client = await connect(t, gateway.url)
      // The client requests usage itself, so that the gateway holds back no part of an event.
      client.send(post(path, { ...BODY, stream_options: { include_usage: true } }, [header]))
      const before = await client.until(/hi/)
      seen()
      await client.ended
      t.equal(client.text, before, 'not one byte more')
      await loggedAsCut(t, idIn(client.text))
    })
  }

  t.test(`${protocol}: a stream that is cut before its first event ends with an error event`, async t => {
    const { seen, header } = cutAfter(STREAM_HEAD, wire => wire.socket.resetAndDestroy())
    const client = await connect(t, gateway.url)
    client.send(post(path, BODY, [header]))
    const before = await client.until(/\r\n\r\n/)
    seen()
    await client.ended
    const rest = unchunk(client.text.slice(before.length))
    t.match(rest.body, error)
    t.notOk(rest.complete)
  })
}

t.test('chat: a cut inside a usage chunk that the client did not ask for gives an error event', async t => {
  const { path, event, error } = PROTOCOLS['chat'] as typeof PROTOCOLS[string]
  const half = 'data: {"choices":[],"usage":{"prompt_tokens":1,'
  const { seen, header } = cutAfter(STREAM_HEAD + chunk(event + half), wire => wire.socket.end())
  const asking = await startTestGateway(t, proxyTo(upstream.url).replace(', usage: as_is', ''))
  const client = await connect(t, asking.url)
  client.send(post(path, BODY, [header]))
  const before = await client.until(/hi/)
  seen()
  await client.ended
  t.notMatch(client.text, 'usage')
  t.match(unchunk(client.text.slice(before.length)).body, error)
})

t.test('generate: a JSON array that is cut ends abruptly, without a closing bracket', async t => {
  const part = '[{"candidates":[{"index":0,"content":{"parts":[{"text":"hi"}]}}]}\n,\r\n'
  for (const cut of Object.values(CUTS)) {
    const { seen, header } = cutAfter(
      STREAM_HEAD.replace('text/event-stream', 'application/json') + chunk(part), cut,
    )
    const client = await connect(t, gateway.url)
    client.send(post('/v1beta/models/m:streamGenerateContent', BODY, [header]))
    const before = await client.until(/hi.*\n,\r\n/)
    seen()
    await client.ended
    t.equal(client.text, before.endsWith('\r\n\r\n') ? before : client.text)
    t.notOk(client.text.endsWith('0\r\n\r\n'), 'no last chunk')
    await loggedAsCut(t, idIn(client.text))
  }
})

t.test('the client does not get the end of a close-delimited stream that a reset cuts', async t => {
  const { seen, header } = cutAfter(
    `HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n${PROTOCOLS.chat?.event}`,
    wire => wire.socket.resetAndDestroy(),
  )
  const client = await connect(t, gateway.url)
  client.send(post('/v1/chat/completions', BODY, [header]))
  await client.until(/hi/)
  seen()
  await client.ended
  t.notOk(client.text.endsWith('0\r\n\r\n'), 'no last chunk')
  await loggedAsCut(t, idIn(client.text))
})

t.test('a JSON response without content-length is incomplete after a reset, ' +
  'and complete after a close', async t => {
  for (const [cut, whole] of [
    [(wire: Wire) => wire.socket.resetAndDestroy(), false], [(wire: Wire) => wire.socket.end(), true],
  ] as const) {
    const { seen, header } = cutAfter('HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{"hi":1', cut)
    const client = await connect(t, gateway.url)
    client.send(post('/v1/files', {}, ['Connection: close', header]))
    await client.until(/hi/)
    seen()
    await client.ended
    t.equal(client.text.endsWith('0\r\n\r\n'), whole)
  }
})

for (const [what, cut] of Object.entries(CUTS).slice(0, 2)) {
  t.test(`a JSON response with content-length that is cut by ${what} gives the client a broken transfer`, async t => {
    const head = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"hi":'
    const { seen, headers } = cutAfter(head, cut)
    const answer = await fetch(`${gateway.url}/v1/files`, { headers: { 'x-api-key': KEY, ...headers } })
    t.equal(answer.headers.get('content-length'), '100')
    seen()
    await t.rejects(answer.text(), 'a short body must not look complete')
    await loggedAsCut(t, answer.headers.get('x-gateway-request-id'))
  })

  t.test(`a JSON response with content-length that is cut by ${what} ends with a reset, which node-fetch 2 needs`, async t => {
    const body = `{"hi":"${'x'.repeat(50_000)}`
    const { seen, header } = cutAfter(`HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n\r\n${body}`, cut)
    seen()
    const client = await connect(t, gateway.url)
    client.send(post('/v1/files', {}, [header]))
    t.equal(await client.ended, 'reset')
    t.match(client.text, /x{40}$/)
    t.ok(what === 'a reset' || client.text.endsWith(`\r\n\r\n${body}`), 'the bytes before the cut arrive')
  })

  t.test(`over HTTP/2, a chunked JSON response that is cut by ${what} gives the client a broken transfer`, async t => {
    const head = STREAM_HEAD.replace('text/event-stream', 'application/json') + chunk('{"hi":')
    const { seen, headers } = cutAfter(head, cut)
    const session = await openSession(t, gateway.url)
    const request = postH2(session, '/v1/embeddings', { model: 'm' }, headers)
    await request.until(/hi/)
    seen()
    t.not(await request.closed, 0)
    t.equal(request.text, '{"hi":')
    await loggedAsCut(t, (await request.head)['x-gateway-request-id'])
  })
}

t.test('bytes beyond the content-length are not part of the response', async t => {
  const { seen, header } = cutAfter(
    'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\nX-Split: 1\r\n\r\n', () => {},
  )
  seen()
  const client = await connect(t, gateway.url)
  client.send(post('/v1/files', {}, [header]))
  await client.until(/\{\}/)
  client.send(post('/v1/files', {}, [header, 'Connection: close']))
  await client.ended
  t.notMatch(client.text, /X-Split/)
  t.equal(client.text.match(/HTTP\/1\.1 200 OK/g)?.length, 2)
})

for (const [protocol, last] of [
  ['chat', 'data: [DONE]\n\n'], ['messages', 'event: message_stop\ndata: {"type":"message_stop"}\n\n'],
] as const) {
  t.test(`${protocol}: a response is complete if the cut comes after the last event`, async t => {
    const { path, event } = PROTOCOLS[protocol] as { path: string; event: string }
    const { seen, header } = cutAfter(
      STREAM_HEAD + chunk(event) + chunk(last), wire => wire.socket.resetAndDestroy(),
    )
    const client = await connect(t, gateway.url)
    client.send(post(path, BODY, [header]))
    await client.until(/hi[^]*(DONE|message_stop"\})/)
    seen()
    const all = await client.until(/\r\n0\r\n\r\n$/)
    t.notMatch(all, /upstream_cut|event: error/)
    const line = await gateway.waitForLog(each => each.msg === 'exchange' && each.request === idIn(all))
    t.equal(line.error, undefined)
  })
}

t.test('bytes before the cut, even in the same packet, reach the client', async t => {
  const size = 50_000
  const beginning = STREAM_HEAD.replace('text/event-stream', 'application/json') + chunk('x'.repeat(size))
  const one = cutAfter(`${beginning}zz\r\n`, () => {})
  one.seen()
  const client = await connect(t, gateway.url)
  client.send(post('/v1/files', {}, [one.header]))
  await client.ended
  t.equal(unchunk(client.text.slice(client.text.indexOf('\r\n\r\n') + 4)).body.length, size)
  const two = cutAfter(`${beginning}zz\r\n`, () => {})
  two.seen()
  const request = postH2(await openSession(t, gateway.url), '/v1/files', {}, two.headers)
  t.not(await request.closed, 0)
  t.equal(request.text.length, size)
})

t.test('a head without a body reaches the client before the cut, even from the same packet', async t => {
  const empty = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'
  for (const answer of [empty, `${STREAM_HEAD.replace('text/event-stream', 'application/json')}zz\r\n`]) {
    const { seen, header } = cutAfter(answer, () => {})
    seen()
    const client = await connect(t, gateway.url)
    client.send(post('/v1/chat/completions', BODY, [header]))
    await client.ended
    t.match(client.text, /^HTTP\/1\.1 200 OK\r\n/, JSON.stringify(answer))
    t.notMatch(client.text, /\r\n0\r\n\r\n$/)
    await loggedAsCut(t, idIn(client.text))
  }
})

// Ends the test file, because the shared gateway keeps the process alive.
t.end()

function idIn(answer: string): string | undefined {
  return /x-gateway-request-id: (\S+)/i.exec(answer)?.[1]
}

/** @returns the text of a chunked body; `complete` if its last chunk has arrived */
function unchunk(raw: string): { body: string; complete: boolean } {
  let body = ''
  let at = 0
  for (;;) {
    const eol = raw.indexOf('\r\n', at)
    if (eol === -1) return { body, complete: false }
    const size = Number.parseInt(raw.slice(at, eol), 16)
    if (size === 0) return { body, complete: true }
    if (Number.isNaN(size)) {
      at = eol + 2
      continue
    }
    body += raw.slice(eol + 2, eol + 2 + size)
    at = eol + 2 + size + 2
  }
}
