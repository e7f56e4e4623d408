import { once } from 'node:events'
import { createServer } from 'node:http'
import type { IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Server, ServerCredentials } from '@grpc/grpc-js'
import t from 'tap'
import type { Test } from 'tap'
import { KEY, startTestGateway } from '../support/gateway.ts'
import type { TestGateway } from '../support/gateway.ts'
import { bodyOf, startRawUpstream, startUpstream } from '../support/upstream.ts'

interface Span {
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly kind: number
  readonly attributes: readonly { readonly key: string, readonly value: Record<string, unknown> }[]
}

interface Traces {
  readonly resourceSpans?: { readonly scopeSpans: { readonly spans: Span[] }[] }[]
}

const CLIENT_TRACE = '0af7651916cd43dd8448eb211c80319c'
const CLIENT_SPAN = 'b7ad6b7169203331'

/** A collector that keeps what it is sent as JSON. */
async function startCollector(t: Test) {
  const spans: Span[] = []
  const requests: { readonly url: string, readonly headers: IncomingMessage['headers'] }[] = []
  const arrived: (() => void)[] = []
  const { url } = await startUpstream(t, async (req, res) => {
    const body = await bodyOf(req)
    requests.push({ url: req.url ?? '', headers: req.headers })
    if (req.headers['content-type'] === 'application/json') {
      const { resourceSpans = [] } = JSON.parse(String(body)) as Traces
      spans.push(...resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(scope => scope.spans)))
    }
    res.setHeader('content-type', req.headers['content-type'] ?? '')
    res.end(req.headers['content-type'] === 'application/json' ? '{}' : '')
    for (const tell of arrived.splice(0)) tell()
  })
  const until = async (isThere: () => boolean): Promise<void> => {
    while (!isThere()) await new Promise<void>(resolve => arrived.push(resolve))
  }
  return { url, spans, requests, until }
}

async function start(t: Test, otlp: string, upstream: string, more = ''): Promise<TestGateway> {
  return startTestGateway(t, `
upstreams: { dead: { url: "http://127.0.0.1:1" }, real: { url: "${upstream}", auth: { bearer: sk-operator-secret-1234 } } }
routes: [{ model: "*", to: [dead, { upstream: real, model: real-model }] }]
models: { real-model: { price: { input: 1, output: 2 } } }
attribution: { user: [header], tags: { project: [header] } }
telemetry: { otlp: { ${otlp} }${more} }
`)
}

/** An upstream of the chat protocol; keeps the headers that it gets. */
async function startModel(t: Test) {
  const headers: IncomingMessage['headers'][] = []
  const { url } = await startUpstream(t, (req, res) => {
    headers.push(req.headers)
    res.setHeader('content-type', 'application/json')
    res.end(JSON.stringify({
      id: 'chatcmpl-1', model: 'real-model-2026', object: 'chat.completion',
      choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'answer-text' } }],
      usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15, prompt_tokens_details: { cached_tokens: 4 } },
    }))
  })
  return { url, headers }
}

async function ask({ url }: { readonly url: string }, headers: Record<string, string> = {}): Promise<Response> {
  const response = await fetch(`${url}/v1/chat/completions?secret=query-secret`, {
    method: 'POST', body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'prompt-text' }] }),
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', ...headers },
  })
  await response.text()
  return response
}

function attributesOf({ attributes }: Span): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))
}

