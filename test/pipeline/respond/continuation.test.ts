import t from 'tap'
import type { LedgerRow } from '../../../src/ledger/row.ts'
import { gateway as run } from '../../cli/command.ts'
import { at, parseEvents, start } from '../../simulator/start.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { startUpstream } from '../../support/upstream.ts'
import { STREAM_HEAD, chunk, connect, post, startWireUpstream } from '../../support/wire.ts'
import { costOf, openBooks, priced, usedIn } from '../../behaviour/billing/books.ts'
import { DIALECTS, WORDS, ask, everyWay } from '../../behaviour/failover/asking.ts'
import type { Dialect } from '../../behaviour/failover/asking.ts'

/** A route with continuation: the first target is the first model, the other targets accept a prefill. */
function continued(url: string, models: readonly string[], rest = ''): string {
  const targets = models.map((model, n) => `{ upstream: u${n}, model: "${model}", prefill: ${n > 0} }`)
  return `
upstreams: { ${models.map((_, n) => `u${n}: { url: "${url}" }`).join(', ')} }
routes:
  - to: [${targets.join(', ')}]
    resume: continue
${rest}
`
}

for (const fault of [
  'close_after=8', 'reset_after=8', 'cut_after=8',
  'error_event_after=8', 'stall_after=8', 'close_after=8,split=5',
  'close_after=5', 'error_event_after=6,split=3', 'close_after=9,crlf', 'close_after=8,comments',
  'malformed_after=8', 'malformed_after=8,split=17',
]) {
  everyWay(t, `a stream with ${fault} is continued by the next target`, async (t, dialect) => {
    const { url } = await start(t)
    const timeouts = fault.startsWith('stall') ? '    timeouts: { idle: 1s }' : ''
    const gateway = await startTestGateway(t, continued(url, [`sim,${fault}`, 'sim'], timeouts))
    const answer = await ask(gateway, dialect, { stream: true })
    t.match(answer, { status: 200, text: WORDS, whole: true })
    t.ok(dialect.isWhole(answer.body), answer.body)
    t.notOk(dialect.tellsError(answer.body))
    t.equal(answer.headers.get('x-gateway-upstream'), 'u0', 'the upstream that began the stream')
    const line = await gateway.waitForLog(each => each.msg === 'exchange')
    t.match(line, { end: 'complete', upstream: 'u1', attempts: 2 })
  }, [true])
}

everyWay(t, 'a continued stream has one id, one role, one set of indexes and one finish reason', async (t, dialect) => {
  const { url } = await start(t)
  const gateway = await startTestGateway(t, continued(url, ['sim,close_after=8', 'sim']))
  const answer = await ask(gateway, dialect, { stream: true })
  const events = parseEvents(answer.body).map(({ data }) => data)
  const every = (...path: (string | number)[]) => events.map(each => at(each, ...path)).filter(Boolean)
  if (dialect.name === 'chat') {
    t.equal(new Set(every('id')).size, 1)
    t.equal(new Set(every('model')).size, 1)
    t.equal(every('choices', 0, 'delta', 'role').length, 1)
    t.equal(every('choices', 0, 'finish_reason').length, 1)
    t.equal(every('usage').length, 0, 'the client did not ask for usage')
  } else if (dialect.name === 'messages') {
    const types = every('type')
    for (const once of [
      'message_start', 'content_block_start', 'content_block_stop', 'message_delta', 'message_stop',
    ]) {
      t.equal(types.filter(type => type === once).length, 1, once)
    }
    t.strictSame(every('index'), [], 'the stream has only one block')
  } else {
    t.equal(every('candidates', 0, 'finishReason').length, 1)
    t.equal(new Set(every('responseId')).size, 1)
  }
}, [true])

