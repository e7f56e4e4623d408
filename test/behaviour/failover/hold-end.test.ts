import t from 'tap'
import type { Test } from 'tap'
import { start } from '../../simulator/start.ts'
import { STREAM_HEAD, chunk, startWireUpstream } from '../../support/wire.ts'
import type { Wire } from '../../support/wire.ts'
import { openBooks } from '../billing/books.ts'
import { DIALECTS, WORDS, ask } from './asking.ts'
import type { AskOptions, Asked, Dialect } from './asking.ts'

/*
 * Streams that are held completely, and that lack only the end of the protocol
 * or of HTTP: they are complete responses, and the gateway does not retry.
 */

/** The ways in which the stream of the upstream ends. */
const ENDS = {
  'ends': wire => wire.send('0\r\n\r\n'),
  'closes the connection': wire => wire.socket.end(),
  'stalls': () => {},
} satisfies Record<string, (wire: Wire) => void>

type End = keyof typeof ENDS

/** @returns the events of a stream of the simulator, including usage */
async function eventsOf(url: string, dialect: Dialect, body: object = {}): Promise<string[]> {
  const answer = await fetch(url + dialect.path('sim,input=100,output=20', true), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      ...dialect.body('sim,input=100,output=20', true),
      ...dialect.name === 'chat' && { stream_options: { include_usage: true } },
      ...body,
    }),
  })
  return (await answer.text()).split(/(?<=\r?\n\r?\n)/)
}

/** Requests a held stream; the first upstream sends the text `sent` and then `end`. */
async function held(t: Test, url: string, dialect: Dialect, sent: string, end: End, asking: AskOptions = {}) {
  const upstream = await startWireUpstream(t, async wire => {
    await wire.request()
    wire.send(STREAM_HEAD + chunk(sent))
    ENDS[end](wire)
    await wire.ended
  })
  const books = await openBooks(t, `
upstreams: { a: { url: "${upstream.url}" }, b: { url: "${url}" } }
routes:
  - to: [a, { upstream: b, model: sim }]
    resume: hold
    timeouts: { idle: 1s }
`)
  const answer = await ask(books.gateway, dialect, { stream: true, ...asking })
  const [row] = (await books.close()).values()
  return { answer, row }
}

function isOnlyAnswer(t: Test, dialect: Dialect, answer: Asked): void {
  t.match(answer, { status: 200, text: WORDS, whole: true })
  t.ok(dialect.isWhole(answer.body), answer.body.slice(-300))
  t.equal(answer.headers.get('x-gateway-upstream'), 'a')
}

for (const dialect of DIALECTS) {
  for (const end of Object.keys(ENDS) as End[]) {
    t.test(`${dialect.name}: a held response that lacks only the end marker is complete if the upstream ${end}`, async t => {
      const { url, simulator } = await start(t)
      const events = await eventsOf(url, dialect)
      const lacking = dialect.name === 'generate' ? events : events.slice(0, -1)
      const { answer, row } = await held(t, url, dialect, lacking.join(''), end)
      isOnlyAnswer(t, dialect, answer)
      t.equal(simulator.stats.requests, 1, 'no other target gets the request')
      t.match(row, {
        end: 'complete', status: 200, source: 'reported',
        usage: { inputTokens: 100, outputTokens: 20 },
      })
      // A generate stream has no last event, and a chat stream may end without `[DONE]`.
      const isWhole = dialect.name === 'generate' || (dialect.name === 'chat' && end === 'ends')
      const outcome = end === 'stalls' ? 'idle_timeout' : 'upstream_cut'
      t.match(row?.attempts, [{ upstream: 'a', outcome: isWhole ? 'ok' : outcome }])
    })
  }
}

