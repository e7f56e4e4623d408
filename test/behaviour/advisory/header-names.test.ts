import { once } from 'node:events'
import * as http2 from 'node:http2'
import t from 'tap'
import { certificateFiles } from '../../support/certificate.ts'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import { startHttp2Upstream } from '../../support/http2.ts'
import { connect, proxyTo, startWireUpstream } from '../../support/wire.ts'

/*
 * A header can have any name, including that of a member which every JavaScript object
 * inherits. Code that groups headers by name must not find the inherited member.
 */

const NAMES = ['constructor', 'valueOf', '__proto__']
const LINES = NAMES.map(name => `${name}: 1\r\n`).join('')

t.test('response headers with names such as __proto__ reach an HTTP/2 client', async t => {
  const upstream = await startWireUpstream(t, async wire => {
    await wire.request()
    wire.send(`HTTP/1.1 200 OK\r\n${LINES}Content-Length: 2\r\n\r\n{}`)
  })
  const gateway = await startTestGateway(t, proxyTo(upstream.url))
  const session = http2.connect(gateway.url)
  t.teardown(() => session.destroy())
  const stream = session.request({ ':path': '/v1/files', 'x-api-key': KEY })
  const [head] = await once(stream, 'response') as [Record<string, unknown>]
  for (const name of NAMES) t.equal(Object.getOwnPropertyDescriptor(head, name.toLowerCase())?.value, '1')
})

t.test('request headers with names such as __proto__ reach the upstream of a WebSocket', async t => {
  let seen = ''
  const upstream = await startWireUpstream(t, async wire => {
    seen = await wire.until(/\r\n\r\n/)
    wire.send('HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n')
  })
  const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${upstream.url}", websocket: true } }
routes: [{ to: up }]
`)
  const client = await connect(t, gateway.url)
  client.send('GET /v1/realtime?model=m HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
    `Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nX-Api-Key: ${KEY}\r\n` +
    `${LINES}\r\n`)
  await client.until(/\r\n\r\n/)
  for (const name of NAMES) {
    t.strictSame(seen.match(new RegExp(`\r\n${name}: .*`, 'gi')), [`\r\n${name.toLowerCase()}: 1`])
  }
})

t.test('request headers with names such as __proto__ reach an HTTP/2 upstream', async t => {
  const certificate = certificateFiles(t)
  let seen: object = {}
  const upstream = await startHttp2Upstream(t, certificate, (stream, headers) => {
    seen = headers
    stream.respond({ ':status': 200 })
    stream.end('{}')
  })
  const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${upstream.url}", ca: "${certificate.certFile}" } }
routes: [{ to: up }]
`)
  const client = await connect(t, gateway.url)
  client.send(`GET /v1/files HTTP/1.1\r\nHost: x\r\nX-Api-Key: ${KEY}\r\n${LINES}\r\n`)
  await client.until(/\r\n\r\n/)
  for (const name of NAMES) t.equal(Object.getOwnPropertyDescriptor(seen, name.toLowerCase())?.value, '1', name)
})