everyWay(t, 'the client and the ledger get the sum of the usage of both attempts', async (t, dialect) => {
  const { url } = await start(t)
  const models = ['sim,input=100,close_after=8', 'sim,input=120,output=11'] as const
  const books = await openBooks(t, `${continued(url, models)}\n${priced(...models)}`)
  const answer = await ask(books.gateway, dialect, {
    stream: true, body: dialect.name === 'chat' ? { stream_options: { include_usage: true } } : {},
  })
  const id = answer.headers.get('x-gateway-request-id') as string
  const row = (await books.close()).get(id)
  const { stdout: story } = await run([
    'usage', '--config', books.gateway.file, '--request', id,
  ])
  t.match(row, {
    end: 'complete', status: 200, upstream: 'u1', source: dialect.name === 'generate' ? 'reported' : 'mixed',
    attempts: [
      { upstream: 'u0', outcome: 'upstream_cut', status: 200 },
      { upstream: 'u1', outcome: 'ok', status: 200, inputTokens: 120, outputTokens: 11 },
    ],
  })
  const [first, second] = row?.attempts ?? []
  const used = { input: row?.usage.inputTokens ?? 0, output: row?.usage.outputTokens ?? 0 }
  t.equal(used.input, (first?.inputTokens ?? 0) + (second?.inputTokens ?? 0))
  t.equal(used.output, (first?.outputTokens ?? 0) + (second?.outputTokens ?? 0))
  t.ok((first?.outputTokens ?? 0) > 0)
  t.equal(row?.costPico, costOf(used))
  t.match(
    story,
    /attempt 1: u0.*upstream_cut, status 200, after [\d.,]+ ms \([\d.,]+ tokens in, \d+ out, [\d.]+ USD\)/,
  )
  t.match(story, /\n {2}attempt 1 +[\d.]+\n {2}attempt 2 +[\d.]+\n {2}total +[\d.]+ USD/)
  const told =
    [...answer.body.matchAll(/"(?:completion_tokens|output_tokens|candidatesTokenCount)":(\d+)/g)].at(-1)
  t.ok(Number(told?.[1]) > 11, 'the client gets the usage of both attempts')
}, [true])

/** The last usage that the client gets, with the names of the ledger. */
function toldIn(dialect: Dialect, body: string) {
  const usage = parseEvents(body).flatMap(({ data }) => {
    const found = at(data, dialect.name === 'generate' ? 'usageMetadata' : 'usage')
    return found ? [found as Record<string, number | undefined>] : []
  }).at(-1) ?? {}
  const { cache_read_input_tokens: read = 0, cache_creation_input_tokens: written = 0 } = usage
  switch (dialect.name) {
    case 'chat':
      return { input: usage['prompt_tokens'], output: usage['completion_tokens'], cached: 0, write: 0 }
    case 'messages':
      return {
        input: Number(usage['input_tokens']) + read + written, output: usage['output_tokens'],
        cached: read, write: written,
      }
    case 'generate': {
      const { promptTokenCount, candidatesTokenCount, cachedContentTokenCount = 0 } = usage
      return {
        input: promptTokenCount, output: candidatesTokenCount, cached: cachedContentTokenCount, write: 0,
      }
    }
  }
}

for (const [what, first, second] of [
  ['counted', 'usage=none,close_after=8', 'input=120,output=11'],
  ['counted in part', 'input=100,close_after=8', 'input=120,output=11'],
  ['counted, as is that of the second attempt', 'usage=none,close_after=6', 'usage=none,close_after=6'],
  [
    'reported with cached tokens', 'input=100,cached=40,cache_write=10,close_after=8',
    'input=120,cached=70,output=11',
  ],
  ['reported, without any text', 'input=100,close_after=1', 'input=120,output=11'],
] as const) {
  everyWay(t, `the client gets the usage of the ledger: the usage of the first attempt is ${what}`, async (t, dialect) => {
    const { url } = await start(t)
    const models = [`sim,${first}`, `sim,${second}`, 'sim,input=130,output=12']
    const books = await openBooks(t, continued(url, models))
    const answer = await ask(books.gateway, dialect, {
      stream: true, body: dialect.name === 'chat' ? { stream_options: { include_usage: true } } : {},
    })
    const [row] = (await books.close()).values()
    t.match(row, { end: 'complete' })
    const { input, output, cached, write } = usedIn(row as LedgerRow)
    const told = toldIn(dialect, answer.body)
    t.strictSame({ input: told.input, output: told.output }, { input, output })
    if (dialect.name === 'chat') return
    t.strictSame({ cached: told.cached, write: told.write }, { cached, write })
  }, [true])
}

everyWay(t, 'if a target rejects the prefill, the next target is tried', async (t, dialect) => {
  const { url } = await start(t)
  const gateway = await startTestGateway(t, continued(url, [
    'sim,close_after=8', 'sim,reject_prefill', 'sim',
  ]))
  const answer = await ask(gateway, dialect, { stream: true })
  t.match(answer, { status: 200, text: WORDS, whole: true })
  t.match(await gateway.waitForLog(each => each.msg === 'exchange'), {
    end: 'complete', upstream: 'u2', attempts: 3,
  })
}, [true])

