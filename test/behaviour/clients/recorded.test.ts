import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import type { IncomingMessage } from 'node:http'
import t from 'tap'
import { at, parseEvents } from '../../simulator/start.ts'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import { bodyOf } from '../../support/upstream.ts'

interface Recorded {
  readonly client: string
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: unknown
}

interface Reply {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly text: string
}

const CONFIG = `
upstreams: { demo: { simulator: true } }
routes: [{ to: demo }]
`

/** A request as the tool sends it, without a credential, which the test adds. */
function recorded(name: string): Recorded {
  const file = new URL(`recorded/${name}.json`, import.meta.url)
  return JSON.parse(readFileSync(file, 'utf8')) as Recorded
}

async function send(url: string, what: Recorded, extra: Record<string, string>): Promise<Reply> {
  const body = what.body === null ? null : JSON.stringify(what.body)
  const framing = body === null ? {} : { 'content-length': Buffer.byteLength(body) }
  const headers = { ...what.headers, ...extra, ...framing }
  const sent = request(url + what.path, { method: what.method, headers })
  sent.end(body)
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  return { status: answer.statusCode ?? 0, headers: answer.headers, text: (await bodyOf(answer)).toString() }
}

/** Sends a request. @returns the request that the simulator gets */
async function seenUpstream(url: string, what: Recorded, extra: Record<string, string>) {
  const { text } = await send(url, what, { ...extra, 'x-simulate': 'echo' })
  return JSON.parse(text) as { target: string; headers: Record<string, string>; body_base64: string }
}

t.test('Claude Code', async t => {
  const { url } = await startTestGateway(t, CONFIG)
  const turn = recorded('claude-code-message')

  t.test('a turn works with the key in x-api-key or as bearer token', async t => {
    for (const credential of [{ 'x-api-key': KEY }, { authorization: `Bearer ${KEY}` }]) {
      const { status, headers, text } = await send(url, turn, credential)
      t.equal(status, 200)
      t.match(headers['content-type'], /^text\/event-stream/)
      t.equal(headers['content-encoding'], undefined)
      // The client of this tool drops events without a name.
      const events = parseEvents(text)
      t.ok(events.every(event => event.name === at(event.data, 'type')), 'each event is named after its type')
      t.match(events[0], { name: 'message_start', data: { message: { usage: { input_tokens: Number } } } })
      const signed = events.find(event => at(event.data, 'delta', 'type') === 'signature_delta')
      t.match(at(signed?.data, 'delta', 'signature'), /^\S+$/)
      t.match(events.at(-2), { name: 'message_delta', data: { delta: { stop_reason: 'end_turn' } } })
      t.equal(events.at(-1)?.name, 'message_stop')
    }
  })

  t.test('the request of the client reaches the upstream byte for byte, without the key of the gateway', async t => {
    for (const credential of [{ 'x-api-key': KEY }, { authorization: `Bearer ${KEY}` }]) {
      const seen = await seenUpstream(url, turn, credential)
      t.equal(seen.target, '/v1/messages?beta=true')
      t.equal(Buffer.from(seen.body_base64, 'base64').toString(), JSON.stringify(turn.body))
      for (const [name, value] of Object.entries(turn.headers)) {
        // The gateway requests no compression, because it reads the stream.
        t.equal(seen.headers[name], name === 'accept-encoding' ? 'identity' : value, name)
      }
      t.notMatch(JSON.stringify(seen.headers), KEY)
    }
  })

  t.test('tokens are counted', async t => {
    const { status, text } = await send(url, recorded('claude-code-count-tokens'), { 'x-api-key': KEY })
    t.equal(status, 200)
    t.strictSame(JSON.parse(text), { input_tokens: 2 })
  })

  t.test('the probe of the client gets 404', async t => {
    const { status, text } = await send(url, recorded('claude-code-probe'), {})
    t.equal(status, 404)
    t.equal(text, '')
  })

  t.test('an error of the upstream is forwarded with its message', async t => {
    const { status, text } = await send(url, turn, { 'x-api-key': KEY, 'x-simulate': 'status=400' })
    t.equal(status, 400)
    const error = { type: 'invalid_request_error', message: 'Simulated error 400.' }
    t.match(JSON.parse(text), { type: 'error', error })
  })
})

