import t from 'tap'
import { start } from '../../simulator/start.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { startUpstream } from '../../support/upstream.ts'
import { DIALECTS, WITH_STATUS, WORDS, ask, candidatesOf, everyWay, twoTargets } from './asking.ts'

const [CHAT] = DIALECTS

everyWay(t, 'an upstream that always fails gets few attempts', async (t, dialect, stream) => {
  const dead = await start(t)
  const { url } = await start(t)
  const gateway = await startTestGateway(t, twoTargets(dead.url, url, 'sim,reset', 'sim'))
  const startedAt = performance.now()
  for (let n = 0; n < 30; n++) t.match(await ask(gateway, dialect, { stream }), { status: 200, text: WORDS })
  // An open circuit admits one probe after each half second, at most.
  const probes = (performance.now() - startedAt) / 500
  t.ok(dead.simulator.stats.requests <= 5 + probes, `it got ${dead.simulator.stats.requests} requests`)
})

t.test('an upstream with an open circuit gets at most 2 attempts of 50 simultaneous requests', async t => {
  const dead = await start(t)
  const { url } = await start(t)
  const gateway = await startTestGateway(t, twoTargets(dead.url, url, 'sim,status=503', 'sim'))
  for (let n = 0; n < 3; n++) await ask(gateway, CHAT!)
  const before = dead.simulator.stats.requests
  const answers = await Promise.all(Array.from({ length: 50 }, () => ask(gateway, CHAT!)))
  t.ok(answers.every(({ status }) => status === 200))
  t.ok(dead.simulator.stats.requests - before <= 2)
})

t.test('the first target gets requests again soon after its recovery', async t => {
  let isBroken = true
  const primary = await startUpstream(t, (_req, res) => {
    if (isBroken) res.writeHead(503).end('{}')
    else res.writeHead(200, { 'content-type': 'application/json' }).end('{"choices":[]}')
  })
  const { url } = await start(t)
  const gateway = await startTestGateway(t, twoTargets(primary.url, url, 'x', 'sim'))
  const served = async () => (await ask(gateway, CHAT!)).headers.get('x-gateway-upstream')
  for (let n = 0; n < 6; n++) t.equal(await served(), 'b')
  isBroken = false
  const recovered = performance.now()
  while (await served() !== 'a') t.ok(performance.now() - recovered < 30_000)
  for (let n = 0; n < 5; n++) t.equal(await served(), 'a')
})

t.test('an upstream that sends retry-after gets no requests during the delay, even if an earlier request succeeds later', async t => {
  const early = Promise.withResolvers<() => void>()
  let asked = 0
  const primary = await startUpstream(t, (_req, res) => {
    const answer = (): unknown =>
      res.writeHead(200, { 'content-type': 'application/json' }).end('{"choices":[]}')
    if (asked++ === 0) early.resolve(answer)
    else res.writeHead(429, { 'retry-after': '30' }).end('{}')
  })
  const { url } = await start(t)
  const gateway = await startTestGateway(t, twoTargets(primary.url, url, 'x', 'sim'))
  const first = ask(gateway, CHAT!)
  const answer = await early.promise
  t.equal((await ask(gateway, CHAT!)).headers.get('x-gateway-upstream'), 'b')
  answer()
  t.equal((await first).headers.get('x-gateway-upstream'), 'a')
  for (let n = 0; n < 3; n++) t.equal((await ask(gateway, CHAT!)).headers.get('x-gateway-upstream'), 'b')
  t.equal(asked, 2)
})

for (const [fault, streams] of [
  ['first_event_error', [true]], ['error_event_after=3', [true]], ['error_200', [false, true]],
  ['error_200,gzip', [false]],
] as const) {
  everyWay(t, `an upstream that always responds with status 200 and ` +
    `an error gets few attempts (${fault})`, async (t, dialect, stream) => {
    const broken = await start(t)
    const { url } = await start(t)
    const gateway = await startTestGateway(
      t, twoTargets(broken.url, url, `sim,${fault}`, 'sim', '    retries: 0'),
    )
    for (let n = 0; n < 30; n++) await ask(gateway, dialect, { stream })
    t.ok(broken.simulator.stats.requests <= 8, `it got ${broken.simulator.stats.requests} requests`)
  }, [...streams])
}

