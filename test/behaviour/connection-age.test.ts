import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import * as http2 from 'node:http2'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { selfSigned } from '../support/certificate.ts'
import { KEY, startTestGateway } from '../support/gateway.ts'
import { startTcpAddress } from '../support/tcp-address.ts'
import { bodyOf, startUpstream } from '../support/upstream.ts'

const ask = async (url: string) => (await fetch(`${url}/v1/chat/completions`, {
  method: 'POST', headers: { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json' }, body: '{"model":"m","messages":[]}',
})).text()

/** Sends requests without pauses, so that no connection is idle for long. */
async function askUntil(url: string, body: string): Promise<string[]> {
  const bodies: string[] = []
  while (bodies.at(-1) !== body) bodies.push(...await Promise.all([ask(url), ask(url), ask(url)]))
  return bodies
}

async function startHttp2(t: Test, body: string, certificate: { readonly cert: string, readonly key: string }) {
  const server = http2.createSecureServer({ ...certificate }, (req, res) => {
    req.resume().on('end', () => res.end(body))
  })
  const sessions = new Set<http2.ServerHttp2Session>()
  server.on('session', session => sessions.add(session))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const session of sessions) session.destroy()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

for (const protocol of ['HTTP/1.1', 'HTTP/2'] as const) {
  t.test(`requests reach the new address of an upstream, even if the old connection is always in use (${protocol})`, async t => {
    const certificate = selfSigned()
    const folder = mkdtempSync(join(tmpdir(), 'age-'))
    t.teardown(() => rmSync(folder, { recursive: true }))
    const ca = join(folder, 'ca.pem')
    writeFileSync(ca, certificate.cert)
    const start = async (body: string) => {
      if (protocol === 'HTTP/2') return startHttp2(t, body, certificate)
      const { url } = await startUpstream(t, async (req, res) => {
        await bodyOf(req)
        res.end(body)
      })
      return Number(new URL(url).port)
    }
    const [before, after] = [await start('before'), await start('after')]
    const address = await startTcpAddress(t, before)
    const place = protocol === 'HTTP/2' ? `url: "https://127.0.0.1:${address.port}", ca: "${ca}"` : `url: "http://127.0.0.1:${address.port}"`
    const gateway = await startTestGateway(t, `
upstreams: { up: { ${place}, connection_age: 300ms } }
routes: [{ to: up, retries: 0 }]
`)
    t.equal(await ask(gateway.url), 'before')
    address.leadTo(after)
    const bodies = await askUntil(gateway.url, 'after')
    t.strictSame(bodies.filter(body => body !== 'before' && body !== 'after'), [], 'no request failed')
  })
}

t.test('a running stream is not cut by the age of its connection', async t => {
  const { url } = await startUpstream(t, async (req, res) => {
    await bodyOf(req)
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    for (let n = 0; n < 10; n++) {
      res.write(`data: {"choices":[{"index":0,"delta":{"content":"${n}"}}]}\n\n`)
      await new Promise(resolve => setTimeout(resolve, 20))
    }
    res.end('data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n')
  })
  const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${url}", connection_age: 50ms } }
routes: [{ to: up, retries: 0 }]
`)
  for (let n = 0; n < 2; n++) t.match(await ask(gateway.url), /"9"[^]*\[DONE\]/)
})
