import t from 'tap'
import type { Test } from 'tap'
import { startTestGateway } from '../support/gateway.ts'
import { H2Request, openSession } from '../support/http2.ts'
import { bodyOf, startUpstream } from '../support/upstream.ts'
import { connect, post, proxyTo } from '../support/wire.ts'

async function setUp(t: Test, timeouts: string) {
  const bodies: string[] = []
  const upstream = await startUpstream(t, async (req, res) => {
    bodies.push((await bodyOf(req)).toString())
    res.setHeader('content-type', 'application/json').end('{"ok":true}')
  })
  const gateway = await startTestGateway(t, `timeouts: { ${timeouts} }\n${proxyTo(upstream.url)}`)
  return { gateway, bodies }
}

const TEXT = JSON.stringify({ model: 'm', input: 'x'.repeat(8) })

t.test('a slow upload with pauses shorter than the idle timeout is not cut', async t => {
  const { gateway, bodies } = await setUp(t, 'idle: 3s, first_byte: 3s')
  const client = await connect(t, gateway.url)
  const request = post('/v1/embeddings', TEXT)
  const at = request.length - TEXT.length
  client.send(request.slice(0, at))
  for (const byte of request.slice(at)) {
    await new Promise(resolve => setTimeout(resolve, 120))
    client.send(byte)
  }
  t.match(await client.until(/\{"ok":true\}$/), /^HTTP\/1\.1 200 /)
  t.strictSame(bodies, [TEXT])
})

t.test('an upload that stalls gets 408 after the idle timeout, ' +
  'and nothing goes upstream', async t => {
  const { gateway, bodies } = await setUp(t, 'idle: 150ms')
  const client = await connect(t, gateway.url)
  client.send(post('/v1/embeddings', TEXT).slice(0, -4))
  t.match(await client.until(/\}\}$/), /^HTTP\/1\.1 408 [^]*connection: close[^]*body_timeout/i)
  t.strictSame(bodies, [])
})

t.test('HTTP/2: an upload that stalls gets 408', async t => {
  const { gateway, bodies } = await setUp(t, 'idle: 150ms')
  const session = await openSession(t, gateway.url)
  const request = new H2Request(
    session, 'POST', '/v1/embeddings', { 'content-type': 'application/json' }, false,
  )
  request.stream.write('{"model":')
  t.equal((await request.head)[':status'], 408)
  await request.closed
  t.match(request.text, /body_timeout/)
  t.strictSame(bodies, [])
})

t.test('timeouts.total counts from the first byte of the request and ends an endless upload', async t => {
  const { gateway, bodies } = await setUp(t, 'total: 400ms')
  const client = await connect(t, gateway.url)
  client.send(post('/v1/embeddings', TEXT).slice(0, -TEXT.length))
  const drip = setInterval(() => client.send(' '), 50)
  t.teardown(() => clearInterval(drip))
  t.match(await client.until(/\}\}$/), /total_timeout/)
  t.strictSame(bodies, [])
})