t.test('if the circuits of all targets are open, requests are still sent to the targets', async t => {
  const { url, simulator } = await start(t)
  const gateway = await startTestGateway(t, twoTargets(url, url, 'sim,status=500', 'sim,status=503'))
  for (let n = 0; n < 8; n++) t.ok((await ask(gateway, CHAT!)).status >= 500)
  t.equal(simulator.stats.requests, 16)
})

t.test('after the circuit of the only target opens, each request makes one attempt', async t => {
  const { url, simulator } = await start(t)
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${url}" } }
routes: [{ to: { upstream: a, model: "sim,status=503" }, retries: 2 }]
`)
  t.equal((await ask(gateway, CHAT!)).headers.get('x-gateway-attempts'), '3')
  for (let n = 0; n < 8; n++) t.equal((await ask(gateway, CHAT!)).headers.get('x-gateway-attempts'), '1')
  t.equal(simulator.stats.requests, 11)
})

everyWay(t, 'streams that are cut in mid-response open the circuit', async (t, dialect) => {
  const { url } = await start(t)
  const gateway = await startTestGateway(t, twoTargets(url, url, 'sim,close_after=8', 'sim'))
  for (let n = 0; n < 3; n++) {
    const answer = await ask(gateway, dialect, { stream: true })
    t.notOk(answer.whole)
    t.ok(dialect.tellsError(answer.body))
  }
  t.match(await ask(gateway, dialect, { stream: true }), { whole: true, text: WORDS })
}, [true])

t.test('an upstream that sends retry-after gets no requests during the delay', async t => {
  const { url, simulator } = await start(t)
  const gateway = await startTestGateway(t, twoTargets(url, url, 'sim,status=429,retry_after=30', 'sim'))
  for (let n = 0; n < 4; n++) t.equal((await ask(gateway, CHAT!)).status, 200)
  t.equal(simulator.stats.requests, 5)
})

t.test('an upstream with a retry delay in an error body gets no requests during the delay, even without retries', async t => {
  const retryInfo = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', 'retryDelay': '30s' }
  let asked = 0
  const primary = await startUpstream(t, (_req, res) => {
    asked++
    res.writeHead(429, { 'content-type': 'application/json' })
    res.end(JSON.stringify({ error: { code: 429, details: [retryInfo] } }))
  })
  const { url } = await start(t)
  const gateway = await startTestGateway(t, twoTargets(primary.url, url, 'x', 'sim', '    retries: 0'))
  t.equal((await ask(gateway, CHAT!)).status, 429)
  for (let n = 0; n < 3; n++) t.equal((await ask(gateway, CHAT!)).headers.get('x-gateway-upstream'), 'b')
  t.equal(asked, 1)
})

t.test('an error does not set first_byte_ms of a target', async t => {
  const { url } = await start(t)
  const gateway = await startTestGateway(t, `
${WITH_STATUS}
upstreams: { a: { url: "${url}" } }
routes: [{ to: a, retries: 0 }]
`)
  for (const model of ['sim,status=400', 'sim,status=500']) await ask(gateway, CHAT!, { model })
  await ask(gateway, CHAT!, { model: 'sim' })
  t.match(await candidatesOf(gateway), [
    { first_byte_ms: null }, { first_byte_ms: null }, { model: 'sim', first_byte_ms: Number },
  ])
})

t.test('errors with status 400, 404 or 422 open no circuit', async t => {
  const { url } = await start(t)
  const gateway = await startTestGateway(t, `
${WITH_STATUS}
upstreams: { a: { url: "${url}" } }
routes: [{ to: a, retries: 0 }]
`)
  for (const model of ['sim,status=400', 'sim,status=404', 'sim,status=422']) {
    for (let n = 0; n < 4; n++) await ask(gateway, CHAT!, { model })
  }
  t.match(await candidatesOf(gateway), Array.from({ length: 3 }, () => ({ circuit: 'closed', in_flight: 0 })))
})

t.test('a circuit opens if the streams of its upstream always break, even if other upstreams continue the streams', async t => {
  const { url } = await start(t)
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${url}" }, b: { url: "${url}" } }
routes: [{ to: [{ upstream: a, model: "sim,close_after=6" }, { upstream: b, model: sim, prefill: true }],
  resume: continue }]
`)
  for (const served of ['a', 'a', 'a', 'b']) {
    const answer = await ask(gateway, CHAT!, { stream: true })
    t.match(answer, { text: WORDS, whole: true })
    t.equal(answer.headers.get('x-gateway-upstream'), served)
  }
})

