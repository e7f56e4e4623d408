import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { dirname, join } from 'node:path'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import t from 'tap'
import type { Test } from 'tap'
import { systemClock } from '../../src/base/clock.ts'
import { Archive } from '../../src/transcripts/archive.ts'
import { KEY } from '../support/gateway.ts'
import { H2Request, openSession } from '../support/http2.ts'
import { bodyOf, startUpstream } from '../support/upstream.ts'
import { connect, post } from '../support/wire.ts'
import { openBooks } from './billing/books.ts'
import type { Books } from './billing/books.ts'

interface Stream {
  readonly path: string
  readonly request: object
  readonly events: readonly string[]
  /** The event after which the client closes. */
  readonly last: RegExp
}

const named = (type: string, more: object = {}): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`
const data = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`
const RESPONSE = { id: 'resp_1', object: 'response', model: 'm', output: [] }

/** A stream of each protocol: 5 tokens of input, 7 of output. */
const STREAMS: Record<string, Stream> = {
  chat: {
    path: '/v1/chat/completions',
    request: { model: 'm', stream: true, messages: [], stream_options: { include_usage: true } },
    events: [
      data({ id: 'c', choices: [{ index: 0, delta: { content: 'Hi' } }] }),
      data({ id: 'c', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
      data({ id: 'c', choices: [], usage: { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12 } }),
      'data: [DONE]\n\n',
    ],
    last: /\[DONE\]/,
  },
  responses: {
    path: '/v1/responses',
    request: { model: 'm', stream: true, input: 'Hi' },
    events: [
      named('response.created', { response: { ...RESPONSE, status: 'in_progress' } }),
      named('response.output_text.delta', { delta: 'Hi', output_index: 0, content_index: 0, item_id: 'i' }),
      named('response.completed', {
        response: { ...RESPONSE, status: 'completed', usage: { input_tokens: 5, output_tokens: 7, total_tokens: 12 } },
      }),
    ],
    last: /event: response.completed[^]*\n\n/,
  },
  messages: {
    path: '/v1/messages',
    request: { model: 'm', stream: true, max_tokens: 9, messages: [] },
    events: [
      named('message_start', {
        message: { id: 'msg_1', type: 'message', role: 'assistant', content: [], usage: { input_tokens: 5, output_tokens: 1 } },
      }),
      named('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
      named('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'Hi' } }),
      named('content_block_stop', { index: 0 }),
      named('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 7 } }),
      named('message_stop'),
    ],
    last: /event: message_stop[^]*\n\n/,
  },
  generate: {
    path: '/v1beta/models/m:streamGenerateContent?alt=sse',
    request: { contents: [] },
    events: [
      data({ candidates: [{ index: 0, content: { parts: [{ text: 'Hi' }] } }] }),
      data({
        candidates: [{ index: 0, content: { parts: [] }, finishReason: 'STOP' }],
        usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 7, totalTokenCount: 12 },
      }),
    ],
    last: /finishReason[^]*\n\n/,
  },
}

interface LateUpstream {
  readonly url: string
  /** Number of connections so far. */
  readonly connections: () => number
  /** Ends the body of the waiting stream. */
  endBody(): Promise<void>
}

/** An upstream that sends all events of the stream, and ends the body in `endBody`. */
async function startLateUpstream(t: Test, { events }: Stream): Promise<LateUpstream> {
  let waiting: ServerResponse | null = null
  let connections = 0
  const { url, server } = await startUpstream(t, async (req, res) => {
    await bodyOf(req)
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const event of events) res.write(event)
    waiting = res
  })
  server.on('connection', () => connections++)
  return {
    url,
    connections: () => connections,
    endBody: async () => {
      const res = waiting as unknown as ServerResponse
      res.end()
      await once(res, 'close')
    },
  }
}

/** A gateway whose key may have one running request. */
function open(t: Test, url: string, route = ''): Promise<Books> {
  return openBooks(t, `
upstreams: { up: { url: "${url}", usage: as_is } }
routes: [{ to: up${route} }]
keys: [{ name: test, key: ${KEY}, limits: { concurrent: 1 } }]
models: { m: { price: { input: 1, output: 2 } } }
log: { bodies: [{ key: test, keep: 1d, limit: 10kb }] }
`)
}

/** Requests the status. After the response the gateway has read all earlier data of the upstream. */
async function status(gatewayUrl: string): Promise<void> {
  await (await fetch(`${gatewayUrl}/api/status`)).text()
}

function exchanges({ gateway }: Books): readonly Record<string, unknown>[] {
  return gateway.logged.filter(({ msg }) => msg === 'exchange')
}

async function settled(books: Books, count: number): Promise<void> {
  await books.gateway.waitForLog(({ msg }) => msg === 'exchange' && exchanges(books).length >= count)
}

/** Closes the connection after the last event of the protocol. */
async function readAndClose(t: Test, books: Books, { path, request, last }: Stream): Promise<void> {
  const client = await connect(t, books.gateway.url)
  client.send(post(path, request))
  await client.until(last)
  client.socket.destroy()
}

async function checkRows(t: Test, books: Books, count: number): Promise<void> {
  const lines = exchanges(books)
  t.strictSame(lines.filter(({ end, error }) => end !== 'complete' || error !== undefined), [])
  const rows = [...(await books.drain()).values()]
  t.equal(rows.length, count)
  for (const { end, error, usage, source, costPico, attempts, bytesOut } of rows) {
    t.match({ end, error, source, costPico, attempts }, {
      end: 'complete', error: null, source: 'reported', costPico: 19_000_000n, attempts: [{ outcome: 'ok', status: 200 }],
    })
    t.match(usage, { inputTokens: 5, outputTokens: 7 })
    t.ok(bytesOut > 0)
  }
}

for (const [name, stream] of Object.entries(STREAMS)) {
  for (const [route, count] of [['', 40], [', resume: continue, retries: 1', 5]] as const) {
    t.test(`${name}${route}: a response is complete if the client closes after the end marker`, async t => {
      const upstream = await startLateUpstream(t, stream)
      const books = await open(t, upstream.url, route)
      for (let n = 1; n <= count; n++) {
        await readAndClose(t, books, stream)
        await settled(books, n)
        await upstream.endBody()
        await status(books.gateway.url)
      }
      t.equal(upstream.connections(), 1, 'the connection to the upstream is used again')
      await checkRows(t, books, count)
    })
  }

  t.test(`${name}: the transcript is complete if the client closes after the end marker`, async t => {
    const upstream = await startLateUpstream(t, stream)
    const books = await open(t, upstream.url)
    await readAndClose(t, books, stream)
    await settled(books, 1)
    const [id = ''] = (await books.close()).keys()
    const archive = new Archive({
      file: join(dirname(books.file), 'bodies.db'), clock: systemClock, onFailure: ({ message }) => t.fail(message),
    })
    t.teardown(() => archive.close())
    const [kept] = await archive.find(id)
    t.equal(Buffer.from(kept?.response.bytes ?? []).toString(), stream.events.join(''))
  })
}

t.test('over HTTP/2, a response is complete if the client resets the stream after the end marker', async t => {
  const stream = STREAMS.chat as Stream
  const upstream = await startLateUpstream(t, stream)
  const books = await open(t, upstream.url)
  const session = await openSession(t, books.gateway.url)
  const request = new H2Request(session, 'POST', stream.path, { 'content-type': 'application/json' }, false)
  request.stream.end(JSON.stringify(stream.request))
  await request.until(stream.last)
  request.stream.close()
  await settled(books, 1)
  await upstream.endBody()
  await checkRows(t, books, 1)
})

t.test('a translated response is complete if the client closes after the end marker', async t => {
  const upstream = await startLateUpstream(t, STREAMS.messages as Stream)
  const books = await openBooks(t, `
upstreams: { up: { url: "${upstream.url}", speaks: [messages] } }
routes: [{ to: up }]
models: { m: { price: { input: 1, output: 2 } } }
`)
  await readAndClose(t, books, STREAMS.chat as Stream)
  await settled(books, 1)
  await upstream.endBody()
  await checkRows(t, books, 1)
})

t.test('a client that closes before the end marker is recorded as disconnected', async t => {
  for (const [name, stream] of Object.entries(STREAMS)) {
    const upstream = await startLateUpstream(t, { ...stream, events: stream.events.slice(0, -1) })
    const books = await open(t, upstream.url)
    await readAndClose(t, books, { ...stream, last: /Hi/ })
    await settled(books, 1)
    const [row] = (await books.close()).values()
    t.match(row, { end: 'client_gone', error: 'client_gone' }, name)
  }
})

t.test('openai: a response is complete if the SDK reads to the end marker, even if the upstream ends the body later', async t => {
  for (const name of ['chat', 'responses']) {
    const upstream = await startLateUpstream(t, STREAMS[name] as Stream)
    const books = await open(t, upstream.url)
    const client = new OpenAI({ baseURL: `${books.gateway.url}/v1`, apiKey: KEY, maxRetries: 0 })
    for (let n = 1; n <= 10; n++) {
      const events = name === 'chat'
        ? await client.chat.completions.create({ model: 'm', messages: [], stream: true, stream_options: { include_usage: true } })
        : await client.responses.create({ model: 'm', input: 'Hi', stream: true })
      await readThrough(books, upstream, events, n)
    }
    t.equal(upstream.connections(), 1)
    await checkRows(t, books, 10)
  }
})

t.test('anthropic: a response is complete if the SDK reads to the end marker, even if the upstream ends the body later', async t => {
  const upstream = await startLateUpstream(t, STREAMS.messages as Stream)
  const books = await open(t, upstream.url)
  const client = new Anthropic({ baseURL: books.gateway.url, apiKey: KEY, maxRetries: 0 })
  for (let n = 1; n <= 10; n++) {
    const events = await client.messages.create({ model: 'm', max_tokens: 9, messages: [], stream: true })
    await readThrough(books, upstream, events, n)
  }
  t.equal(upstream.connections(), 1)
  await checkRows(t, books, 10)
})

/** Reads up to the last event, like a program that knows the last event. */
async function readThrough(
  books: Books, upstream: LateUpstream, events: AsyncIterable<object>, count: number,
): Promise<void> {
  for await (const event of events) {
    if ('type' in event && (event.type === 'response.completed' || event.type === 'message_stop')) break
  }
  await settled(books, count)
  await upstream.endBody()
  await status(books.gateway.url)
}
