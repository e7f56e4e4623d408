import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import type { Test } from 'tap'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { post, startKeepingUpstream } from './exchange.ts'
import type { Came, Sent } from './exchange.ts'

const CREDENTIAL = { authorization: `Bearer ${KEY}` }
const JSON_BODY = '{"model":"m","n":1}'
const STREAM_BODY = '{"model":"m","stream":true}'

/** An upstream, and a gateway that only forwards its responses. */
async function start(
  t: Test, answer: (res: ServerResponse) => unknown,
): Promise<{ direct: string; gateway: TestGateway; url: string }> {
  const { url: direct } = await startKeepingUpstream(t, answer)
  const gateway = await startTestGateway(t, `upstreams: { up: { url: "${direct}" } }\nroutes: [{ to: up }]\n`)
  return { direct, gateway, url: gateway.url }
}

/** Checks that the response through the gateway has the bytes, status and headers of the direct response. */
async function same(t: Test, urls: { direct: string; url: string }, sent: Sent, name: string): Promise<Came> {
  const due = await post(urls.direct, sent)
  const came = await post(urls.url, { ...sent, headers: { ...CREDENTIAL, ...sent.headers } })
  t.equal(came.status, due.status, name)
  t.ok(came.body.equals(due.body), `${name}: ${came.body.toString().slice(0, 200)}`)
  for (const header of ['content-type', 'content-encoding', 'retry-after', 'x-request-id']) {
    t.equal(came.headers[header], due.headers[header], `${name}: ${header}`)
  }
  return came
}

/** The log line of an exchange, by its response. */
function lineOf(gateway: TestGateway, headers: Came['headers']): Promise<Record<string, unknown>> {
  const id = headers['x-gateway-request-id']
  return gateway.waitForLog(line => line.msg === 'exchange' && line.request === id)
}

/** Writes a stream in pieces of `size` bytes, each sent separately. */
async function inPieces(res: ServerResponse, bytes: Buffer, size: number): Promise<void> {
  res.flushHeaders()
  for (let at = 0; at < bytes.length; at += size) {
    if (!res.write(bytes.subarray(at, at + size))) await once(res, 'drain')
    await new Promise<void>(resolve => setImmediate(resolve))
  }
  res.end()
}

const CHAT = '{ "choices":[ {"index":0,"delta":{"content":"caf\\u00e9 é 😀"},"finish_reason":null} ],'
  + '"n":1.0,"usage":null }'
/** Streams that the simulator does not write: other line ends, comments, no spaces, unknown fields. */
const STREAMS: Record<string, { path: string; type: string; text: string }> = {
  'chat completions': {
    path: '/v1/chat/completions', type: 'text/event-stream',
    text: `: ping\n\ndata:${CHAT}\r\n\r\nid: 7\nretry: 1.0\ndata: ${CHAT}\n\n\n\ndata: [DONE]\n\n`,
  },
  'completions': {
    path: '/v1/completions', type: 'text/event-stream; charset=utf-8',
    text: 'data: {"choices":[{"text":"a","index":0}],"big":12345678901234567890}\n\n'
      + 'data: [DONE]\n\n: bye\n\n',
  },
  'responses': {
    path: '/v1/responses', type: 'text/event-stream',
    text: 'event: response.created\ndata: {"type":"response.created","x":1e5}\n\n'
      + 'event: response.completed\r\n'
      + 'data: {"type":"response.completed","response":{"usage":{"input_tokens":1}}}\r\n\r\n',
  },
  'messages': {
    path: '/v1/messages?beta=true', type: 'text/event-stream',
    text: 'event: message_start\n'
      + 'data: {"type":"message_start","message":{"usage":{"input_tokens":1,"output_tokens":1}}}\n\n'
      + 'event: ping\ndata: {"type": "ping"}\n\nevent: unheard_of\ndata: {"type":"unheard_of","n":1.0}\n\n'
      + 'event: message_stop\ndata: {"type":"message_stop"}\n\n',
  },
  'generate, as events': {
    path: '/v1beta/models/m:streamGenerateContent?alt=sse', type: 'text/event-stream',
    text: 'data: {"candidates":[{"content":{"parts":[{"text":"é","thoughtSignature":"AA=="}]}}]}\r\n\r\n'
      + 'data: {"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1.0}}\r\n\r\n',
  },
  'generate, as an array': {
    path: '/v1beta/models/m:streamGenerateContent', type: 'application/json; charset=UTF-8',
    text: '[{"candidates":[{"content":{"parts":[{"text":"é"}]}}]}\n,\r\n'
      + '{ "candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1} }]\n',
  },
}

