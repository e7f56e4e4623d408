import { once } from 'node:events'
import { copyFileSync, renameSync, writeFileSync } from 'node:fs'
import * as https from 'node:https'
import * as tls from 'node:tls'
import t from 'tap'
import { certificateFiles, selfSigned } from '../../support/certificate.ts'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import { connect } from '../../support/wire.ts'

t.test('after a certificate is renewed, new handshakes use it and open connections stay open', async t => {
  const { cert, key, certFile, keyFile } = certificateFiles(t)
  const yaml = `
server: { listen: 127.0.0.1:0, tls: { cert: "${certFile}", key: "${keyFile}" } }
upstreams: { demo: { simulator: true } }
routes: [{ to: demo }]
`
  const gateway = await startTestGateway(t, yaml)
  const client = await connect(t, gateway.url, cert)
  const renewed = selfSigned()
  writeFileSync(keyFile, renewed.key)
  t.match(await gateway.change(), { applied: false }, 'the key of another certificate')
  const still = await connect(t, gateway.url, cert)
  still.socket.destroy()

  writeFileSync(certFile, renewed.cert)
  t.match(await gateway.change(), { applied: true, pending: { length: 0 } })
  const fresh = await connect(t, gateway.url, renewed.cert)
  t.equal((fresh.socket as tls.TLSSocket).getPeerX509Certificate()?.toString().trim(), renewed.cert.trim())
  for (const each of [client, fresh]) {
    each.send('GET /api/status HTTP/1.1\r\nHost: x\r\n\r\n')
    t.match(await each.until(/\}$/), /200 OK/)
  }
  const { port } = new URL(gateway.url)
  const http2 = tls.connect({ port: Number(port), ca: renewed.cert, ALPNProtocols: ['h2'] })
  t.teardown(() => http2.destroy())
  await once(http2, 'secureConnect')
  t.equal(http2.alpnProtocol, 'h2')

  writeFileSync(`${certFile}.other`, cert)
  writeFileSync(`${keyFile}.other`, key)
  const moved = yaml.replace(certFile, `${certFile}.other`).replace(keyFile, `${keyFile}.other`)
  t.match(await gateway.change(moved), { applied: true, pending: { length: 0 } }, 'files of other names')
  await connect(t, gateway.url, cert)
  t.match(await gateway.change(yaml.replace(/, tls: .*\}/, ' }')), { applied: true, pending: ['server.tls'] })
  await connect(t, gateway.url, cert)
})

t.test('replaced CA certificates of an upstream apply to new connections', async t => {
  const old = certificateFiles(t)
  const renewed = certificateFiles(t)
  const sockets = new Set<tls.TLSSocket>()
  const upstream = https.createServer({ cert: old.cert, key: old.key }, (_req, res) => {
    res.setHeader('content-type', 'application/json').end('{}')
  }).on('secureConnection', socket => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  upstream.listen(0, '127.0.0.1')
  await once(upstream, 'listening')
  t.teardown(() => {
    upstream.closeAllConnections()
    upstream.close()
  })
  const { port } = upstream.address() as { port: number }
  const ca = `${old.certFile}.roots`
  copyFileSync(old.certFile, ca)
  const gateway = await startTestGateway(t, `
upstreams: { up: { url: "https://127.0.0.1:${port}", ca: "${ca}" } }
routes: [{ to: up }]
`)
  const ask = async () => {
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
    const body = '{"model":"m","messages":[]}'
    return (await fetch(`${gateway.url}/v1/chat/completions`, { method: 'POST', headers, body })).status
  }
  t.equal(await ask(), 200)
  t.match(await gateway.change(), { applied: true })
  t.equal(await ask(), 200)
  t.equal(sockets.size, 1, 'nothing had changed')
  upstream.setSecureContext({ cert: renewed.cert, key: renewed.key })
  renameSync(renewed.certFile, ca)
  t.match(await gateway.change(), { applied: true })
  t.equal(await ask(), 200)
})