t.test('a held response with the end marker is complete, even if the HTTP body does not end', async t => {
  for (const dialect of DIALECTS) {
    const { url } = await start(t)
    const events = await eventsOf(url, dialect)
    const { answer, row } = await held(t, url, dialect, events.join(''), 'closes the connection')
    isOnlyAnswer(t, dialect, answer)
    t.match(row, { end: 'complete', attempts: [{ upstream: 'a', outcome: 'ok' }] })
  }
})

t.test('a held Responses stream with the last event is complete, even if the HTTP body does not end', async t => {
  const { url, simulator } = await start(t)
  const responses: Dialect = {
    ...DIALECTS[0] as Dialect,
    path: () => '/v1/responses',
    body: (model, stream) => ({ model, stream, input: 'Count to sixteen.' }),
  }
  const events = await eventsOf(url, responses)
  for (const [lacking, upstream] of [[0, 'a'], [1, 'b']] as const) {
    const sent = events.slice(0, events.length - lacking).join('')
    const { answer } = await held(t, url, responses, sent, 'closes the connection')
    t.match(answer, { status: 200, whole: true, body: /event: response\.completed\n/ })
    t.equal(answer.headers.get('x-gateway-upstream'), upstream)
  }
  t.equal(simulator.stats.requests, 2)
})

t.test('if only a part of the end marker arrives, the client gets one complete end marker', async t => {
  const [chat, messages] = DIALECTS as [Dialect, Dialect]
  for (const [dialect, part] of [
    [chat, 'data: [DO'], [chat, 'data: [DONE]'], [chat, 'data: [DONE]\n'], [chat, 'data: [DONE]\r\n'],
    [messages, 'event: message_'], [messages, 'event: message_stop\ndata: {"type":"me'],
  ] as const) {
    const { url } = await start(t)
    const events = await eventsOf(url, dialect)
    const { answer } = await held(t, url, dialect, events.slice(0, -1).join('') + part, 'ends')
    isOnlyAnswer(t, dialect, answer)
    t.equal(answer.body.match(/\[DONE\]|event: message_stop/g)?.length, 1, part)
  }
})

t.test('a held response without usage is complete if only the gateway requested usage', async t => {
  const [chat] = DIALECTS as [Dialect]
  const { url } = await start(t)
  const events = await eventsOf(url, chat)
  const { answer, row } = await held(t, url, chat, events.slice(0, -2).join(''), 'ends')
  isOnlyAnswer(t, chat, answer)
  t.match(row, { end: 'complete', source: 'estimated' })
})

const [CHAT, MESSAGES, GENERATE] = DIALECTS as [Dialect, Dialect, Dialect]

for (const [what, dialect, lacking, behind, body] of [
  ['the usage that the client requested', CHAT, 2, '', { stream_options: { include_usage: true } }],
  ['finish_reason', CHAT, 3, '', {}],
  ['the second choice', CHAT, 1, '', { n: 2 }],
  ['the end marker and with half an event', CHAT, 1, 'data: {"id"', {}],
  ['the end marker and with an error event', CHAT, 1, 'data: {"error":{"message":"x"}}\n\n', {}],
  ['the end marker and with a malformed event', CHAT, 1, 'data: {"id"\n\n', {}],
  ['stop_reason', MESSAGES, 2, '', {}],
  ['the end marker and with half an event', MESSAGES, 1, 'event: error\nda', {}],
  ['the last chunk', GENERATE, 1, '', {}],
  ['the second candidate', GENERATE, 0, '', { generationConfig: { candidateCount: 2 } }],
] as const) {
  t.test(`${dialect.name}: a held response without ${what} is requested from the next target`, async t => {
    const { url } = await start(t)
    const events = await eventsOf(url, dialect)
    const sent = events.slice(0, events.length - lacking).join('') + behind
    const { answer } = await held(t, url, dialect, sent, 'closes the connection', { body })
    t.match(answer, { status: 200, whole: true })
    t.ok(dialect.isWhole(answer.body))
    t.equal(answer.headers.get('x-gateway-upstream'), 'b')
  })
}
