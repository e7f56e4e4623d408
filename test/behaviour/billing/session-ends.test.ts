import { once } from 'node:events'
import type { Socket } from 'node:net'
import t from 'tap'
import type { Test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { KEY } from '../../support/gateway.ts'
import { startUpstream } from '../../support/upstream.ts'
import { costOf, openBooks, priced } from './books.ts'

const ASKED = { type: 'response.create', model: 'm', input: 'Say hello to the world.' }
const CREATED = { type: 'response.created', response: { model: 'm' } }
const DELTA = { type: 'response.output_text.delta', delta: 'hello' }
const COMPLETED = {
  type: 'response.completed', response: { model: 'm', usage: { input_tokens: 10, output_tokens: 4 } },
}
/** Counted input tokens of ASKED. */
const INPUT = 9

interface Play {
  readonly path?: string
  readonly compressed?: boolean
  readonly policy?: string
  readonly lane?: string
  /** Messages that the upstream sends after the request. */
  readonly said: readonly object[]
  /** Ends the session after the client has all messages and the upstream has the request. */
  end(upstream: { peer: WebSocket; socket: Socket }, client: WebSocket): void
}

/** @returns the ledger row and the log line of a session with this end */
async function ended(t: Test, play: Play) {
  const { path = '/v1/responses', compressed = false, policy = '', lane: stream_id, said, end } = play
  const { server, url } = await startUpstream(t, (_req, res) => res.end())
  const asked = Promise.withResolvers<{ peer: WebSocket; socket: Socket; text: string }>()
  const perMessageDeflate = compressed && { threshold: 0 }
  new WebSocketServer({ server, perMessageDeflate }).on('connection', (peer, { socket }) => {
    t.teardown(() => peer.terminate())
    peer.on('error', () => {}).on('message', data => {
      for (const one of said) peer.send(JSON.stringify(one))
      asked.resolve({ peer, socket, text: String(data) })
    })
  })
  const books = await openBooks(t, `
upstreams: { up: { url: "${url}", websocket: true } }
routes: [{ path: "/v1/*", to: up }]
${policy}
${priced('m')}`)
  const client = new WebSocket(books.gateway.url.replace(/^http/, 'ws') + path, {
    headers: { authorization: `Bearer ${KEY}` }, perMessageDeflate,
  }).on('error', () => {})
  t.teardown(() => client.terminate())
  const closed = once(client, 'close')
  const got = Promise.withResolvers<void>()
  let missing = said.length
  client.on('message', () => --missing === 0 && got.resolve())
  await once(client, 'open')
  const question = JSON.stringify({ ...ASKED, stream_id })
  client.send(question)
  const upstream = await asked.promise
  t.equal(upstream.text, question, 'the message is forwarded unchanged')
  if (missing > 0) await got.promise
  end(upstream, client)
  await closed
  const line = await books.gateway.waitForLog(each => each.msg === 'exchange')
  const [row] = [...(await books.close()).values()]
  return { row, line }
}

const UPSTREAM_ENDS: Record<string, Play['end']> = {
  'resets its connection': ({ socket }) => socket.resetAndDestroy(),
  'disconnects without a close frame': ({ socket }) => socket.end(),
  'sends a close frame with code 1011': ({ peer }) => peer.close(1011),
  'sends a close frame': ({ peer }) => peer.close(1000),
}
const CLIENT_ENDS: Record<string, Play['end']> = {
  'resets its connection': (_upstream, client) => (client as unknown as { _socket: Socket })._socket.resetAndDestroy(),
  'disconnects without a close frame': (_upstream, client) => client.terminate(),
  'sends a close frame': (_upstream, client) => client.close(),
}

for (const compressed of [false, true]) {
  const how = compressed ? 'compressed' : 'plain'
  for (const [what, end] of Object.entries(UPSTREAM_ENDS)) {
    t.test(`an upstream that ${what} in mid-response is recorded as upstream_cut: ${how}`, async t => {
      const { row, line } = await ended(t, { said: [CREATED, DELTA], end, compressed })
      t.match(row, {
        end: 'upstream_cut', error: 'upstream_cut', status: 101, source: 'estimated',
        usage: { inputTokens: INPUT, outputTokens: 1 }, costPico: costOf({ input: INPUT, output: 1 }),
        attempts: [{ outcome: 'upstream_cut', status: 101 }],
      })
      t.match(line, { level: 40, end: 'upstream_cut', status: 101, input_tokens: INPUT, output_tokens: 1 })
    })
  }
  for (const [what, end] of Object.entries(CLIENT_ENDS)) {
    t.test(`a client that ${what} in mid-response is recorded as client_gone: ${how}`, async t => {
      const { row, line } = await ended(t, { said: [CREATED, DELTA], end, compressed })
      t.match(row, {
        end: 'client_gone', error: 'client_gone', status: 101, source: 'estimated',
        usage: { inputTokens: INPUT, outputTokens: 1 },
      })
      t.match(line, { level: 30, end: 'client_gone' })
    })
  }
}

for (const [by, ends] of [['upstream', UPSTREAM_ENDS], ['client', CLIENT_ENDS]] as const) {
  t.test(`a session that the ${by} ends between two responses is recorded as complete`, async t => {
    for (const end of Object.values(ends)) {
      const { row } = await ended(t, { said: [CREATED, DELTA, COMPLETED], end })
      t.match(row, {
        end: 'complete', error: null, source: 'reported', attempts: [{ outcome: 'ok' }],
        usage: { inputTokens: 10, outputTokens: 4 },
      })
    }
  })
}

t.test('a request without a response is free, unless the client disconnects and billing.abandoned is prompt', async t => {
  const { 'disconnects without a close frame': dies } = UPSTREAM_ENDS as { [name: string]: Play['end'] }
  const { 'disconnects without a close frame': leaves } = CLIENT_ENDS as { [name: string]: Play['end'] }
  const cut = await ended(t, { said: [], end: dies as Play['end'] })
  t.match(cut.row, { end: 'upstream_cut', costPico: 0n, usage: { inputTokens: null } })
  const left = await ended(t, { said: [], end: leaves as Play['end'] })
  t.match(left.row, { end: 'client_gone', usage: { inputTokens: INPUT }, costPico: costOf({ input: INPUT, output: 0 }) })
  const free = await ended(t, { said: [], end: leaves as Play['end'], policy: 'billing: { abandoned: none }' })
  t.match(free.row, { end: 'client_gone', costPico: 0n })
  for (const lane of ['', 'a']) {
    const refused = await ended(t, { said: [{ type: 'error', error: {} }], end: leaves as Play['end'], lane })
    t.match(refused.row, { end: 'complete', costPico: 0n })
  }
})

t.test('if no event has a stream_id, a response belongs to the stream_id of its request', async t => {
  for (const end of [...Object.values(UPSTREAM_ENDS), ...Object.values(CLIENT_ENDS)]) {
    const { row } = await ended(t, { said: [CREATED, DELTA, COMPLETED], end, lane: 'a' })
    t.match(row, { end: 'complete', source: 'reported', usage: { inputTokens: 10, outputTokens: 4 } })
  }
  for (const last of [[], [{ type: 'error', error: {} }]]) {
    const cut = await ended(t, {
      said: [CREATED, DELTA, ...last], end: UPSTREAM_ENDS['resets its connection'] as Play['end'], lane: 'a',
    })
    t.match(cut.row, {
      end: last.length === 0 ? 'upstream_cut' : 'complete', usage: { inputTokens: INPUT, outputTokens: 1 },
    })
  }
})

t.test('if other events have a stream_id, an error without a stream_id does not end the response that has begun', async t => {
  const inLane = { stream_id: 'b' }
  const { row } = await ended(t, {
    said: [{ ...CREATED, ...inLane }, { ...DELTA, ...inLane }, { type: 'error' }, { ...COMPLETED, ...inLane }],
    end: UPSTREAM_ENDS['sends a close frame'] as Play['end'], lane: 'a',
  })
  t.match(row, { end: 'complete', source: 'reported', usage: { inputTokens: 10, outputTokens: 4 } })
})

t.test('a realtime session: the output before a cut is counted', async t => {
  const said = [{ type: 'response.created', response: {} }, DELTA]
  const path = '/v1/realtime?model=m'
  for (const end of Object.values(UPSTREAM_ENDS)) {
    const { row } = await ended(t, { said, end, path })
    t.match(row, { end: 'upstream_cut', usage: { outputTokens: 1 }, attempts: [{ outcome: 'upstream_cut' }] })
  }
})

const inResponse = (response_id: string) => [
  { type: 'response.created', response: { id: response_id } }, { ...DELTA, response_id },
]
const doneIn = (id: string) =>
  ({ type: 'response.done', response: { id, usage: { input_tokens: 100, output_tokens: 20 } } })

t.test('a realtime session: the usage of simultaneous responses is counted separately', async t => {
  const path = '/v1/realtime?model=m'
  const said = [...inResponse('a'), ...inResponse('b')]
  const end = UPSTREAM_ENDS['resets its connection'] as Play['end']
  const cut = await ended(t, { said: [...said, doneIn('a')], end, path })
  t.match(cut.row, { end: 'upstream_cut', source: 'mixed', usage: { outputTokens: 20 + 1 } })
  const whole = await ended(t, { said: [...said, doneIn('b'), doneIn('a')], end, path })
  t.match(whole.row, { end: 'complete', source: 'reported', usage: { inputTokens: 200, outputTokens: 40 } })
})

t.test('a realtime session: events without a response ID belong to the running response', async t => {
  const path = '/v1/realtime?model=m'
  const end = UPSTREAM_ENDS['resets its connection'] as Play['end']
  const [created, delta] = inResponse('a')
  for (const said of [[created, DELTA, doneIn('a')], [created, delta, DONE], [CREATED, delta, doneIn('a')]]) {
    const { row } = await ended(t, { said: said as object[], end, path })
    t.match(row, { end: 'complete', source: 'reported', usage: { inputTokens: 100, outputTokens: 20 } })
  }
})

const SETTINGS = {
  type: 'session.updated', session: { instructions: 'Be brief, and be kind.', tools: [{ name: 'x' }] },
}
const item = (id: string, rest: object) =>
  ({ type: 'conversation.item.added', item: { id, type: 'message', ...rest } })
const TEXT = item('1', { role: 'user', content: [{ type: 'input_text', text: 'Say hello to the world.' }] })
const SPEECH = [
  { type: 'input_audio_buffer.speech_started', audio_start_ms: 1_000 },
  { type: 'input_audio_buffer.speech_stopped', audio_end_ms: 3_010 },
  item('2', { role: 'user', content: [{ type: 'input_audio', transcript: null }] }),
]
const ANSWER = item('3', { role: 'assistant', content: [{ type: 'output_text', text: 'Hello, hello, hello.' }] })
const DONE = { type: 'response.done', response: { usage: { input_tokens: 100, output_tokens: 20 } } }

t.test('a realtime session: the input of a broken response is estimated from the session so far', async t => {
  const broke = [{ type: 'response.created', response: {} }, DELTA]
  const plays = [
    // 22 and 14 bytes of the settings, 23 bytes of the text, each rounded up to tokens.
    ['estimated', [SETTINGS, TEXT, { ...TEXT, type: 'conversation.item.created' }], {
      inputTokens: 6 + 4 + 6,
    }],
    ['estimated', [SETTINGS, ...SPEECH], {
      inputTokens: 10 + 21, cachedInputTokens: null, inputAudioTokens: 21,
    }],
    // The first response as reported; its input and output are input of the second response.
    ['mixed', [SETTINGS, TEXT, DONE, ANSWER, ...SPEECH], {
      inputTokens: 100 + 120 + 21, cachedInputTokens: 120, inputAudioTokens: 21, outputTokens: 20 + 1,
    }],
    ['estimated', [{ type: 'session.created' }], { inputTokens: null }],
  ] as const
  for (const [source, before, usage] of plays) {
    const end = CLIENT_ENDS['sends a close frame'] as Play['end']
    const { row } = await ended(t, { said: [...before, ...broke], end, path: '/v1/realtime?model=m' })
    t.match(row, { end: 'client_gone', source, usage: { outputTokens: 1, ...usage } })
  }
})

t.test('a realtime session: before any output, a failed response has no usage and a cut by the upstream costs nothing', async t => {
  const path = '/v1/realtime?model=m'
  const end = UPSTREAM_ENDS['resets its connection'] as Play['end']
  const failed = { type: 'response.done', response: { status: 'failed', usage: null } }
  const { row } = await ended(t, { said: [TEXT, failed], end, path })
  t.match(row, { end: 'complete', usage: { inputTokens: null } })
  const began = [TEXT, { type: 'response.created', response: {} }]
  const cut = await ended(t, { said: began, end, path })
  t.match(cut.row, { end: 'upstream_cut', costPico: 0n })
  const left = await ended(t, { said: began, end: CLIENT_ENDS['resets its connection'] as Play['end'], path })
  t.match(left.row, { end: 'client_gone', usage: { inputTokens: 6, outputTokens: 0 } })
})
