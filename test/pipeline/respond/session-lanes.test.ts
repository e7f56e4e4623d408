import { once } from 'node:events'
import t from 'tap'
import type { Test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import type { ServerOptions } from 'ws'
import type { LedgerRow } from '../../../src/ledger/row.ts'
import { KEY } from '../../support/gateway.ts'
import { startRawUpstream, startUpstream } from '../../support/upstream.ts'
import { connect } from '../../support/wire.ts'
import { costOf, openBooks, priced } from '../../behaviour/billing/books.ts'

const BEARER = { authorization: `Bearer ${KEY}` }

const USED = { input_tokens: 10, output_tokens: 4, output_tokens_details: { reasoning_tokens: 1 } }
const completed = (model: string, usage: object | null = USED): object =>
  ({ type: 'response.completed', response: { model, usage } })

function textOf(message: string | object): string {
  return typeof message === 'string' ? message : JSON.stringify(message)
}

/** A WebSocket upstream that sends these messages in order after it gets a message. */
async function startSpeaker(t: Test, said: readonly (string | object)[], options: ServerOptions = {}) {
  const { server, url } = await startUpstream(t, (_req, res) => res.end())
  new WebSocketServer({ server, ...options }).on('connection', peer => {
    t.teardown(() => peer.terminate())
    peer.on('error', () => {}).on('message', () => {
      for (const one of said) peer.send(textOf(one))
      peer.close()
    })
  })
  return url
}

/** @returns the ledger row of a session in which the upstream sends these messages */
async function sessionWith(
  t: Test, said: readonly (string | object)[],
  { path = '/v1/responses', options = {} as ServerOptions, models = priced('m', 'n') } = {},
): Promise<LedgerRow | undefined> {
  const url = await startSpeaker(t, said, options)
  const books = await openBooks(t, `
upstreams: { up: { url: "${url}", websocket: true } }
routes: [{ path: "/v1/*", to: up }]
${models}`)
  const client = new WebSocket(books.gateway.url.replace(/^http/, 'ws') + path, { headers: BEARER })
  const heard: string[] = []
  client.on('message', data => heard.push((data as Buffer).toString()))
  await once(client, 'open')
  client.send('{"type":"response.create"}')
  await once(client, 'close')
  t.strictSame(heard, said.map(textOf), 'all messages are forwarded')
  await books.gateway.waitForLog(line => line.msg === 'exchange')
  const [row] = [...(await books.close()).values()]
  return row
}

const COST = costOf({ input: 10, output: 4, reasoning: 1 })

const KINDS = {
  'plain': {},
  'compressed': { perMessageDeflate: { threshold: 0 } },
  'compressed without context takeover': {
    perMessageDeflate: { threshold: 0, serverNoContextTakeover: true, clientNoContextTakeover: true },
  },
  'compressed, with a small window': {
    perMessageDeflate: { threshold: 0, serverMaxWindowBits: 9, clientMaxWindowBits: 9 },
  },
}
for (const [what, options] of Object.entries(KINDS)) {
  t.test(`every response over a WebSocket is billed: ${what}`, async t => {
    const row = await sessionWith(t, [
      { type: 'response.created', response: { model: 'm' } },
      { type: 'response.output_text.delta', delta: 'hello' },
      completed('m'),
      { type: 'codex.rate_limits', usage: { input_tokens: 1000 } },
      JSON.stringify(completed('n'), null, '\r\n'),
      { type: 'response.failed', response: { model: 'm', usage: null } },
    ], { options })
    t.match(row, {
      end: 'complete', source: 'reported', status: 101, model: 'm',
      usage: { inputTokens: 20, outputTokens: 8, reasoningTokens: 2 }, costPico: 2n * COST,
    })
  })
}

t.test('the output of a cut response is counted; a response without a price makes the cost of the session unknown', async t => {
  const cut = await sessionWith(t, [
    completed('m'), { type: 'response.created', response: { model: 'm' } },
    { type: 'response.output_text.delta', delta: 'hello' },
  ])
  t.match(cut, {
    source: 'mixed', usage: { outputTokens: 5 }, costPico: COST + costOf({ input: 0, output: 1 }),
  })
  const unpriced = await sessionWith(t, [completed('m'), completed('nobody-knows')])
  t.match(unpriced, { source: 'reported', usage: { outputTokens: 8 }, costPico: null })
})

t.test('each response has the price of its own model, not of the model in the URL', async t => {
  const models = `
models:
  m: { price: { input: 1, output: 1 } }
  n: { price: { input: 1000, output: 1000 } }`
  const row = await sessionWith(t, [completed('m'), { type: 'pause' }, completed('n'), completed('unpriced')], {
    models, path: '/v1/responses?model=m',
  })
  t.match(row, { costPico: null, model: 'm' })
  const both = await sessionWith(t, [completed('m'), completed('n'), completed('m')], { models })
  t.match(both, {
    costPico: 14_000_000n + 14_000_000_000n + 14_000_000n, model: 'm',
    attempts: [{ inputTokens: 30, outputTokens: 12, costUsd: '0.014028' }],
  }, 'no one price explains that')
  const one = await sessionWith(t, [completed('m'), completed('m')], { models })
  t.notOk('costUsd' in (one?.attempts[0] ?? {}))
})

t.test('an error event ends the running response', async t => {
  const delta = { type: 'response.output_text.delta', delta: 'hello' }
  const row = await sessionWith(t, [
    { type: 'response.created', response: { model: 'm' } }, delta, { type: 'error', error: {} }, completed('m'),
  ])
  t.match(row, { source: 'mixed', usage: { outputTokens: 5 } })
})

const inLane = (stream_id: string, type: string, rest: object = {}) => ({ type, stream_id, ...rest })

t.test('simultaneous responses with different stream_ids are counted separately', async t => {
  const created = (model: string) => ({ response: { model } })
  const delta = { delta: 'hello' }
  const told = await sessionWith(t, [
    inLane('a', 'response.created', created('m')), inLane('b', 'response.created', created('n')),
    inLane('a', 'response.output_text.delta', delta), inLane('b', 'response.output_text.delta', delta),
    inLane('a', 'error', { error: {} }),
    inLane('b', 'response.output_text.delta', delta),
    { ...completed('n'), stream_id: 'b' },
  ])
  t.match(told, { source: 'mixed', usage: { outputTokens: 1 + 4 } }, 'one failed response, and the reported usage of the other')
  t.equal(told?.costPico, COST + costOf({ input: 0, output: 1 }))

  const models = `
models:
  m: { price: { input: 1, output: 1 } }
  n: { price: { input: 1000, output: 1000 } }`
  const cut = await sessionWith(t, [
    inLane('a', 'response.created', created('m')), inLane('a', 'response.output_text.delta', delta),
    inLane('b', 'response.created', created('n')), inLane('b', 'response.output_text.delta', delta),
    { ...completed('n'), stream_id: 'b' },
  ], { models })
  t.match(cut, { source: 'mixed', usage: { outputTokens: 1 + 4 }, costPico: 14_000_000_000n + 1_000_000n })
})

t.test('all responses of a session with 300 stream_ids are counted', async t => {
  const lanes = Array.from({ length: 300 }, (_, n) => `${n}`)
  const row = await sessionWith(t, [
    ...lanes.map(lane => inLane(lane, 'response.created', { response: { model: 'm' } })),
    ...lanes.map(lane => ({ ...completed('m'), stream_id: lane })),
  ])
  t.match(row, { source: 'reported', usage: { outputTokens: 4 * 300 }, costPico: 300n * COST })
})

t.test('a stream_id of more than 256 characters counts as absent', async t => {
  const long = 'x'.repeat(257)
  const row = await sessionWith(t, [
    inLane(`${long}a`, 'response.created', { response: { model: 'm' } }),
    inLane(`${long}a`, 'response.output_text.delta', { delta: 'hello' }),
    { ...completed('m'), stream_id: `${long}b` },
  ])
  t.match(row, { source: 'reported', usage: { outputTokens: 4 } })
})

/** What no receiver takes, masked frames and a compressed message that is none, once it is asked. */
async function unreadable(t: Test, extension: string, frames: Buffer): Promise<LedgerRow | undefined> {
  const url = await startRawUpstream(t, socket => {
    socket.once('data', () => {
      socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket${extension}\r\n\r\n`)
      socket.end(frames)
    })
  })
  const books = await openBooks(t, `
upstreams: { up: { url: "${url.url}", websocket: true } }
routes: [{ path: "/v1/*", to: up }]
${priced('m')}`)
  const client = await connect(t, books.gateway.url)
  client.send([
    'GET /v1/responses HTTP/1.1', 'Host: gateway', `Authorization: Bearer ${KEY}`, 'Connection: Upgrade',
    'Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    'Sec-WebSocket-Extensions: permessage-deflate', '', '',
  ].join('\r\n'))
  await client.ended
  await books.gateway.waitForLog(line => line.msg === 'exchange')
  return [...(await books.close()).values()][0]
}

t.test('a session without responses costs 0, and the cost of an unreadable session is unknown', async t => {
  t.match(await sessionWith(t, [{ type: 'error', error: { code: 'x' } }, '[]', 'no JSON']), { costPico: 0n })
  const unknown = { costPico: null, usage: { inputTokens: null } }
  t.match(await unreadable(t, '', Buffer.from([0x81, 0x81, 1, 2, 3, 4, 5])), unknown)
  const deflate = '\r\nSec-WebSocket-Extensions: permessage-deflate'
  t.match(await unreadable(t, deflate, Buffer.from([0xc1, 3, 0xff, 0xff, 0xff])), unknown)
  t.match(await unreadable(t, '\r\nSec-WebSocket-Extensions: ', Buffer.alloc(0)), { costPico: 0n })
})

t.test('a realtime session has the price of the model in its URL', async t => {
  const row = await sessionWith(t, [
    { type: 'session.created', session: { model: 'gpt-realtime-2026' } },
    { type: 'conversation.item.input_audio_transcription.delta', delta: 'said by the client' },
    { type: 'response.output_audio_transcript.delta', delta: 'hi' },
    { type: 'response.done', response: { usage: {
      input_tokens: 100, output_tokens: 20,
      input_token_details: {
        audio_tokens: 50, text_tokens: 50, cached_tokens: 30, cached_tokens_details: { audio_tokens: 20 },
      },
      output_token_details: { audio_tokens: 15, text_tokens: 5 },
    } } },
  ], {
    path: '/v1/realtime?model=m',
    models: `${priced('m')}  gpt-realtime-2026: { price: { input: 1000, output: 1000 } }\n`,
  })
  t.match(row, {
    source: 'reported', model: 'm', endpoint: 'realtime',
    costPico: costOf({ input: 100, cached: 30, output: 20 }),
    usage: { inputTokens: 100, cachedInputTokens: 30, inputAudioTokens: 30, outputAudioTokens: 15 },
  })
})

const transcribed = (usage: object | null): object =>
  ({ type: 'conversation.item.input_audio_transcription.completed', transcript: 'hello', usage })
const TOKENS = { type: 'tokens', input_tokens: 12, output_tokens: 3, input_token_details: { audio_tokens: 8 } }
const WRITER = `
  writer: { price: { input: 1, input_audio: 10, output: 5 } }
  ears: { price: { per_second: 0.5 } }`

t.test('transcripts of the client\'s audio have the price of the transcription model', async t => {
  const models = priced('m') + WRITER
  const path = '/v1/realtime?model=m'
  const settings = (transcription: object): object =>
    ({ type: 'session.updated', session: { model: 'm', audio: { input: { transcription } } } })
  const said = { usage: { input_tokens: 10, output_tokens: 4 } }
  const both = await sessionWith(t, [
    settings({ model: 'writer' }), transcribed(TOKENS), { type: 'response.done', response: said },
  ], { path, models })
  t.match(both, {
    model: 'm', source: 'reported', usage: { inputTokens: 22, inputAudioTokens: 8, outputTokens: 7 },
    costPico: costOf({ input: 10, output: 4 }) + 1_000_000n * (4n + 80n + 15n),
  })
  const unknown = [
    [[transcribed(TOKENS)], 'reported'],
    [[settings({ model: 'nobody-knows' }), transcribed(TOKENS)], 'reported'],
    [[settings({ model: 'writer' }), transcribed(null)], 'none'],
  ] as const
  for (const [events, source] of unknown) {
    t.match(await sessionWith(t, [...events], { path, models }), { costPico: null, source })
  }
})

t.test('a session that only transcribes is billed', async t => {
  const beta = { type: 'transcription_session.created', session: { input_audio_transcription: { model: 'ears' } } }
  const seconds = (seconds: number): object => transcribed({ type: 'duration', seconds })
  const row = await sessionWith(t, [beta, seconds(1.1), seconds(2.2)], {
    path: '/v1/realtime?intent=transcription', models: `models:${WRITER}`,
  })
  t.match(row, { model: 'ears', usage: { seconds: 3.3 }, costPico: 1_650_000_000_000n })
  t.match(row?.priceVersion, /^config /)
})

for (const limit of ['budget: { usd: 0.0000001, per: total }', 'tokens_per_minute: 5']) {
  t.test(`when a WebSocket ends, its usage counts against the limit: ${limit}`, async t => {
    const url = await startSpeaker(t, [completed('m'), completed('nobody-knows')])
    const books = await openBooks(t, `
upstreams: { up: { url: "${url}", websocket: true } }
routes: [{ path: "/v1/*", to: up }]
limits: { ${limit} }
${priced('m')}`)
    const address = `${books.gateway.url.replace(/^http/, 'ws')}/v1/responses`
    const open = () => new WebSocket(address, { headers: BEARER }).on('error', () => {})
    const first = open()
    await once(first, 'open')
    first.send('{}')
    await once(first, 'close')
    await books.gateway.waitForLog(line => line.msg === 'exchange')
    const [, refused] = await once(open(), 'unexpected-response')
    t.match(refused, { statusCode: 429 })
  })
}

t.test('under a budget, a WebSocket for a model without a price is refused', async t => {
  const url = await startSpeaker(t, [])
  const books = await openBooks(t, `
upstreams: { up: { url: "${url}", websocket: true } }
routes: [{ path: "/v1/*", to: up }]
limits: { budget: { usd: 1, per: total } }
${priced('m')}`)
  const address = `${books.gateway.url.replace(/^http/, 'ws')}/v1/realtime?model=nobody-knows`
  const client = new WebSocket(address, { headers: BEARER }).on('error', () => {})
  const [, refused] = await once(client, 'unexpected-response')
  t.match(refused, { statusCode: 403 })
})
