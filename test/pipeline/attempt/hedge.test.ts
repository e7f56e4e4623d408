import t from 'tap'
import { startTestGateway } from '../../support/gateway.ts'
import { scrape, sum } from '../../support/metrics.ts'
import { costOf, openBooks, priced } from '../../behaviour/billing/books.ts'
import { DIALECTS, WITH_STATUS, ask, candidatesOf } from '../../behaviour/failover/asking.ts'
import type { Dialect } from '../../behaviour/failover/asking.ts'
import { CHAT, Provider, onlyRow, openStream, refuse, respond, startPair } from '../../behaviour/failover/racing.ts'

for (const resume of ['off', 'continue', 'hold']) {
  t.test(`the attempt at the first target is cancelled if the second target responds first: resume ${resume}`, async t => {
    const { first, second, books, gateway } = await startPair(t, { route: `, resume: ${resume}` })
    const asking = ask(gateway, CHAT, { stream: true })
    openStream(await first.asked.promise)
    respond(await second.asked.promise, 'second')
    const answer = await asking
    t.match(answer, { status: 200, text: 'second', whole: true })
    t.equal(answer.headers.get('x-gateway-upstream'), 'b')
    t.equal(answer.headers.get('x-gateway-attempts'), '2')
    await first.cancelled.promise
    const row = await onlyRow(books.drain())
    t.match(row, {
      end: 'complete', upstream: 'b', error: null,
      attempts: [{ upstream: 'a', outcome: 'hedge_lost' }, { upstream: 'b', outcome: 'ok', inputTokens: 10, outputTokens: 2 }],
    })
    const prompt = row.attempts[0]?.inputTokens ?? 0
    t.ok(prompt > 0, 'the prompt of the cancelled attempt is counted')
    t.equal(row.costPico, costOf({ input: 10 + prompt, output: 2 }))
    t.match(row.usage, { inputTokens: 10 + prompt, outputTokens: 2 })
  })
}

t.test('the attempt at the second target is cancelled if the first target responds first', async t => {
  const { first, second, books, gateway } = await startPair(t)
  const asking = ask(gateway, CHAT, { stream: true })
  const slow = await first.asked.promise
  await second.asked.promise
  respond(slow, 'first')
  t.match(await asking, { status: 200, text: 'first', whole: true })
  await second.cancelled.promise
  const row = await onlyRow(books.drain())
  t.match(row, { upstream: 'a', attempts: [{ upstream: 'b', outcome: 'hedge_lost' }, { upstream: 'a', outcome: 'ok' }] })
  t.ok((row.attempts[0]?.atMs ?? 0) > (row.attempts[1]?.atMs ?? 0), 'the attempt that responds is the last')
})

t.test('with billing.abandoned: none the cancelled attempt is not billed', async t => {
  const { first, second, books, gateway } = await startPair(t, { more: 'billing: { abandoned: none }' })
  const asking = ask(gateway, CHAT, { stream: true })
  await first.asked.promise
  respond(await second.asked.promise, 'second')
  await asking
  const row = await onlyRow(books.drain())
  t.equal(row.costPico, costOf({ input: 10, output: 2 }))
})

for (const status of [400, 401, 404, 503]) {
  t.test(`if the second target responds with ${status}, the gateway waits for the first target`, async t => {
    const { first, second, books, gateway } = await startPair(t)
    const asking = ask(gateway, CHAT, { stream: true })
    const slow = await first.asked.promise
    refuse(await second.asked.promise, status)
    await gateway.waitForLog(line => line.msg === 'the upstream is slow: another one is asked too')
    respond(slow, 'first')
    t.match(await asking, { status: 200, text: 'first', whole: true })
    const row = await onlyRow(books.drain())
    t.match(row, { upstream: 'a', costPico: costOf({ input: 10, output: 2 }) })
  })
}

