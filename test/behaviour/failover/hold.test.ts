import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { start } from '../../simulator/start.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { startUpstream } from '../../support/upstream.ts'
import { STREAM_HEAD, chunk, connect, post, startWireUpstream } from '../../support/wire.ts'
import { DIALECTS, WORDS, ask, everyWay, twoTargets } from './asking.ts'

const HOLD = '    resume: hold'

for (const fault of [
  'close_after=8', 'reset_after=8', 'cut_after=8', 'error_event_after=8', 'stall_after=8',
  'status=503', 'first_event_error', 'close_after=0', 'wrong_length,cut_after=3',
  'malformed_after=0', 'malformed_after=8', 'gzip,close_after=8', 'gzip,error_event_after=8',
]) {
  everyWay(t, `a stream with ${fault} is requested from the next target, ` +
    'and the client gets a complete stream', async (t, dialect) => {
    const { url } = await start(t)
    const timeouts = fault.startsWith('stall') ? '\n    timeouts: { idle: 1s }' : ''
    const gateway = await startTestGateway(t, twoTargets(url, url, `sim,${fault}`, 'sim', HOLD + timeouts))
    const answer = await ask(gateway, dialect, { stream: true })
    t.match(answer, { status: 200, text: WORDS, whole: true })
    t.ok(dialect.isWhole(answer.body))
    t.equal(answer.headers.get('x-gateway-upstream'), 'b')
    t.equal(answer.headers.get('x-gateway-attempts'), '2')
  }, [true])
}

everyWay(t, 'a complete response is forwarded unchanged', async (t, dialect, stream) => {
  const { url, simulator } = await start(t)
  const gateway = await startTestGateway(t, twoTargets(url, url, 'sim,split=7,crlf', 'sim', HOLD))
  const answer = await ask(gateway, dialect, { stream })
  t.equal(answer.status, 200)
  t.ok(answer.whole)
  t.equal(stream ? answer.body.includes('\r\n\r\n') : answer.text === WORDS, true)
  t.equal(simulator.stats.requests, 1)
})

everyWay(t, 'with one target, a held response that breaks is requested again if retries allow', async (t, dialect, stream) => {
  const { url } = await start(t)
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${url}" } }
routes: [{ to: { upstream: a, model: "sim,close_after=4,first=1" }, retries: 1, resume: hold }]
`)
  t.match(await ask(gateway, dialect, { stream }), { status: 200, text: WORDS, whole: true })
})

everyWay(t, 'if every stream is cut, the client gets 502 ' +
  'and no part of a response', async (t, dialect) => {
  const { url } = await start(t)
  const gateway = await startTestGateway(
    t, twoTargets(url, url, 'sim,close_after=8', 'sim,cut_after=4', HOLD),
  )
  const answer = await ask(gateway, dialect, { stream: true })
  t.equal(answer.status, 502)
  t.match(answer.headers.get('content-type'), /json/)
  const line = await gateway.waitForLog(each => each.msg === 'exchange')
  t.match(line, { end: 'upstream_cut', error: 'upstream_cut', attempts: 2 })
}, [true])

t.test('a response that is too large to be held gives 502 answer_too_large', async t => {
  const { url } = await start(t)
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${url}" } }
routes: [{ to: { upstream: a, model: "sim,huge=40mb" }, resume: hold, retries: 3 }]
`)
  const answer = await ask(gateway, DIALECTS[0]!, { stream: true })
  t.equal(answer.status, 502)
  t.match(JSON.parse(answer.body), { error: { code: 'answer_too_large' } })
  t.match(await gateway.waitForLog(each => each.msg === 'exchange'), { error: 'answer_too_large' })
})

t.test('a response that is not a stream is forwarded, whatever its size', async t => {
  const { url } = await start(t)
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${url}" } }
routes: [{ to: { upstream: a, model: "sim,huge=40mb" }, resume: hold, retries: 3 }]
`)
  const answer = await ask(gateway, DIALECTS[0]!)
  t.equal(answer.status, 200)
  t.ok(answer.whole)
  t.ok(answer.text.length >= 40 * 1024 * 1024)
})

t.test('if a client disconnects while a response is held, the upstream request ends', async t => {
  const { url, simulator } = await start(t)
  const gone = once(simulator, 'aborted')
  const gateway = await startTestGateway(t, twoTargets(url, url, 'sim,stall_after=4', 'sim', HOLD))
  const leaving = new AbortController()
  simulator.once('request', () => setImmediate(() => leaving.abort()))
  await t.rejects(ask(gateway, DIALECTS[0]!, { stream: true, signal: leaving.signal }))
  await gone
  t.match(await gateway.waitForLog(each => each.msg === 'exchange'), { end: 'client_gone' })
  t.equal(simulator.stats.requests, 1)
})

/**
 * The three ways in which a long wait can end, beside each other: it takes ten seconds before the first sign.
 */
t.test('a client that waits long for a held response gets keep-alive messages', async t => {
  const { url } = await start(t)
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${url}" } }
routes:
  - { model: good, to: { upstream: a, model: "sim,headers_delay=11s" }, resume: hold }
  - { model: bad, to: { upstream: a, model: "sim,headers_delay=11s,status=503" }, resume: hold }
  - { model: cut, to: [{ upstream: a, model: "sim,headers_delay=11s,close_after=4" }, { upstream: a, model: sim }], resume: hold }
  - { model: refused, to: { upstream: a, model: "sim,headers_delay=11s,status=400" }, resume: hold }
  - { model: late, to: { upstream: a, model: "sim,headers_delay=30s" }, resume: hold, timeouts: { total: 12s } }
`)
  await Promise.all(DIALECTS.map(async dialect => {
    const sign = dialect.name === 'messages'
      ? /^event: ping\ndata: \{"type": "ping"\}\n\n/
      : /^: keep-alive\n\n/
    const [good, bad, cut, refused, late] = await Promise.all(
      ['good', 'bad', 'cut', 'refused', 'late'].map(model => ask(gateway, dialect, { model, stream: true })),
    )
    for (const answer of [good, bad, cut, refused, late]) {
      t.match(answer, { status: 200 })
      t.match(answer?.headers.get('content-type'), /^text\/event-stream/)
      t.match(answer?.body, sign)
    }
    t.match(good, { text: WORDS, whole: true })
    t.match(cut, { text: WORDS, whole: true })
    for (const answer of [bad, refused, late]) {
      t.notOk(answer?.whole, 'the response ends abruptly')
      t.ok(dialect.tellsError(answer?.body ?? ''), `${dialect.name}: ${answer?.body}`)
      t.equal(answer?.text, '')
    }
    t.match(bad?.body, /simulated|503/i, 'the error text of the upstream')
  }))
})