t.test('an upstream that refuses to continue is not asked again, even if retries are left', async t => {
  const { url } = await start(t)
  const second = await start(t)
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${url}" }, b: { url: "${second.url}" } }
routes:
  - to: [{ upstream: a, model: "sim,close_after=8" }, { upstream: b, model: "sim,reject_prefill", prefill: true }]
    resume: continue
    retries: 4
`)
  const answer = await ask(gateway, DIALECTS[0]!, { stream: true })
  t.ok(DIALECTS[0]!.tellsError(answer.body))
  t.equal(second.simulator.stats.requests, 1)
})

everyWay(t, 'if the second attempt breaks too, the third target continues the text of both attempts', async (t, dialect) => {
  const { url } = await start(t)
  const gateway = await startTestGateway(t, continued(url, [
    'sim,close_after=6', 'sim,error_event_after=6', 'sim',
  ]))
  const answer = await ask(gateway, dialect, { stream: true })
  t.match(answer, { status: 200, text: WORDS, whole: true })
  t.ok(dialect.isWhole(answer.body))
}, [true])

for (const fault of [
  'status=503', 'reset', 'first_event_error', 'headers_delay=60s',
  'status=400', 'error_200', 'reject_prefill',
]) {
  everyWay(t, `if no target can continue (${fault}), the client gets an error event and the stream is cut`, async (t, dialect) => {
    const { url } = await start(t)
    const timeouts = fault.startsWith('headers') ? '    timeouts: { first_byte: 1s }' : ''
    const gateway = await startTestGateway(t, continued(url, ['sim,close_after=8', `sim,${fault}`], timeouts))
    const answer = await ask(gateway, dialect, { stream: true })
    t.equal(answer.status, 200)
    t.notOk(answer.whole)
    t.ok(dialect.tellsError(answer.body), answer.body)
    t.ok(answer.text.startsWith('w1 w2'))
    t.notMatch(answer.body, /prefill/i)
    t.match(await gateway.waitForLog(each => each.msg === 'exchange'), {
      end: 'upstream_cut', error: 'upstream_cut', attempts: 2,
    })
  }, [true])
}

everyWay(t, 'if no target accepts a prefill, the client gets an error', async (t, dialect) => {
  const { url, simulator } = await start(t)
  const gateway = await startTestGateway(
    t, continued(url, ['sim,close_after=8', 'sim']).replaceAll('prefill: true', 'prefill: false'),
  )
  const answer = await ask(gateway, dialect, { stream: true })
  t.notOk(answer.whole)
  t.ok(dialect.tellsError(answer.body))
  t.equal(simulator.stats.requests, 1)
}, [true])

everyWay(t, 'if no target can continue after an error event, the error event is sent to the client', async (t, dialect) => {
  const { url } = await start(t)
  const gateway = await startTestGateway(t, continued(url, ['sim,error_event_after=8', 'sim,status=500']))
  const answer = await ask(gateway, dialect, { stream: true })
  t.notOk(answer.whole)
  t.ok(dialect.tellsError(answer.body))
  t.match(answer.body, /simulat/i, 'the error text of the upstream')
}, [true])

everyWay(t, 'a stream that breaks before any text is retried at any target', async (t, dialect) => {
  const { url } = await start(t)
  for (const fault of ['close_after=1', 'error_event_after=1']) {
    const yaml = continued(url, [`sim,${fault}`, 'sim']).replaceAll('prefill: true', 'prefill: false')
    const gateway = await startTestGateway(t, yaml)
    const answer = await ask(gateway, dialect, { stream: true })
    if (dialect.name === 'generate') continue
    t.match(answer, { status: 200, text: WORDS, whole: true })
    t.ok(dialect.isWhole(answer.body))
  }
}, [true])

everyWay(t, 'a stream that breaks within a tool call is not continued', async (t, dialect) => {
  const { url, simulator } = await start(t)
  const gateway = await startTestGateway(t, continued(url, ['sim,tool_call,close_after=3', 'sim']))
  const answer = await ask(gateway, dialect, { stream: true })
  if (dialect.isWhole(answer.body)) return
  t.ok(dialect.tellsError(answer.body))
  t.equal(simulator.stats.requests, 1)
  t.match(await gateway.waitForLog(each => each.msg === 'the stream cannot be continued'), { why: /./ })
}, [true])

everyWay(t, 'a response without a break is forwarded unchanged', async (t, dialect, stream) => {
  const { url, simulator } = await start(t)
  const gateway = await startTestGateway(t, continued(url, ['sim', 'sim']))
  t.match(await ask(gateway, dialect, { stream }), { status: 200, text: WORDS, whole: true })
  t.equal(simulator.stats.requests, 1)
})

everyWay(t, 'a compressed stream is decompressed', async (t, dialect) => {
  const { url } = await start(t)
  const gateway = await startTestGateway(t, continued(url, ['sim,gzip', 'sim']))
  const answer = await ask(gateway, dialect, { stream: true })
  t.match(answer, { status: 200, text: WORDS, whole: true })
  t.equal(answer.headers.get('x-gateway-upstream'), 'u0')
  t.equal(answer.headers.get('content-encoding'), null)
}, [true])

everyWay(t, 'a compressed stream that breaks is continued by the next target', async (t, dialect) => {
  const { url } = await start(t)
  const gateway = await startTestGateway(t, continued(url, ['sim,gzip,close_after=8', 'sim,gzip']))
  const answer = await ask(gateway, dialect, { stream: true })
  t.match(answer, { status: 200, text: WORDS, whole: true })
  t.ok(dialect.isWhole(answer.body))
  t.match(await gateway.waitForLog(each => each.msg === 'exchange'), { attempts: 2 })
}, [true])

everyWay(t, 'a stream with an unknown content-encoding is not continued', async (t, dialect) => {
  const broken = await startUpstream(t, (req, res) => {
    req.resume()
    res.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': 'x-own' })
    res.write('what it says', () => res.destroy())
  })
  const spare = await start(t)
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${broken.url}" }, b: { url: "${spare.url}" } }
routes: [{ to: [a, { upstream: b, model: sim, prefill: true }], resume: continue }]`)
  t.match(await ask(gateway, dialect, { stream: true }), { whole: false, body: 'what it says' })
  t.equal(spare.simulator.stats.requests, 0)
  await gateway.waitForLog(line => line.why === 'the stream cannot be read')
}, [true])