t.test('streams are forwarded byte for byte, however the bytes are split', async t => {
  let answer: (res: ServerResponse) => unknown
  const urls = await start(t, res => answer(res))
  for (const [name, { path, type, text }] of Object.entries(STREAMS)) {
    for (const size of [1, 7, 64, 4096]) {
      answer = res => {
        res.setHeader('content-type', type)
        return inPieces(res, Buffer.from(text), size)
      }
      const { headers } = await same(t, urls, { path, body: STREAM_BODY }, `${name} in pieces of ${size}`)
      t.match(await lineOf(urls.gateway, headers), { status: 200, end: 'complete' })
    }
  }
})

t.test('a usage chunk is removed if the client did not ask for usage, and nothing else is changed', async t => {
  const chunk = 'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":1}}\n\n'
  const [before, after] = [`data: ${CHAT}\n\n: ping\n\n`, 'data: [DONE]\n\n']
  let size = 0
  const { url, gateway } = await start(t, res => {
    res.setHeader('content-type', 'text/event-stream')
    return inPieces(res, Buffer.from(before + chunk + after), size)
  })
  for (size of [1, 5, 4096]) {
    const path = '/v1/chat/completions'
    const hidden = await post(url, { path, headers: CREDENTIAL, body: STREAM_BODY })
    t.equal(hidden.body.toString(), before + after)
    const asked = '{"model":"m","stream":true,"stream_options":{"include_usage":true}}'
    const shown = await post(url, { path, headers: CREDENTIAL, body: asked })
    t.equal(shown.body.toString(), before + chunk + after)
    for (const { headers } of [hidden, shown]) {
      t.match(await lineOf(gateway, headers), { input_tokens: 7, output_tokens: 1 })
    }
  }
})

t.test('bodies are forwarded byte for byte', async t => {
  const odd = ' {"choices":[{"message":{"content":"caf\\u00e9 é"}}],\t"n":1.0,"n":1e5,'
    + '"big":12345678901234567890}\r\n'
  const answers: Record<string, [string, Buffer, Record<string, string>]> = {
    'JSON': ['application/json', Buffer.from(odd), {}],
    'JSON that is none': ['application/json', Buffer.from('{"half":'), {}],
    'compressed JSON': ['application/json', gzipSync(odd), { 'content-encoding': 'gzip' }],
    'sound': ['audio/mpeg', Buffer.from(Array.from({ length: 70_000 }, (_, i) => i * 7 % 256)), {}],
    'nothing': ['application/json', Buffer.alloc(0), {}],
  }
  let answer: (res: ServerResponse) => unknown
  const urls = await start(t, res => answer(res))
  for (const [name, [type, bytes, headers]] of Object.entries(answers)) {
    for (const framed of [true, false]) {
      answer = res => {
        res.setHeaders(new Map(Object.entries({ ...headers, 'content-type': type, 'x-request-id': 'req_1' })))
        if (framed) res.setHeader('content-length', bytes.length)
        else res.flushHeaders()
        res.end(bytes)
      }
      for (const path of [
        '/v1/chat/completions', '/v1/messages', '/v1beta/models/m:generateContent', '/v1/audio/speech',
        '/v1/other',
      ]) {
        const sent = { path, headers: { 'accept-encoding': 'gzip' }, body: JSON_BODY }
        const how = framed ? 'with' : 'without'
        const came = await same(t, urls, sent, `${name} at ${path}, ${how} its length`)
        t.equal(came.headers['content-length'], framed ? String(bytes.length) : undefined)
      }
    }
  }
})