t.test('the span of a request is a child of the client\'s span, and each attempt has a span below the request', async t => {
  const collector = await startCollector(t)
  const model = await startModel(t)
  const gateway = await start(t, `endpoint: "${collector.url}", protocol: http/json, headers: { x-token: secret }, metrics: false`, model.url)
  await ask(gateway, { traceparent: `00-${CLIENT_TRACE}-${CLIENT_SPAN}-01`, tracestate: 'vendor=1', 'x-gateway-tags': 'project=alpha,user=u1' })
  await collector.until(() => collector.spans.length === 3)
  const { spans } = collector
  t.ok(spans.every(({ traceId }) => traceId === CLIENT_TRACE))
  const request = spans.find(({ kind }) => kind === 2) as Span
  const attempts = spans.filter(({ kind }) => kind === 3)
  t.equal(request.parentSpanId, CLIENT_SPAN)
  t.strictSame(attempts.map(({ parentSpanId }) => parentSpanId), [request.spanId, request.spanId])
  const [failed, served] = attempts.map(attributesOf)
  t.match(failed, { 'gateway.upstream': 'dead', 'error.type': 'upstream_unreachable' })
  t.match(served, {
    'gateway.upstream': 'real', 'gen_ai.operation.name': 'chat', 'gen_ai.request.model': 'real-model',
    'gen_ai.response.model': 'real-model-2026', 'gen_ai.response.id': 'chatcmpl-1', 'server.address': '127.0.0.1',
    'gen_ai.usage.cache_read.input_tokens': 4, 'gateway.cost_usd': 0.00002,
  })
  t.equal(Number(served?.['gen_ai.usage.input_tokens']), 10)
  t.match(attributesOf(request), { 'gateway.key': 'test', 'user.id': 'u1', 'gateway.tag.project': 'alpha', 'gateway.upstream': 'real', 'gateway.cost_usd': 0.00002 })
  t.equal(model.headers[0]?.traceparent, `00-${CLIENT_TRACE}-${attempts[1]?.spanId}-01`, 'the upstream gets the span of its attempt')
  t.equal(model.headers[0]?.tracestate, 'vendor=1')
  t.equal(collector.requests[0]?.url, '/v1/traces')
  t.equal(collector.requests[0]?.headers['x-token'], 'secret')
  const lines = gateway.logged.filter(line => line.request !== undefined)
  t.ok(lines.length >= 2 && lines.every(line => line.trace_id === CLIENT_TRACE && line.span_id === request.spanId))
  t.notMatch(JSON.stringify(spans), /prompt-text|answer-text|sk-operator|sk-test|query-secret/)
})

