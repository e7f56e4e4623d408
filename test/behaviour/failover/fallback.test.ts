import t from 'tap'
import { start } from '../../simulator/start.ts'
import { freePort } from '../../support/free-port.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { startWireUpstream } from '../../support/wire.ts'
import { DIALECTS, WORDS, ask, everyWay, twoTargets } from './asking.ts'

/** Behaviours of the first candidate, and whether they apply to any request, only to streams, or only to whole responses. */
const FAULTS: readonly (readonly [string, 'any' | 'stream' | 'whole'])[] = [
  ['status=401', 'any'], ['status=402', 'any'], ['status=403', 'any'],
  ['status=408', 'any'], ['status=429', 'any'],
  ['status=429,retry_after=60', 'any'], ['status=500', 'any'], ['status=502', 'any'],
  ['status=503,retry_after_date=60', 'any'], ['status=504', 'any'], ['status=529', 'any'],
  ['status=498', 'any'],
  ['reset', 'any'], ['close', 'any'], ['reset_after=0', 'any'],
  ['close_after=0', 'any'], ['cut_after=0', 'any'],
  ['error_200', 'any'], ['first_event_error', 'stream'], ['error_event_after=0', 'stream'],
  ['malformed_after=0', 'stream'], ['error_200,gzip', 'whole'], ['close_after=4', 'whole'],
  ['reset_after=4', 'whole'],
  ['headers_delay=60s', 'any'], ['first_delay=60s', 'any'], ['stall_after=0', 'any'],
  ['comments,first_event_error', 'stream'], ['status=503,gzip', 'any'],
]

for (const [fault, when] of FAULTS) {
  const streams = when === 'any' ? [false, true] : [when === 'stream']
  everyWay(t, `if the first target fails with ${fault}, the second target responds`, async (t, dialect, stream) => {
    const { url } = await start(t)
    const timeouts = /delay|stall/.test(fault) ? '    timeouts: { first_byte: 1s }' : ''
    const gateway = await startTestGateway(t, twoTargets(url, url, `sim,${fault}`, 'sim', timeouts))
    const asked = await ask(gateway, dialect, { stream })
    t.equal(asked.status, 200)
    t.equal(asked.text, WORDS)
    t.ok(asked.whole)
    if (stream) t.ok(dialect.isWhole(asked.body))
    t.equal(asked.headers.get('x-gateway-upstream'), 'b')
    t.equal(asked.headers.get('x-gateway-attempts'), '2')
    const line = await gateway.waitForLog(each => each.msg === 'exchange')
    t.match(line, { upstream: 'b', status: 200, end: 'complete', attempts: 2 })
  }, streams)
}

everyWay(t, 'if the first target refuses the connection, the second target responds', async (t, dialect, stream) => {
  const { url } = await start(t)
  const gateway = await startTestGateway(t, twoTargets(`http://127.0.0.1:${await freePort()}`, url, 'sim', 'sim'))
  const asked = await ask(gateway, dialect, { stream })
  t.match(asked, { status: 200, text: WORDS, whole: true })
  t.equal(asked.headers.get('x-gateway-upstream'), 'b')
})

everyWay(t, 'if the host name of the first target does not resolve, the second target responds', async (t, dialect, stream) => {
  const { url } = await start(t)
  const gateway = await startTestGateway(t, twoTargets('http://no-such-host.invalid', url, 'sim', 'sim'))
  t.match(await ask(gateway, dialect, { stream }), { status: 200, text: WORDS, whole: true })
})

everyWay(t, 'if the first target does not use TLS, the second target responds', async (t, dialect, stream) => {
  const { url } = await start(t)
  const gateway = await startTestGateway(t, twoTargets(url.replace('http:', 'https:'), url, 'sim', 'sim'))
  t.match(await ask(gateway, dialect, { stream }), { status: 200, text: WORDS, whole: true })
})

everyWay(t, 'if the first target responds, the second target gets no request', async (t, dialect, stream) => {
  const { url, simulator } = await start(t)
  const gateway = await startTestGateway(t, twoTargets(url, url, 'sim', 'sim,status=500'))
  const asked = await ask(gateway, dialect, { stream })
  t.match(asked, { status: 200, text: WORDS, whole: true })
  t.equal(asked.headers.get('x-gateway-upstream'), 'a')
  t.equal(asked.headers.get('x-gateway-attempts'), '1')
  t.equal(simulator.stats.requests, 1)
})

t.test('the next target gets the request even if the body of an error response does not arrive', async t => {
  const first = await startWireUpstream(t, async wire => {
    await wire.request()
    wire.send('HTTP/1.1 503 Busy\r\nContent-Length: 9\r\n\r\n{')
    await wire.ended
  })
  const { url } = await start(t)
  const gateway = await startTestGateway(t, twoTargets(first.url, url, 'x', 'sim'))
  t.match(await ask(gateway, DIALECTS[0]!), { status: 200, text: WORDS })
})

t.test('an upstream may have a name in any script', async t => {
  const { url } = await start(t)
  const gateway = await startTestGateway(t, `
upstreams: { "größe-中": { url: "${url}" } }
routes: [{ to: "größe-中" }]
`)
  const asked = await ask(gateway, DIALECTS[0]!, { model: 'sim' })
  t.equal(asked.status, 200)
  t.equal(decodeURIComponent(asked.headers.get('x-gateway-upstream') ?? ''), 'größe-中')
})
