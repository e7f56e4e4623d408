import { setImmediate } from 'node:timers/promises'
import pino from 'pino'
import t from 'tap'
import type { LiveUpstream } from '../../src/upstreams/live-upstreams.ts'
import { HealthChecks } from '../../src/upstreams/health-checks.ts'
import { createProxy } from '../../src/proxy/upstream/http-proxy.ts'
import type { ResponseHandler } from '../../src/proxy/upstream/transport.ts'
import { ReadTurns } from '../../src/proxy/http/read-turns.ts'
import { UpstreamSecrets } from '../../src/proxy/upstream/secret-mask.ts'
import { Health } from '../../src/routing/health.ts'
import { DIALECTS, ask } from '../behaviour/failover/asking.ts'
import { certificateFiles } from '../support/certificate.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { startTestGateway } from '../support/gateway.ts'
import { startHttp2Upstream } from '../support/http2.ts'
import { CONSOLE, operatorOf } from '../support/operator.ts'
import { addressOf } from '../support/upstream-address.ts'
import { startRawUpstream, startUpstream } from '../support/upstream.ts'

const [CHAT] = DIALECTS

t.test('an upstream that fails its checks gets no requests until it passes one', async t => {
  let isWell = true
  const asked: (string | undefined)[] = []
  const first = await startUpstream(t, (req, res) => {
    if (req.url === '/base/health?deep=1') {
      asked.push(req.headers.authorization)
      res.writeHead(isWell ? 204 : 500).end()
    } else {
      res.writeHead(200, { 'content-type': 'application/json' }).end('{"choices":[]}')
    }
  })
  const second = await startUpstream(t, (_req, res) => {
    res.writeHead(200, { 'content-type': 'application/json' }).end('{"choices":[]}')
  })
  const gateway = await startTestGateway(t, `
server: { listen: 127.0.0.1:0, reveal_upstream: true }
${CONSOLE}
upstreams:
  a: { url: "${first.url}/base", auth: { bearer: operator }, health: { path: "/health?deep=1", every: 20ms } }
  b: { url: "${second.url}" }
routes: [{ to: [a, b] }]
`)
  const served = async () => (await ask(gateway, CHAT!)).headers.get('x-gateway-upstream')
  t.equal(await served(), 'a')
  isWell = false
  await gateway.waitForLog(line => line.msg === 'the upstream is unhealthy' && line.upstream === 'a')
  t.equal(await served(), 'b')
  const status = await (await operatorOf(gateway.addresses.console))()
  t.match(status, { upstreams: [
    { upstream: 'a', model: 'm', circuit: 'open', opens_in_ms: null, in_flight: 0 },
    { upstream: 'b', model: 'm', circuit: 'closed', opens_in_ms: 0, in_flight: 0 },
  ] })
  for (const url of [gateway.url, gateway.addresses.console]) {
    const told = await (await fetch(`${url}/api/status`)).text()
    t.match(told, '"success":true')
    t.notMatch(told, 'upstreams', 'without a login no upstreams are shown')
  }
  isWell = true
  await gateway.waitForLog(line => line.msg === 'the upstream is healthy again')
  t.equal(await served(), 'a')
  t.ok(asked.length > 0 && asked.every(credential => credential === 'Bearer operator'))
})