t.test('errors of the upstream are forwarded byte for byte', async t => {
  const bodies: [string, string][] = [
    ['application/json', '{"type":"error","error":{"type":"overloaded_error","message":"no","n":1.0}} \n'],
    ['text/html', '<html><body><h1>503 é</h1></body></html>'],
    ['application/json', '{"error":'],
  ]
  let answer: (res: ServerResponse) => unknown
  const urls = await start(t, res => answer(res))
  for (const status of [400, 404, 413, 422, 429, 500, 503, 529]) {
    for (const [type, body] of bodies) {
      answer = res =>
        res.writeHead(status, { 'content-type': type, 'retry-after': '7', 'x-request-id': 'req_1' }).end(body)
      const streamed = { path: '/v1/chat/completions', body: STREAM_BODY }
      await same(t, urls, streamed, `${status} ${type}, to a stream`)
      await same(t, urls, { path: '/v1/messages', body: JSON_BODY }, `${status} ${type}`)
    }
  }
})

t.test('a JSON body in response to stream: true is forwarded, and the usage in the body is read', async t => {
  const usage = {
    '/v1/chat/completions': '"usage":{"prompt_tokens":7,"completion_tokens":3}',
    '/v1/responses': '"usage":{"input_tokens":7,"output_tokens":3}',
    '/v1/messages': '"usage":{"input_tokens":7,"output_tokens":3}',
    '/v1beta/models/m:streamGenerateContent?alt=sse': '"candidates":[{"finishReason":"STOP"}],'
      + '"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":3}',
  }
  let figures = ''
  const urls = await start(t, res => res.end(`{"n":1.0,${figures}}`))
  for (const [path, each] of Object.entries(usage)) {
    figures = each
    const { headers } = await same(t, urls, { path, body: STREAM_BODY }, path)
    const due = { status: 200, end: 'complete', input_tokens: 7, output_tokens: 3 }
    t.match(await lineOf(urls.gateway, headers), due, path)
  }
})

t.test('an error with status 200 is forwarded', async t => {
  const urls = await start(t, res => res.end('{"error":{"message":"no","code":400}}'))
  const stream = '/v1beta/models/m:streamGenerateContent?alt=sse'
  for (const path of ['/v1/chat/completions', '/v1/messages', stream]) {
    for (const body of [JSON_BODY, STREAM_BODY]) await same(t, urls, { path, body }, path)
  }
})

t.test('if the upstream cuts a stream, the client gets a broken transfer, in each HTTP framing', async t => {
  const half = {
    '/v1beta/models/m:streamGenerateContent': ['application/json', '[{"candidates":[{"content":{}}]}'],
    '/v1beta/models/m:streamGenerateContent?alt=sse': ['text/event-stream', 'data: {"candidates":[]}\n\n'],
    '/v1/chat/completions': ['text/event-stream', `data: ${CHAT}\n\n`],
    '/v1/responses': ['text/event-stream', 'event: response.created\ndata: {"type":"response.created"}\n\n'],
    '/v1/messages': ['text/event-stream', 'event: ping\ndata: {"type":"ping"}\n\n'],
  }
  let answer: (res: ServerResponse) => unknown
  const { url } = await start(t, res => answer(res))
  for (const [path, [type = '', text = '']] of Object.entries(half)) {
    for (const sized of [true, false]) {
      answer = res => {
        res.setHeader('content-type', type)
        if (!sized) res.flushHeaders()
        res.end(text)
      }
      const name = `${path}, ${sized ? 'with' : 'without'} a length`
      await t.rejects(post(url, { path, headers: CREDENTIAL, body: STREAM_BODY }), name)
    }
  }
})