t.test('if the first target fails, the gateway waits for the second target', async t => {
  const { first, second, books, gateway } = await startPair(t)
  const asking = ask(gateway, CHAT, { stream: true })
  const slow = await first.asked.promise
  const other = await second.asked.promise
  slow.destroy()
  respond(other, 'second')
  t.match(await asking, { status: 200, text: 'second', whole: true })
  const row = await onlyRow(books.drain())
  t.match(row, { upstream: 'b', attempts: [{ upstream: 'a', outcome: /^upstream_|hedge_lost/ }, { upstream: 'b', outcome: 'ok' }] })
})

t.test('each of the two attempts has its own first_byte timeout', async t => {
  const { first, second, gateway } = await startPair(t, { route: ', timeouts: { first_byte: 300ms }' })
  const asking = ask(gateway, CHAT, { stream: true })
  await second.asked.promise
  const answer = await asking
  t.equal(answer.status, 504)
  t.match(answer.body, /first_byte_timeout/)
  t.match(await gateway.waitForLog(line => line.msg === 'exchange'), { attempts: 2, error: 'first_byte_timeout' })
  t.strictSame([first.requests, second.requests], [1, 1])
})

t.test('if both targets fail, the client gets the error of one of them', async t => {
  const { first, second, gateway } = await startPair(t)
  const asking = ask(gateway, CHAT, { stream: true })
  const slow = await first.asked.promise
  refuse(await second.asked.promise, 503)
  refuse(slow, 500)
  t.match(await asking, { status: /50[03]/, body: /some_code/ })
})

t.test('a client disconnect cancels both attempts', async t => {
  const { first, second, books, gateway } = await startPair(t)
  const leaving = new AbortController()
  const asking = ask(gateway, CHAT, { stream: true, signal: leaving.signal })
  await Promise.all([first.asked.promise, second.asked.promise])
  leaving.abort()
  await t.rejects(asking)
  await Promise.all([first.cancelled.promise, second.cancelled.promise])
  const row = await onlyRow(books.drain())
  t.match(row, { end: 'client_gone', attempts: { length: 2 } })
  const prompts = row.attempts.map(({ inputTokens }) => inputTokens)
  t.equal(row.usage.inputTokens, (prompts[0] ?? 0) + (prompts[1] ?? 0), 'both prompts are billed')
})

t.test('after a hedge both circuits are closed and no attempt counts as running', async t => {
  const { first, second, gateway } = await startPair(t)
  const asking = ask(gateway, CHAT, { stream: true })
  await first.asked.promise
  respond(await second.asked.promise, 'second')
  await asking
  t.match(await candidatesOf(gateway), [{ circuit: 'closed', in_flight: 0 }, { circuit: 'closed', in_flight: 0 }])
})

t.test('a request that does not ask for a stream is not hedged', async t => {
  const { first, second, gateway } = await startPair(t)
  const asking = ask(gateway, CHAT)
  const res = await first.asked.promise
  const stream = ask(gateway, CHAT, { stream: true })
  // The hedge of the stream, which started later.
  respond(await second.asked.promise, 'second')
  await stream
  res.writeHead(200, { 'content-type': 'application/json' })
  res.end('{"choices":[{"index":0,"message":{"role":"assistant","content":"first"}}]}')
  t.match(await asking, { status: 200, text: 'first' })
  t.equal(second.requests, 1)
})

t.test('if the first target fails before hedge.after, the request fails over without a hedge', async t => {
  const { first, second, books, gateway } = await startPair(t, { after: '1h' })
  const asking = ask(gateway, CHAT, { stream: true })
  refuse(await first.asked.promise, 503)
  respond(await second.asked.promise, 'second')
  t.match(await asking, { status: 200, text: 'second' })
  const row = await onlyRow(books.drain())
  t.match(row, { attempts: [{ upstream: 'a', outcome: 'error_answer' }, { upstream: 'b', outcome: 'ok' }] })
  t.equal(row.costPico, costOf({ input: 10, output: 2 }))
})