t.test('a reload keeps the results of checks, and does not report them again', async t => {
  let isWell = false
  let asked = 0
  const upstream = await startUpstream(t, (_req, res) => {
    asked++
    res.writeHead(isWell ? 200 : 500).end()
  })
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${upstream.url}", health: { path: /, every: 5ms } } }
routes: [{ to: a }]
`)
  await gateway.waitForLog(line => line.msg === 'the upstream is unhealthy')
  await gateway.change()
  for (const more = asked + 3; asked < more;) await fetch(`${gateway.url}/api/status`)
  t.equal(gateway.logged.filter(line => line['msg'] === 'the upstream is unhealthy').length, 1)
  isWell = true
  await gateway.change()
  await gateway.waitForLog(line => line.msg === 'the upstream is healthy again')
})

t.test('the log says how a check failed and what to do', async t => {
  const closed = await startUpstream(t, () => {})
  closed.server.close()
  const unknown = await startHttp2Upstream(t, certificateFiles(t), stream => stream.close())
  const gateway = await startTestGateway(t, `
upstreams:
  closed: { url: "${closed.url}", health: { path: /, every: 10ms } }
  unknown: { url: "${unknown.url}", health: { path: /, every: 10ms } }
routes: [{ to: [closed, unknown] }]
`)
  const notWell = (upstream: string) =>
    gateway.waitForLog(line => line['msg'] === 'the upstream is unhealthy' && line['upstream'] === upstream)
  t.match(await notWell('closed'), { why: /^upstream_unreachable: the/, cause: /^ECONNREFUSED/ })
  t.match(await notWell('unknown'), {
    why: /its ca: can name the root$/, cause: /^DEPTH_ZERO_SELF_SIGNED_CERT: self-signed certificate$/,
  })
})

t.test('a silent upstream, a reset and a redirect fail the check, and the status shows the failure at once', async t => {
  const silent = await startRawUpstream(t, () => {})
  const resetting = await startRawUpstream(t, socket => socket.once('data', () => socket.resetAndDestroy()))
  const elsewhere = await startUpstream(t, (_req, res) => res.writeHead(302, { location: '/' }).end())
  const gateway = await startTestGateway(t, `
server: { listen: 127.0.0.1:0, reveal_upstream: true }
${CONSOLE}
upstreams:
  elsewhere: { url: "${elsewhere.url}", health: { path: /, every: 10ms } }
  silent: { url: "${silent.url}", health: { path: /, every: 10ms } }
  resetting: { url: "${resetting.url}", health: { path: /, every: 10ms } }
routes: [{ to: [silent, resetting, elsewhere] }]
`)
  const notWell = (upstream: string) =>
    gateway.waitForLog(line => line.msg === 'the upstream is unhealthy' && line.upstream === upstream)
  t.match(await notWell('elsewhere'), { why: 'status 302' })
  t.match(await notWell('resetting'), { why: 'upstream_reset' })
  t.match(await notWell('silent'), { why: 'total_timeout: no response within 1 s' })
  const { upstreams } = await (await operatorOf(gateway.addresses.console))()
  t.match(new Set(upstreams), new Set([
    { upstream: 'elsewhere', model: '', circuit: 'open', opens_in_ms: null, in_flight: 0 },
    { upstream: 'resetting', model: '', circuit: 'open', opens_in_ms: null, in_flight: 0 },
    { upstream: 'silent', model: '', circuit: 'open', opens_in_ms: null, in_flight: 0 },
  ]))
})

/** Health checks of one upstream with a FakeClock; the test decides the result of each check. */
function checksOf(send: (handler: ResponseHandler) => void, every = 1_000) {
  const clock = new FakeClock()
  const health = new Health({ clock, random: Math.random })
  const transport = { send: (_request: unknown, handler: ResponseHandler) => send(handler) }
  const config = { name: 'a', headers: {}, auth: null, health: { path: '/', every } }
  const address = addressOf('http://a', transport as never)
  const upstream = { ...address, config, credential: null, secrets: new UpstreamSecrets([]) } as unknown as LiveUpstream
  const checks = new HealthChecks([upstream], {
    clock, log: pino({ level: 'silent' }), proxy: createProxy(), health, newId: () => 'id',
    readTurns: new ReadTurns(),
  })
  return { clock, health, checks }
}

t.test('the timeout of a check is its interval, between 1 s and 10 s', async t => {
  for (const [every, ms] of [[20, 1_000], [4_000, 4_000], [60_000, 10_000]] as const) {
    const begun = Promise.withResolvers<void>()
    const ended = Promise.withResolvers<void>()
    const { clock, checks } = checksOf(handler => {
      handler.onRequestStart?.({ abort: ended.resolve } as never, null)
      begun.resolve()
    }, every)
    checks.start()
    await begun.promise
    clock.advance(ms - 1)
    t.equal(await Promise.race([ended.promise.then(() => 'ended'), 'under way']), 'under way')
    clock.advance(1)
    await ended.promise
    checks.stop()
  }
})

t.test('stop ends the running check without a result, and no other check starts', async t => {
  let asked = 0
  let ended = 0
  const { clock, health, checks } = checksOf(handler => {
    asked++
    handler.onRequestStart?.({ abort: () => ended++ } as never, null)
  })
  checks.start()
  while (asked === 0) await setImmediate()
  checks.stop()
  t.equal(ended, 1, 'at once')
  for (let n = 0; n < 5; n++) {
    await setImmediate()
    clock.advance(10_000)
  }
  t.strictSame([asked, health.failsChecks('a')], [1, false])
  t.equal(clock.pending, 0)
})

t.test('a check that fails for lack of resources in the gateway does not count', async t => {
  let code = 'EMFILE'
  let asked = 0
  const { clock, health, checks } = checksOf(handler => {
    asked++
    handler.onResponseError?.(null as never, Object.assign(new Error(code), { code }))
  })
  const pass = async (times: number) => {
    for (const until = asked + times; asked < until; await setImmediate()) clock.advance(1_000)
  }
  checks.start()
  await pass(10)
  t.equal(health.failsChecks('a'), false)
  code = 'ECONNREFUSED'
  await pass(10)
  t.equal(health.failsChecks('a'), true)
  code = 'ENFILE'
  await pass(10)
  t.equal(health.failsChecks('a'), true, 'EMFILE and ENFILE do not pass a check')
  checks.stop()
})

t.test('a closed gateway sends no more checks', async t => {
  let asked = 0
  const upstream = await startUpstream(t, (_req, res) => {
    asked++
    res.end()
  })
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${upstream.url}", health: { path: /, every: 5ms } } }
routes: [{ to: a }]
`)
  while (asked < 3) await fetch(`${gateway.url}/api/status`)
  await gateway.close()
  const before = asked
  await new Promise(resolve => setTimeout(resolve, 50))
  t.equal(asked, before)
})