t.test('a client that disconnects in mid-response does not reset the failure count of the upstream', async t => {
  const head = Promise.withResolvers<void>()
  let asked = 0
  const upstream = await startUpstream(t, (_req, res) => {
    if (++asked !== 3) res.writeHead(500).end('{}')
    else res.writeHead(200, { 'content-type': 'text/event-stream' }).write(': well\n\n', () => head.resolve())
  })
  const gateway = await startTestGateway(t, `
${WITH_STATUS}
upstreams: { a: { url: "${upstream.url}" } }
routes: [{ to: a, retries: 0 }]
`)
  await ask(gateway, CHAT!)
  await ask(gateway, CHAT!)
  const leaving = new AbortController()
  const left = ask(gateway, CHAT!, { stream: true, signal: leaving.signal }).catch(() => {})
  await head.promise
  leaving.abort()
  await left
  await gateway.waitForLog(line => line['end'] === 'client_gone')
  await ask(gateway, CHAT!)
  t.match(await candidatesOf(gateway), [{ upstream: 'a', circuit: 'open' }])
})

t.test('first_byte_ms is measured for an upstream that continues a stream', async t => {
  const { url } = await start(t)
  const gateway = await startTestGateway(t, `
${WITH_STATUS}
upstreams: { a: { url: "${url}" }, b: { url: "${url}" } }
routes: [{ to: [{ upstream: a, model: "sim,close_after=6" }, { upstream: b, model: sim, prefill: true }],
  resume: continue }]
`)
  t.match(await ask(gateway, CHAT!, { stream: true }), { text: WORDS })
  t.match(await candidatesOf(gateway), [{ upstream: 'a' }, { upstream: 'b', first_byte_ms: Number }])
})

t.test('a failing model does not open the circuits of other models of the same upstream', async t => {
  const { url } = await start(t)
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${url}" }, b: { url: "${url}" } }
routes: [{ to: [a, { upstream: b, model: sim }] }]
`)
  for (let n = 0; n < 5; n++) await ask(gateway, CHAT!, { model: 'sim,status=500' })
  const well = await ask(gateway, CHAT!, { model: 'sim' })
  t.equal(well.headers.get('x-gateway-upstream'), 'a')
})

t.test('with affinity, all requests of one key or one session go to the same target', async t => {
  const { url } = await start(t)
  const targets = 'to: [{ upstream: a, model: sim }, { upstream: b, model: sim }], strategy: weighted'
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${url}" }, b: { url: "${url}" } }
routes:
  - { model: by-key, ${targets}, affinity: key }
  - { model: by-session, ${targets}, affinity: "header:X-Session" }
  - { model: by-constructor, ${targets}, affinity: "header:Constructor" }
`)
  const served = async (model: string, headers: Record<string, string> = {}) =>
    (await ask(gateway, CHAT!, { model, headers })).headers.get('x-gateway-upstream')
  const byKey = await served('by-key')
  for (let n = 0; n < 10; n++) t.equal(await served('by-key'), byKey)
  const seen = new Set<string | null>()
  for (let n = 0; n < 12; n++) {
    const first = await served('by-session', { 'x-session': `s${n}` })
    t.equal(await served('by-session', { 'x-session': `s${n}` }), first)
    seen.add(first)
  }
  t.equal(seen.size, 2, 'sessions go to different targets')
  for (const model of ['by-session', 'by-constructor']) {
    const without = new Set<string | null>()
    for (let n = 0; n < 40 && without.size < 2; n++) without.add(await served(model))
    t.equal(without.size, 2, `${model}: without the header the strategy chooses`)
  }
})