everyWay(t, 'a single target continues its own stream, if retries allow', async (t, dialect) => {
  const { url } = await start(t)
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${url}" } }
routes: [{ to: { upstream: a, model: "sim,close_after=8,first=1", prefill: true }, retries: 1, resume: continue }]
`)
  t.match(await ask(gateway, dialect, { stream: true }), { status: 200, text: WORDS, whole: true })
}, [true])

t.test('an upstream that stops sending is not asked to continue, even if retries are left', async t => {
  const { url, simulator } = await start(t)
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${url}" } }
routes:
  - to: { upstream: a, model: "sim,stall_after=8", prefill: true }
    retries: 3
    resume: continue
    timeouts: { idle: 1s }
`)
  const [chat] = DIALECTS as [Dialect]
  const answer = await ask(gateway, chat, { stream: true })
  t.ok(chat.tellsError(answer.body))
  t.equal(simulator.stats.requests, 1)
})

t.test('the gateway adds a missing [DONE] to a complete stream', async t => {
  const { url, simulator } = await start(t)
  const gateway = await startTestGateway(t, continued(url, ['sim,no_terminator', 'sim']))
  for (const dialect of DIALECTS.slice(0, 2)) {
    const answer = await ask(gateway, dialect, { stream: true })
    t.match(answer, { text: WORDS, whole: true })
  }
  t.ok(simulator.stats.requests <= 4)
})

t.test('a complete stream without the usage that the client requested ends with an error', async t => {
  const finish = { id: '1', choices: [{ index: 0, delta: { content: 'one' }, finish_reason: 'stop' }] }
  const up = await startWireUpstream(t, async wire => {
    await wire.request()
    wire.send(STREAM_HEAD + chunk(`data: ${JSON.stringify(finish)}\n\n`))
    wire.socket.end()
  })
  const books = await openBooks(t, `
upstreams: { a: { url: "${up.url}" } }
routes: [{ to: [a, { upstream: a, model: n, prefill: true }], resume: continue }]
`)
  const [chat] = DIALECTS as [Dialect]
  const asking = { stream_options: { include_usage: true } }
  const cut = await ask(books.gateway, chat, { stream: true, body: asking })
  t.match(cut, { status: 200, text: 'one', whole: false })
  t.ok(chat.tellsError(cut.body))
  t.notMatch(cut.body, /"usage"|\[DONE\]/, 'no usage that the upstream did not report, and no end marker')
  await books.gateway.waitForLog(line => line.why === 'the usage that was asked for is missing')
  const whole = await ask(books.gateway, chat, { stream: true })
  t.match(whole, { text: 'one', whole: true, body: /\[DONE\]/ }, 'without a request for usage the stream is complete')
  const rows = await books.drain()
  const rowOf = ({ headers }: typeof cut) => rows.get(headers.get('x-gateway-request-id') as string)
  t.match(rowOf(cut), { end: 'upstream_cut', source: 'estimated', attempts: [{ outcome: 'upstream_cut' }] })
  t.match(rowOf(whole), { end: 'complete', source: 'estimated', attempts: [{ outcome: 'upstream_cut' }] })
})