t.test('an event without content does not win the hedge, and the client gets no event of the cancelled attempt', async t => {
  for (const resume of ['off', 'continue', 'hold']) {
    const { first, second, gateway } = await startPair(t, { route: `, resume: ${resume}` })
    const asking = ask(gateway, CHAT, { stream: true })
    const slow = await first.asked.promise
    openStream(slow)
    slow.write('data: {"id":"1","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n')
    respond(await second.asked.promise, 'second')
    const answer = await asking
    t.match(answer, { status: 200, text: 'second', whole: true }, resume)
    t.equal(answer.body.split('"role"').length, 2, 'the events of one attempt')
    await first.cancelled.promise
  }
})

t.test('the idle timeout of the route applies to the response that wins the hedge', async t => {
  const { second, gateway } = await startPair(t, { route: ', timeouts: { idle: 300ms }' })
  const asking = ask(gateway, CHAT, { stream: true })
  const res = await second.asked.promise
  openStream(res)
  res.write('data: {"id":"1","choices":[{"index":0,"delta":{"role":"assistant","content":"begun"},"finish_reason":null}]}\n\n')
  t.match((await asking).body, /idle_timeout/)
})

t.test('the reservation of a hedged request covers the prompts of both attempts', async t => {
  const first = await new Provider().start(t)
  const books = await openBooks(t, `
upstreams: { a: { url: "${first.url}" }, b: { url: "${first.url}" } }
routes:
  - { model: hedged, to: [{ upstream: a, model: one }, { upstream: b, model: two }], hedge: { after: 1h } }
  - { model: plain, to: [{ upstream: a, model: one }, { upstream: b, model: two }] }
keys: [{ name: team, key: sk-team-0123456789abcdef, limits: { tokens_per_minute: 4500 } }]
${priced('one', 'two')}`)
  const headers = { authorization: 'Bearer sk-team-0123456789abcdef' }
  // About 2,500 tokens, and 1,000 of output.
  const body = { max_tokens: 1000, messages: [{ role: 'user', content: 'word '.repeat(2_000) }] }
  const refused = await ask(books.gateway, CHAT, { model: 'hedged', stream: true, headers, body })
  t.equal(refused.status, 429)
  const asking = ask(books.gateway, CHAT, { model: 'plain', stream: true, headers, body })
  void first.asked.promise.then(res => respond(res, 'first'))
  t.match(await asking, { status: 200, text: 'first' })
})

t.test('an error event before the first content causes a failover', async t => {
  const [, messages] = DIALECTS as [Dialect, Dialect]
  const { first, second, gateway } = await startPair(t, { after: '1h' })
  const asking = ask(gateway, messages, { stream: true })
  const res = await first.asked.promise
  openStream(res)
  const start = { id: 'm', type: 'message', role: 'assistant', content: [], usage: { input_tokens: 9, output_tokens: 1 } }
  res.write(`event: message_start\ndata: ${JSON.stringify({ type: 'message_start', message: start })}\n\n`)
  res.end('event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n')
  refuse(await second.asked.promise, 400)
  t.match(await asking, { status: 400 })
})

t.test('metrics count a cancelled attempt as an attempt, not as a failover', async t => {
  const { first, second, gateway } = await startPair(t, { more: 'telemetry: { prometheus: { listen: 127.0.0.1:0 } }' })
  const asking = ask(gateway, CHAT, { stream: true })
  await first.asked.promise
  respond(await second.asked.promise, 'second')
  await asking
  await gateway.waitForLog(line => line.msg === 'exchange')
  const samples = await scrape(String(gateway.addresses.metrics))
  t.equal(sum(samples, 'gateway_attempts_total', { upstream: 'a', outcome: 'hedge_lost' }), 1)
  t.equal(sum(samples, 'gateway_attempts_total', { upstream: 'b', outcome: 'ok' }), 1)
  t.equal(sum(samples, 'gateway_failovers_total'), 0)
  t.equal(sum(samples, 'gateway_continuations_total'), 0)
})