t.test('each attempt of a hedged request has its own span, and the cancelled attempt is not an error', async t => {
  const collector = await startCollector(t)
  const seen = new Map<string, unknown>()
  const second = Promise.withResolvers<void>()
  const provider = (name: string) => startUpstream(t, async (req, res) => {
    seen.set(name, req.headers.traceparent)
    res.setHeader('content-type', 'text/event-stream')
    if (name === 'second') second.resolve()
    else {
      // The first upstream responds first, after the hedge has started.
      await second.promise
      res.end('data: {"choices":[{"index":0,"delta":{"content":"first"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n')
    }
  })
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${(await provider('first')).url}" }, b: { url: "${(await provider('second')).url}" } }
routes: [{ to: [a, b], hedge: { after: 50ms } }]
telemetry: { otlp: { endpoint: "${collector.url}", protocol: http/json, metrics: false } }
`)
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST', body: '{"model":"m","stream":true,"messages":[]}',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
  })
  t.match(await response.text(), 'first')
  await collector.until(() => collector.spans.length === 3)
  const attempts = collector.spans.filter(({ kind }) => kind === 3)
  for (const [upstream, name] of [['a', 'first'], ['b', 'second']] as const) {
    const span = attempts.find(each => attributesOf(each)['gateway.upstream'] === upstream) as Span
    t.match(seen.get(name), span.spanId, `the upstream ${upstream} has the span of its attempt`)
    t.equal(attributesOf(span)['error.type'], undefined)
  }
})

t.test('with `content: true` a trace contains prompt and response and no credential', async t => {
  const collector = await startCollector(t)
  const model = await startModel(t)
  const gateway = await start(t, `endpoint: "${collector.url}", protocol: http/json, metrics: false, content: true`, model.url)
  await ask(gateway)
  await collector.until(() => collector.spans.length === 3)
  t.match(JSON.stringify(collector.spans), /prompt-text.*answer-text|answer-text.*prompt-text/)
  t.notMatch(JSON.stringify(collector.spans), /sk-operator|sk-test|query-secret/)
})

t.test('a trace is not sent if the client or the sample rate excludes it', async t => {
  const collector = await startCollector(t)
  const model = await startModel(t)
  const gateway = await start(t, `endpoint: "${collector.url}", protocol: http/json, metrics: false, sample: 0`, model.url)
  await ask(gateway)
  await ask(gateway, { traceparent: `00-${CLIENT_TRACE}-${CLIENT_SPAN}-00` })
  t.match(model.headers[1]?.traceparent, new RegExp(`^00-${CLIENT_TRACE}-[0-9a-f]{16}-00$`))
  await ask(gateway, { traceparent: `00-${CLIENT_TRACE}-${CLIENT_SPAN}-01` })
  await collector.until(() => collector.spans.length >= 3)
  t.equal(collector.spans.length, 3, 'a trace that the client samples is sent')
})

t.test('http/protobuf and gRPC send traces and metrics to their collectors', async t => {
  const model = await startModel(t)
  const collector = await startCollector(t)
  const gateway = await start(t, `endpoint: "${collector.url}", interval: 100ms`, model.url)
  await ask(gateway)
  await collector.until(() => ['/v1/traces', '/v1/metrics'].every(path => collector.requests.some(({ url }) => url === path)))
  t.ok(collector.requests.every(({ headers }) => headers['content-type'] === 'application/x-protobuf'))

  const calls = new Map<string, number>()
  const both = Promise.withResolvers<void>()
  const server = new Server()
  t.teardown(() => server.forceShutdown())
  for (const [service, name] of [['trace', 'Trace'], ['metrics', 'Metrics']] as const) {
    const path = `/opentelemetry.proto.collector.${service}.v1.${name}Service/Export`
    const raw = { requestDeserialize: (bytes: Buffer) => bytes, responseSerialize: (bytes: Buffer) => bytes }
    server.addService({
      export: {
        path, requestStream: false, responseStream: false, ...raw,
        requestSerialize: raw.responseSerialize, responseDeserialize: raw.requestDeserialize,
      },
    }, {
      export: (call: { request: Buffer }, done: (error: null, response: Buffer) => void) => {
        calls.set(service, call.request.length)
        done(null, Buffer.alloc(0))
        if (calls.size === 2) both.resolve()
      },
    })
  }
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) => error ? reject(error) : resolve(bound))
  })
  const overGrpc = await start(t, `endpoint: "http://127.0.0.1:${port}", protocol: grpc, interval: 100ms`, model.url)
  await ask(overGrpc)
  await both.promise
  t.ok((calls.get('trace') ?? 0) > 100 && (calls.get('metrics') ?? 0) > 100)
})

t.test('requests succeed while the collector refuses, hangs or is unreachable, and a failure is logged once', async t => {
  const model = await startModel(t)
  const refusing = createServer((_req, res) => res.writeHead(400).end()).listen(0, '127.0.0.1')
  await once(refusing, 'listening')
  t.teardown(() => refusing.close())
  const { url: hanging } = await startRawUpstream(t, () => {})
  for (const endpoint of [`http://127.0.0.1:${(refusing.address() as AddressInfo).port}`, hanging, 'http://127.0.0.1:1']) {
    const gateway = await start(t, `endpoint: "${endpoint}", protocol: http/json, interval: 50ms`, model.url)
    for (let n = 0; n < 20; n++) t.equal((await ask(gateway)).status, 200)
    if (endpoint === hanging) continue
    await gateway.waitForLog(({ msg }) => String(msg).startsWith('telemetry: spans'))
    t.equal(gateway.logged.filter(({ msg }) => String(msg).startsWith('telemetry: spans')).length, 1)
  }
})