t.test('a complete stream with an error in place of [DONE] ends with [DONE] for the client', async t => {
  const up = await startWireUpstream(t, async wire => {
    await wire.request()
    wire.send(STREAM_HEAD + chunk([
      'data: {"id":"1","choices":[{"index":0,"delta":{"content":"one"},"finish_reason":"stop"}]}\n\n',
      'data: {"id":"1","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}\n\n',
      'data: {"error":{"message":"overloaded"}}\n\n',
    ].join('')))
    wire.send('0\r\n\r\n')
  })
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${up.url}", usage: as_is } }
routes: [{ to: a, resume: continue }]
`)
  const client = await connect(t, gateway.url)
  const messages = [{ role: 'user', content: 'count' }]
  client.send(post('/v1/chat/completions', { model: 'm', stream: true, messages }))
  const text = await client.until(/0\r\n\r\n$/)
  t.match(text, 'data: [DONE]')
  t.notMatch(text, 'overloaded')
  t.match(await gateway.waitForLog(each => each.msg === 'exchange'), { end: 'complete' })
})

t.test('the client gets only complete events, with the bytes that the upstreams sent', async t => {
  const events = [
    'data: {"id":"1","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n',
    'data: {"id":"1","choices":[{"index":0,"delta":{"content":"one"}}]}\n\n',
  ]
  const first = await startWireUpstream(t, async wire => {
    await wire.request()
    wire.send(STREAM_HEAD + chunk(`${events.join('')}data: {"id":"1","choices":[{"index":0,"del`))
    wire.socket.end()
  })
  const seen = Promise.withResolvers<string>()
  const second = await startWireUpstream(t, async wire => {
    seen.resolve((await wire.request()).body)
    wire.send(STREAM_HEAD + chunk(
      'data: {"id":"2","choices":[{"index":0,"delta":{"content":" two"},"finish_reason":"stop"}]}\n\n',
    ))
    wire.send(`${chunk('data: [DONE]\n\n')}0\r\n\r\n`)
  })
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${first.url}", usage: as_is }, b: { url: "${second.url}", usage: as_is } }
routes: [{ to: [a, { upstream: b, prefill: true }], resume: continue }]
`)
  const client = await connect(t, gateway.url)
  client.send(post('/v1/chat/completions', {
    model: 'm', stream: true, messages: [{ role: 'user', content: 'count' }], max_tokens: 10,
  }))
  const text = await client.until(/0\r\n\r\n$/)
  const body = text.slice(text.indexOf('\r\n\r\n') + 4).replaceAll(/[0-9a-f]+\r\n([^]*?)\r\n/g, '$1')
  t.ok(body.startsWith(events.join('')))
  t.notMatch(body, '"del\r')
  t.match(body, /"id":"1"[^\n]*" two"/)
  t.match(JSON.parse(await seen.promise), {
    model: 'm', messages: [{ role: 'user', content: 'count' }, { role: 'assistant', content: 'one' }],
    max_tokens: 9,
  })
})

t.test('a client disconnect in mid-stream causes no continuation and does not count as a failed attempt', async t => {
  const { url, simulator } = await start(t)
  const gateway = await startTestGateway(t, continued(url, ['sim,stall_after=4', 'sim']))
  const client = await connect(t, gateway.url)
  client.send(post('/v1/chat/completions', DIALECTS[0]!.body('m', true)))
  await client.until(/w1/)
  client.socket.destroy()
  t.match(await gateway.waitForLog(each => each.msg === 'exchange'), { end: 'client_gone' })
  t.notOk(gateway.logged.some(({ msg }) => msg === 'attempt failed'))
  t.equal(simulator.stats.requests, 1)
})

t.test('if the client disconnects while an upstream is asked to continue, no other upstream is tried', async t => {
  const { url, simulator } = await start(t)
  const gateway = await startTestGateway(t, continued(url, [
    'sim,close_after=8', 'sim,headers_delay=60s', 'sim',
  ]))
  const leaving = new AbortController()
  const asked = ask(gateway, DIALECTS[0]!, { stream: true, signal: leaving.signal })
  await gateway.waitForLog(each => each.msg === 'attempt failed')
  simulator.once('aborted', () => {})
  leaving.abort()
  await asked
  const line = await gateway.waitForLog(each => each.msg === 'exchange')
  t.match(line, { end: 'client_gone' })
  t.equal(simulator.stats.requests <= 2, true)
})