t.test('Codex', async t => {
  const { url } = await startTestGateway(t, CONFIG)
  const credential = { authorization: `Bearer ${KEY}` }
  const turn = recorded('codex-response')

  t.test('a WebSocket gets 426 if no upstream accepts it, so that Codex uses HTTP', async t => {
    const { status, headers, text } = await send(url, recorded('codex-websocket'), credential)
    t.equal(status, 426)
    t.equal(headers.upgrade, 'websocket')
    t.match(JSON.parse(text), { error: { code: 'upgrade_required' } })
    const keyless = await send(url, recorded('codex-websocket'), {})
    t.equal(keyless.status, 401)
  })

  t.test('a turn gets reasoning, text and usage', async t => {
    const { status, headers, text } = await send(url, turn, credential)
    t.equal(status, 200)
    t.match(headers['content-type'], /^text\/event-stream/)
    const events = parseEvents(text)
    t.match(events[0]?.data, { type: 'response.created' })
    const done = events.filter(event => at(event.data, 'type') === 'response.output_item.done')
    t.match(done.map(event => at(event.data, 'item')), [
      { type: 'reasoning', encrypted_content: /^\S+$/ },
      { type: 'message', content: [{ type: 'output_text', text: /^w1 w2/ }] },
    ])
    t.match(events.at(-1)?.data, {
      type: 'response.completed',
      response: {
        id: /^resp_/,
        usage: {
          input_tokens: Number, input_tokens_details: { cached_tokens: 0 },
          output_tokens: Number, output_tokens_details: { reasoning_tokens: 8 }, total_tokens: Number,
        },
      },
    })
  })

  t.test('the request of the client reaches the upstream byte for byte, without the key of the gateway', async t => {
    const seen = await seenUpstream(url, turn, credential)
    t.equal(seen.target, '/v1/responses')
    t.equal(Buffer.from(seen.body_base64, 'base64').toString(), JSON.stringify(turn.body))
    for (const [name, value] of Object.entries(turn.headers)) t.equal(seen.headers[name], value, name)
    t.notMatch(JSON.stringify(seen.headers), KEY)
  })
})

t.test('Gemini CLI', async t => {
  const { url } = await startTestGateway(t, CONFIG)
  const turn = recorded('gemini-cli-stream')
  const byQuery = { ...turn, path: `${turn.path}&key=${KEY}` }

  t.test('a turn works with the key in a header or in the query', async t => {
    for (const [what, credential] of [[turn, { 'x-goog-api-key': KEY }], [byQuery, {}]] as const) {
      const { status, headers, text } = await send(url, what, credential)
      t.equal(status, 200)
      t.match(headers['content-type'], /^text\/event-stream/)
      t.ok(text.endsWith('\n\n'), 'the last block is terminated')
      const blocks = text.slice(0, -2).split('\n\n')
      t.ok(blocks.every(block => /^data: \{.*\}$/.test(block)), 'each block is one line of data')
      const chunks = parseEvents(text).map(event => event.data)
      t.match(chunks[0], { candidates: [{ content: { parts: [{ thought: true }] } }] })
      t.match(chunks.at(-1), {
        candidates: [{ finishReason: 'STOP', content: { parts: [{ thoughtSignature: /^\S+$/ }] } }],
        usageMetadata: { promptTokenCount: Number, candidatesTokenCount: 16, thoughtsTokenCount: 8 },
      })
    }
  })

  t.test('the request of the client reaches the upstream byte for byte, without the key of the gateway', async t => {
    for (const [what, credential] of [[turn, { 'x-goog-api-key': KEY }], [byQuery, {}]] as const) {
      const seen = await seenUpstream(url, what, credential)
      t.equal(seen.target, turn.path)
      t.equal(Buffer.from(seen.body_base64, 'base64').toString(), JSON.stringify(turn.body))
      t.notMatch(JSON.stringify(seen.headers), KEY)
    }
  })

  t.test('a wrong key gets an error in the shape of Google', async t => {
    const { status, text } = await send(url, turn, { 'x-goog-api-key': 'wrong' })
    t.equal(status, 401)
    t.match(JSON.parse(text), { error: { code: 401, status: 'UNAUTHENTICATED', message: String } })
  })
})