t.test('a hedge can go to a target that speaks another protocol', async t => {
  const first = await new Provider().start(t)
  const second = await new Provider().start(t)
  const books = await openBooks(t, `
${WITH_STATUS}
upstreams: { a: { url: "${first.url}", speaks: [chat] }, b: { url: "${second.url}", speaks: [messages] } }
routes: [{ to: [{ upstream: a, model: one }, { upstream: b, model: two }], hedge: { after: 50ms } }]
${priced('one', 'two')}`)
  const asking = ask(books.gateway, CHAT, { stream: true })
  const slow = await first.asked.promise
  openStream(slow)
  slow.write('data: {"id":"1","choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":null}]}\n\n')
  const res = await second.asked.promise
  openStream(res)
  for (const event of [
    { type: 'message_start', message: { id: 'm', type: 'message', role: 'assistant', model: 'two', content: [], usage: { input_tokens: 10, output_tokens: 1 } } },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'second' } },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 2 } },
    { type: 'message_stop' },
  ]) res.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
  res.end()
  t.match(await asking, { status: 200, text: 'second', whole: true })
  await first.cancelled.promise
  const row = await onlyRow(books.drain())
  t.match(row, { upstream: 'b', attempts: [{ upstream: 'a', outcome: 'hedge_lost' }, { upstream: 'b', outcome: 'ok' }] })
  t.equal(row.usage.outputTokens, 2)
})

t.test('the target whose attempt was cancelled can continue a response that breaks after the hedge', async t => {
  const first = await new Provider().start(t)
  const second = await new Provider().start(t)
  const books = await openBooks(t, `
${WITH_STATUS}
upstreams: { a: { url: "${first.url}" }, b: { url: "${second.url}" } }
routes:
  - to: [{ upstream: a, model: one, prefill: true }, { upstream: b, model: two, prefill: true }]
    hedge: { after: 50ms }
    retries: 2
    resume: continue
${priced('one', 'two')}`)
  const asking = ask(books.gateway, CHAT, { stream: true })
  await first.asked.promise
  const res = await second.asked.promise
  openStream(res)
  const again = first.askAgain()
  res.write('data: {"id":"1","choices":[{"index":0,"delta":{"role":"assistant","content":"begun"},"finish_reason":null}]}\n\n', () => res.destroy())
  respond(await again, ' and ended')
  t.match(await asking, { status: 200, text: 'begun and ended', whole: true })
  const row = await onlyRow(books.drain())
  t.match(row.attempts.map(({ upstream, outcome }) => `${upstream} ${outcome}`), ['a hedge_lost', /^b upstream_/, 'a ok'])
})

t.test('if there is no memory for a second attempt, the first attempt runs without a hedge', async t => {
  const first = await new Provider().start(t)
  const second = await new Provider().start(t)
  const gateway = await startTestGateway(t, `
server: { body_limit: 20kb, body_memory: 20kb }
upstreams: { a: { url: "${first.url}", speaks: [chat] }, b: { url: "${second.url}", speaks: [messages] } }
routes: [{ to: [a, b], hedge: { after: 50ms } }]`)
  const large = ask(gateway, CHAT, { stream: true, body: { messages: [{ role: 'user', content: 'x'.repeat(12_000) }] } })
  const res = await first.asked.promise
  const again = first.askAgain()
  const small = ask(gateway, CHAT, { stream: true, body: { messages: [{ role: 'user', content: 'x' }] } })
  // The hedge of the small request, which started later.
  await second.asked.promise
  respond(await again, 'small')
  t.match(await small, { status: 200, text: 'small' })
  respond(res, 'large')
  t.match(await large, { status: 200, text: 'large' })
  t.equal(second.requests, 1)
})
