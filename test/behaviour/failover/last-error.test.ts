import t from 'tap'
import { start } from '../../simulator/start.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'
import { DIALECTS, ask, everyWay, twoTargets } from './asking.ts'

const OWN_ERROR =
  '{ "error" : {"message":"overloaded, says the provider","type":"x","code":"y","odd":[1, 2]} }\n'

everyWay(t, 'if every target fails, the client gets the error of the last target, unmodified', async (t, dialect, stream) => {
  const asked: string[] = []
  const upstream = await startUpstream(t, async (req, res) => {
    asked.push(JSON.parse(`${await bodyOf(req)}`).model ?? req.url)
    const isFirst = asked.length === 1
    res.writeHead(isFirst ? 500 : 529, {
      'content-type': 'application/problem+json', 'x-own': 'kept', 'retry-after': '7', 'x-request-id': 'up-1',
    })
    res.end(isFirst ? 'first' : OWN_ERROR)
  })
  const gateway = await startTestGateway(t, twoTargets(upstream.url, upstream.url, 'one', 'two'))
  const answer = await ask(gateway, dialect, { stream })
  t.equal(answer.status, 529)
  t.equal(answer.body, OWN_ERROR)
  t.equal(answer.headers.get('content-type'), 'application/problem+json')
  t.equal(answer.headers.get('x-own'), 'kept')
  t.equal(answer.headers.get('retry-after'), '7')
  t.equal(answer.headers.get('x-request-id'), 'up-1')
  t.equal(answer.headers.get('x-gateway-upstream'), 'b')
  t.equal(answer.headers.get('x-gateway-attempts'), '2')
  t.equal(asked.length, 2)
})

everyWay(t, 'if the last target cannot be reached, the client gets the error of the target before', async (t, dialect, stream) => {
  const { url } = await start(t)
  const gateway = await startTestGateway(
    t, twoTargets(url, 'http://no-such-host.invalid', 'sim,status=429,retry_after=30', 'sim'),
  )
  const answer = await ask(gateway, dialect, { stream })
  t.equal(answer.status, 429)
  t.equal(answer.headers.get('retry-after'), '30')
  t.equal(answer.headers.get('x-gateway-upstream'), 'a')
  t.equal(answer.headers.get('x-gateway-attempts'), '2')
  const line = await gateway.waitForLog(each => each.msg === 'exchange')
  t.match(line, { upstream: 'a', status: 429, end: 'error', attempts: 2 })
})

everyWay(t, 'if no target can be reached, the client gets 502', async (t, dialect, stream) => {
  const gateway = await startTestGateway(
    t, twoTargets('http://no-such-host.invalid', 'http://127.0.0.1:1', 'x', 'y'),
  )
  const answer = await ask(gateway, dialect, { stream })
  t.equal(answer.status, 502)
  t.match(JSON.parse(answer.body), { error: {} })
  t.match(await gateway.waitForLog(each => each.msg === 'exchange'), {
    error: 'upstream_unreachable', attempts: 2,
  })
})

everyWay(t, 'if every target refuses the credential, ' +
  'the client gets 502 and each refusal is logged as an error', async (t, dialect, stream) => {
  const { url } = await start(t)
  const gateway = await startTestGateway(t, twoTargets(url, url, 'sim,status=401', 'sim,status=403'))
  const answer = await ask(gateway, dialect, { stream })
  t.equal(answer.status, 502)
  t.equal(answer.headers.get('x-should-retry'), 'false')
  const loud = gateway.logged.filter(each => each.level === 50)
  t.match(loud, [{ upstream: 'a', status: 401 }, { upstream: 'b', status: 403 }])
  t.equal(loud.length, 2)
})

everyWay(t, 'without another target, a refused credential (401) ' +
  'and an unpaid account (402) are logged as errors', async (t, dialect, stream) => {
  const { url } = await start(t)
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${url}" } }
routes: [{ to: a, retries: 0 }]
`)
  for (const [model, status] of [['sim,status=401', 502], ['sim,status=402', 402]] as const) {
    t.match(await ask(gateway, dialect, { model, stream }), { status })
  }
  const loud = gateway.logged.filter(each => each.level === 50)
  t.match(loud, [{ upstream: 'a', status: 401 }, { upstream: 'a', status: 402 }])
  t.equal(loud.length, 2)
})

everyWay(t, 'if the first target responds 503 and the second target responds 401, the client gets 503', async (t, dialect, stream) => {
  const { url } = await start(t)
  const gateway = await startTestGateway(t, twoTargets(url, url, 'sim,status=503', 'sim,status=401'))
  t.equal((await ask(gateway, dialect, { stream })).status, 503)
})

everyWay(t, 'if every stream contains only an error, ' +
  'the client gets status 200 and the error', async (t, dialect, stream) => {
  const { url } = await start(t)
  const gateway = await startTestGateway(
    t, twoTargets(url, url, 'sim,first_event_error', 'sim,first_event_error'),
  )
  const answer = await ask(gateway, dialect, { stream })
  t.equal(answer.status, 200)
  t.ok(dialect.tellsError(answer.body))
}, [true])

t.test('if the only response is an error that is too large to keep, the client gets 502', async t => {
  const upstream = await startUpstream(t, (_req, res) => {
    res.writeHead(500, { 'content-type': 'text/plain' })
    res.end(Buffer.alloc(2 * 1024 * 1024, 'x'))
  })
  const gateway = await startTestGateway(t, twoTargets(upstream.url, 'http://127.0.0.1:1', 'x', 'y'))
  const answer = await ask(gateway, DIALECTS[0]!)
  t.equal(answer.status, 502)
})

everyWay(t, 'a 400 is forwarded to the client, and no other target gets the request', async (t, dialect, stream) => {
  for (const status of [400, 404, 409, 413, 422]) {
    const { url, simulator } = await start(t)
    const gateway = await startTestGateway(t, twoTargets(url, url, `sim,status=${status}`, 'sim'))
    const answer = await ask(gateway, dialect, { stream })
    t.equal(answer.status, status)
    t.equal(answer.headers.get('x-gateway-upstream'), 'a')
    t.equal(simulator.stats.requests, 1)
  }
})

t.test('a stream that breaks ends with its own error, not with the error of an earlier target', async t => {
  const { url } = await start(t)
  const failing = await startUpstream(t, (_req, res) => {
    res.writeHead(500, { 'content-type': 'application/json' }).end(OWN_ERROR)
  })
  const gateway = await startTestGateway(t, twoTargets(failing.url, url, 'one', 'sim,close_after=4'))
  const answer = await ask(gateway, DIALECTS[0]!, { stream: true })
  t.equal(answer.headers.get('x-gateway-upstream'), 'b')
  t.match(answer.body, /"code":"upstream_cut"/)
  t.notMatch(answer.body, 'says the provider')
})
