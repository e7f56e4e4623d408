import { gzipSync } from 'node:zlib'
import t from 'tap'
import { start } from '../../simulator/start.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { startUpstream } from '../../support/upstream.ts'
import { DIALECTS, WORDS, ask, everyWay } from '../../behaviour/failover/asking.ts'

const [CHAT, , GENERATE] = DIALECTS

/** One target, with further keys of its route. */
function oneTarget(url: string, model: string, rest: string): string {
  return `upstreams: { a: { url: "${url}" } }\n`
    + `routes: [{ to: { upstream: a, model: "${model}" }, ${rest} }]\n`
}

everyWay(t, 'a single target is retried as often as retries allows', async (t, dialect, stream) => {
  for (const fault of ['status=503,first=2', 'reset,first=2', 'close_after=0,first=2']) {
    const { url, simulator } = await start(t)
    const gateway = await startTestGateway(t, oneTarget(url, `sim,${fault}`, 'retries: 2'))
    const answer = await ask(gateway, dialect, { stream })
    t.match(answer, { status: 200, text: WORDS })
    t.equal(answer.headers.get('x-gateway-attempts'), '3')
    t.equal(simulator.stats.requests, 3)
  }
})

t.test('with retries: 2 a single failing target gets three attempts', async t => {
  const { url, simulator } = await start(t)
  const gateway = await startTestGateway(t, oneTarget(url, 'sim,status=503', 'retries: 2'))
  const answer = await ask(gateway, CHAT!)
  t.equal(answer.status, 503)
  t.equal(answer.headers.get('x-gateway-attempts'), '3')
  t.equal(simulator.stats.requests, 3)
})

t.test('without retries a single failing target gets one attempt', async t => {
  const { url, simulator } = await start(t)
  const gateway = await startTestGateway(t, `upstreams: { a: { url: "${url}" } }\nroutes: [{ to: a }]\n`)
  t.equal((await ask(gateway, CHAT!, { model: 'sim,status=503' })).status, 503)
  t.equal(simulator.stats.requests, 1)
})

t.test('with retries: 0 the second target gets no attempt', async t => {
  const { url, simulator } = await start(t)
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${url}" } }
routes: [{ to: [{ upstream: a, model: "sim,status=503" }, a], retries: 0 }]
`)
  t.equal((await ask(gateway, CHAT!)).status, 503)
  t.equal(simulator.stats.requests, 1)
})

t.test('the gateway waits for a short Retry-After', async t => {
  const times: number[] = []
  const upstream = await startUpstream(t, (_req, res) => {
    times.push(performance.now())
    if (times.length === 1) res.writeHead(429, { 'retry-after-ms': '300' }).end('{}')
    else res.writeHead(200, { 'content-type': 'application/json' }).end('{"choices":[]}')
  })
  const gateway = await startTestGateway(t, oneTarget(upstream.url, 'x', 'retries: 1'))
  t.equal((await ask(gateway, CHAT!)).status, 200)
  t.ok((times[1] as number) - (times[0] as number) >= 299)
})

for (const coding of ['identity', 'gzip']) {
  t.test(`the gateway waits for a short retryDelay in an error body of Gemini: ${coding}`, async t => {
    const times: number[] = []
    const details = [
      { '@type': 'type.googleapis.com/google.rpc.Help' },
      { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '0.3s' },
    ]
    const refusal = Buffer.from(JSON.stringify([{ error: { code: 429, details } }]))
    const upstream = await startUpstream(t, (_req, res) => {
      times.push(performance.now())
      if (times.length === 1) {
        res.writeHead(429, { 'content-encoding': coding })
        res.end(coding === 'gzip' ? gzipSync(refusal) : refusal)
      } else {
        res.writeHead(200, { 'content-type': 'application/json' }).end('{"candidates":[]}')
      }
    })
    const gateway = await startTestGateway(t, oneTarget(upstream.url, 'x', 'retries: 1'))
    t.equal((await ask(gateway, GENERATE!)).status, 200)
    t.ok((times[1] as number) - (times[0] as number) >= 299)
  })
}

t.test('the client gets a long Retry-After, because the gateway does not wait so long', async t => {
  const { url, simulator } = await start(t)
  const gateway = await startTestGateway(t, oneTarget(url, 'sim,status=429,retry_after=20', 'retries: 3'))
  const answer = await ask(gateway, CHAT!)
  t.equal(answer.status, 429)
  t.equal(answer.headers.get('retry-after'), '20')
  t.equal(simulator.stats.requests, 1)
})

everyWay(t, 'a target is not retried after a first_byte timeout', async (t, dialect, stream) => {
  const { url, simulator } = await start(t)
  const rest = 'retries: 3, timeouts: { first_byte: 1s }'
  const gateway = await startTestGateway(t, oneTarget(url, 'sim,headers_delay=60s', rest))
  t.equal((await ask(gateway, dialect, { stream })).status, 504)
  t.equal(simulator.stats.requests, 1)
})

t.test('the total timeout covers all attempts', async t => {
  const { url, simulator } = await start(t)
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${url}" } }
routes:
  - to: [{ upstream: a, model: "sim,headers_delay=60s" }, { upstream: a, model: "sim,headers_delay=61s" }]
    timeouts: { first_byte: 1s, total: 1800ms }
`)
  const answer = await ask(gateway, CHAT!)
  t.equal(answer.status, 504)
  t.match(answer.body, /longer than 1.8 s/)
  t.equal(simulator.stats.requests, 2)
})

