import { once } from 'node:events'
import * as http2 from 'node:http2'
import * as https from 'node:https'
import type { AddressInfo, Server } from 'node:net'
import t, { type Test } from 'tap'
import type { ProxyServer } from '../../../src/base/outgoing-proxy.ts'
import { createTransport } from '../../../src/proxy/upstream/transport.ts'
import { certificateFiles } from '../../support/certificate.ts'
import { startConnectProxy, type ConnectProxy } from '../../support/connect-proxy.ts'
import { responseText } from '../../support/response-text.ts'
import { startRawUpstream, startUpstream } from '../../support/upstream.ts'

function serverAt({ url, port }: Pick<ConnectProxy, 'url' | 'port'>, changes: Partial<ProxyServer> = {}): ProxyServer {
  return { protocol: new URL(url).protocol as ProxyServer['protocol'], hostname: '127.0.0.1', port, authorization: null, ca: null, ...changes }
}

/** Sends a request through the proxy. @returns the response's body, or the error's message */
async function ask(t: Test, proxy: ProxyServer, origin: string, ca: string | null = null, connectTimeout = 10_000): Promise<string> {
  const transport = createTransport({ origin, socketPath: null, connectTimeout, ca, proxy })
  t.teardown(() => transport.destroy())
  const request = { method: 'POST', path: '/', headers: [], body: Buffer.from('{}') }
  return responseText(handler => transport.send(request, handler)).catch((error: Error) => error.message)
}

async function listen(t: Test, server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return (server.address() as AddressInfo).port
}

t.test('plain http goes through a tunnel, with the credential', async t => {
  const { port } = await startUpstream(t, (req, res) => res.end(`plain ${String(req.headers['proxy-authorization'])}`))
  const proxy = await startConnectProxy(t)
  t.equal(await ask(t, serverAt(proxy, { authorization: 'Basic bWU6cHc=' }), `http://upstream.test:${port}`), 'plain undefined')
  t.strictSame(proxy.asked, [`upstream.test:${port} Basic bWU6cHc=`])
})

t.test('TLS runs inside the tunnel, with HTTP/2 and through an https proxy', async t => {
  const certificate = certificateFiles(t)
  const upstream = http2.createSecureServer({ ...certificate, allowHTTP1: true }, (req, res) => {
    res.end(`HTTP/${req.httpVersion}`)
  })
  const port = await listen(t, upstream)
  const proxy = await startConnectProxy(t, undefined, certificate)
  t.equal(await ask(t, serverAt(proxy, { ca: certificate.certFile }), `https://localhost:${port}`, certificate.certFile), 'HTTP/2.0')
  t.match(await ask(t, serverAt(proxy), `https://localhost:${port}`, certificate.certFile), /DEPTH_ZERO_SELF_SIGNED_CERT/)
  t.equal(proxy.asked.length, 1)
})

t.test('the name in the certificate of the upstream is checked', async t => {
  const certificate = certificateFiles(t)
  const port = await listen(t, https.createServer(certificate, (_req, res) => res.end()))
  const proxy = await startConnectProxy(t)
  t.match(await ask(t, serverAt(proxy), `https://other.test:${port}`, certificate.certFile), /altnames/)
})

t.test('what a proxy does wrong is named', async t => {
  const answer = (text: string) => startConnectProxy(t, (_req, socket) => socket.end(text))
  const refused = await answer('HTTP/1.1 407 Proxy Authentication Required\r\nproxy-authenticate: Basic\r\n\r\n')
  const destination = 'https://upstream.test'
  t.match(await ask(t, serverAt(refused), destination), `proxy ${refused.url}: responds 407: it requires user and password in its URL`)
  t.match(await ask(t, serverAt(refused, { authorization: 'Basic bWU6cHc=' }), destination), 'responds 407: it refuses user and password')
  t.match(await ask(t, serverAt(await answer('HTTP/1.1 503 No\r\n\r\n')), destination), 'responds 503 to CONNECT')
  t.match(await ask(t, serverAt(await answer('nonsense\r\n\r\n')), destination), 'closed the connection before it answered CONNECT (HPE_')
  t.match(await ask(t, serverAt(await answer(`HTTP/1.1 200 OK\r\nx: ${'x'.repeat(20_000)}\r\n\r\n`)), destination), 'HPE_HEADER_OVERFLOW')
  const closes = await startConnectProxy(t, (_req, socket) => socket.destroy())
  t.match(await ask(t, serverAt(closes), destination), 'closed the connection before it answered CONNECT (ECONNRESET)')
  const ended = await startConnectProxy(t, (_req, socket) => socket.end())
  t.match(await ask(t, serverAt(ended), destination), 'closed the connection before it answered CONNECT (ECONNRESET)')
})

t.test('a proxy that never answers ends at the connect timeout', async t => {
  const silent = await startRawUpstream(t, () => {})
  t.match(await ask(t, serverAt(silent), 'https://upstream.test', null, 200), 'no response to CONNECT')
})

t.test('a proxy that cannot be reached is named', async t => {
  t.match(await ask(t, serverAt({ url: 'http://127.0.0.1:1', port: 1 }), 'https://upstream.test'), 'proxy http://127.0.0.1:1: ECONNREFUSED')
})