t.test('a prompt refused with 403 after a long wait does not count as a refused credential', async t => {
  const upstream = await startUpstream(t, async (_req, res) => {
    await sleep(11_000)
    res.writeHead(403, { 'content-type': 'application/json' })
      .end('{"error":{"message":"Your input was flagged by moderation"}}')
  })
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${upstream.url}" } }
routes: [{ to: a, resume: hold }]
`)
  const { body } = await ask(gateway, DIALECTS[0]!, { stream: true })
  t.match(body, 'flagged by moderation')
  const line = await gateway.waitForLog(each => each.msg === 'exchange')
  t.match(line, { error: 'upstream_invalid', why: /content_filter/ })
})

t.test('a held stream is sent only when it is complete', async t => {
  const upstream = await startWireUpstream(t, async wire => {
    await wire.request()
    wire.send(STREAM_HEAD + chunk('data: {"choices":[]}\n\n'))
    await wire.ended
  })
  const gateway = await startTestGateway(
    t, twoTargets(upstream.url, upstream.url, 'x', 'y', `${HOLD}\n    retries: 0`),
  )
  const client = await connect(t, gateway.url)
  client.send(post('/v1/chat/completions', { model: 'm', stream: true, messages: [] }))
  for (let n = 0; n < 2; n++) await fetch(`${gateway.url}/v1/models`)
  t.equal(client.text, '')
  client.socket.destroy()
  t.match(await gateway.waitForLog(each => each.endpoint === 'chat.completions'), { end: 'client_gone' })
})

t.test('a held stream is metered, and its usage is not sent to a client that did not ask for usage', async t => {
  const delta = (content: string) => `data: {"id":"1","choices":[{"index":0,"delta":{"content":"${content}"}}]}\n\n`
  const usage = 'data: {"id":"1","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}}\n\n'
  const whole = delta('one') + usage + delta('two') + 'data: [DONE]\n\n'
  // Pieces that cut the events and the usage anywhere.
  const parts = whole.match(/.{1,23}/gs)!
  const upstream = await startWireUpstream(t, async wire => {
    await wire.request()
    wire.send(STREAM_HEAD)
    for (const part of parts) wire.send(chunk(part))
    wire.send('0\r\n\r\n')
    await wire.ended
  })
  const gateway = await startTestGateway(t, twoTargets(upstream.url, upstream.url, 'x', 'y', HOLD))
  const answer = await ask(gateway, DIALECTS[0]!, { stream: true })
  t.equal(answer.body, delta('one') + delta('two') + 'data: [DONE]\n\n')
  const line = await gateway.waitForLog(each => each.msg === 'exchange')
  t.match(line, { end: 'complete', input_tokens: 7, output_tokens: 5 })
})

t.test('held responses count against server.body_memory, ' +
  'and are refused with 503 beyond the limit', async t => {
  const { url } = await start(t)
  const gateway = await startTestGateway(t, `
server: { listen: 127.0.0.1:0, reveal_upstream: true, body_limit: 16kb, body_memory: 64kb }
console: { listen: 127.0.0.1:0 }
upstreams: { a: { url: "${url}" } }
routes: [{ to: { upstream: a, model: "sim,huge=200kb" }, resume: hold }]
`)
  const answer = await ask(gateway, DIALECTS[0]!, { stream: true })
  t.equal(answer.status, 503)
  t.equal(answer.headers.get('retry-after'), '1')
  await gateway.waitForLog(each => each.error === 'overloaded')
  t.match(await (await fetch(`${gateway.addresses.console}/api/status`)).json(), { body_bytes: 0 })
})

t.test('a held response that breaks releases its memory for the next attempt', async t => {
  const words = 'data: {"choices":[{"index":0,"delta":{"content":"' + 'hello '.repeat(7_000) + '"}}]}\n\n'
  let asked = 0
  const upstream = await startUpstream(t, (req, res) => {
    req.resume().on('end', () => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      if (++asked < 4) res.write(words, () => res.destroy())
      else res.end(`${words}data: [DONE]\n\n`)
    })
  })
  const gateway = await startTestGateway(t, `
server: { listen: 127.0.0.1:0, reveal_upstream: true, body_limit: 16kb, body_memory: 64kb }
upstreams: { a: { url: "${upstream.url}" } }
routes: [{ to: a, resume: hold, retries: 3 }]
`)
  const answer = await ask(gateway, DIALECTS[0]!, { stream: true })
  t.match(answer, { status: 200, whole: true })
  t.equal(answer.headers.get('x-gateway-attempts'), '4')
})