t.test('a client disconnect ends the wait between two attempts', async t => {
  const seen = Promise.withResolvers<void>()
  let requests = 0
  const upstream = await startUpstream(t, (_req, res) => {
    requests++
    res.writeHead(503, { 'retry-after': '4' }).end('{}')
    seen.resolve()
  })
  const gateway = await startTestGateway(t, oneTarget(upstream.url, 'x', 'retries: 5'))
  const leaving = new AbortController()
  const asked = ask(gateway, CHAT!, { signal: leaving.signal })
  await seen.promise
  await gateway.waitForLog(each => each.msg === 'attempt failed')
  leaving.abort()
  await t.rejects(asked)
  const line = await gateway.waitForLog(each => each.msg === 'exchange')
  t.match(line, { end: 'client_gone', status: 499 })
  t.ok((line.ms as number) < 3_000, 'at once, not when the wait is over')
  t.equal(requests, 1)
})

t.test('a client disconnect cancels the running attempt and prevents further attempts', async t => {
  const { url, simulator } = await start(t)
  const gone = new Promise(resolve => simulator.once('aborted', resolve))
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${url}" } }
routes: [{ to: [{ upstream: a, model: "sim,headers_delay=60s" }, a] }]
`)
  const leaving = new AbortController()
  const asked = ask(gateway, CHAT!, { signal: leaving.signal })
  simulator.once('request', () => setImmediate(() => leaving.abort()))
  await t.rejects(asked)
  await gone
  t.match(await gateway.waitForLog(each => each.msg === 'exchange'), { end: 'client_gone' })
  t.equal(simulator.stats.requests, 1)
})

t.test('a request whose client disconnects ends as client_gone, even after an upstream error', async t => {
  const { url, simulator } = await start(t)
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${url}" } }
routes:
  - to: [{ upstream: a, model: "sim,status=500" }, { upstream: a, model: "sim,headers_delay=60s" }]
`)
  const leaving = new AbortController()
  const asked = ask(gateway, CHAT!, { signal: leaving.signal })
  await gateway.waitForLog(each => each.msg === 'attempt failed')
  if (simulator.stats.requests < 2) await new Promise(resolve => simulator.once('request', resolve))
  leaving.abort()
  await t.rejects(asked)
  t.match(await gateway.waitForLog(each => each.msg === 'exchange'), {
    end: 'client_gone', status: 499, attempts: 2,
  })
})
