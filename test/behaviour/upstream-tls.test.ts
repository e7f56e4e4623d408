import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import * as https from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import t, { type Test } from 'tap'
import { loadConfig } from '../../src/config/load/load.ts'
import type { ConfigError } from '../../src/config/problem.ts'
import { certificateFiles, selfSigned } from '../support/certificate.ts'
import { KEY, startTestGateway } from '../support/gateway.ts'
import { bodyOf } from '../support/upstream.ts'

/** An upstream that requires a certificate signed by `ca`. */
async function startStrictUpstream(t: Test, server: { cert: string, key: string }, ca: string[]) {
  const shown: string[] = []
  const upstream = https.createServer({ ...server, ca, requestCert: true, rejectUnauthorized: true }, async (req, res) => {
    await bodyOf(req)
    const { servername } = req.socket as TLSSocket & { servername?: string | false }
    shown.push(`${(req.socket as TLSSocket).getPeerX509Certificate()?.fingerprint256} ${servername}`)
    res.setHeader('content-type', 'application/json').end('{"choices":[]}')
  })
  upstream.listen(0, '127.0.0.1')
  await once(upstream, 'listening')
  t.teardown(() => {
    upstream.closeAllConnections()
    upstream.close()
  })
  return { port: (upstream.address() as AddressInfo).port, shown, upstream }
}

function chat(url: string): Promise<Response> {
  const headers = { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json' }
  return fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body: '{"model":"m","messages":[]}' })
}

t.test('the gateway shows its certificate, and a replaced one after a reload', async t => {
  const server = certificateFiles(t)
  const [first, second] = [selfSigned(), selfSigned()]
  const folder = t.testdir({ 'cert.pem': first.cert, 'key.pem': first.key })
  execFileSync('openssl', ['pkcs8', '-topk8', '-in', 'key.pem', '-out', 'sealed.pem', '-passout', 'pass:open-sesame'], { cwd: folder, stdio: 'ignore' })
  const { port, shown, upstream } = await startStrictUpstream(t, server, [first.cert])
  const yaml = (key: string): string => `
upstreams:
  up:
    url: "https://127.0.0.1:${port}"
    tls: { cert: "${folder}/cert.pem", key: "${folder}/${key}", ca: "${server.certFile}", server_name: localhost }
routes: [{ to: up }]
`
  const sealed = yaml('sealed.pem').replace('server_name', 'passphrase: "open-sesame", server_name')
  const gateway = await startTestGateway(t, sealed)
  t.equal((await chat(gateway.url)).status, 200)
  upstream.setSecureContext({ ...server, ca: [second.cert] })
  writeFileSync(join(folder, 'cert.pem'), second.cert)
  writeFileSync(join(folder, 'key.pem'), second.key)
  t.match(await gateway.change(yaml('key.pem')), { applied: true })
  t.equal((await chat(gateway.url)).status, 200)
  t.equal(new Set(shown).size, 2)
  t.match(shown[0], / localhost$/)
  t.notMatch(JSON.stringify(gateway.logged), 'open-sesame')
})

t.test('a gateway without a certificate gets no response from an upstream that requires one', async t => {
  const server = certificateFiles(t)
  const { port } = await startStrictUpstream(t, server, [selfSigned().cert])
  const gateway = await startTestGateway(t, `
upstreams: { up: { url: "https://localhost:${port}", ca: "${server.certFile}" } }
routes: [{ to: up, retries: 0 }]
`)
  t.equal((await chat(gateway.url)).status, 502)
})

t.test('the name in the upstream certificate must be the one of server_name', async t => {
  const server = certificateFiles(t)
  const { port } = await startStrictUpstream(t, server, [server.cert])
  const gateway = await startTestGateway(t, `
upstreams: { up: { url: "https://localhost:${port}", ca: "${server.certFile}", tls: { server_name: other.example.com } } }
routes: [{ to: up, retries: 0 }]
`)
  t.equal((await chat(gateway.url)).status, 502)
})

t.test('errors name the place', async t => {
  const { certFile, keyFile } = certificateFiles(t)
  const folder = t.testdir({ 'other.pem': selfSigned().key })
  execFileSync('openssl', ['pkcs8', '-topk8', '-in', keyFile, '-out', 'sealed.pem', '-passout', 'pass:open-sesame'], { cwd: folder, stdio: 'ignore' })
  const problemOf = (upstream: string): string => {
    const file = join(folder, 'gateway.yaml')
    writeFileSync(file, `auth: open\nupstreams:\n  a: { ${upstream} }\nroutes: [{ to: a }]\n`)
    try {
      loadConfig(file, {})
      return ''
    } catch (error) {
      return (error as ConfigError).message
    }
  }
  const url = 'url: "https://a.example.com"'
  t.equal(problemOf(`${url}, tls: { cert: "${certFile}", key: "${keyFile}" }`), '')
  t.match(problemOf(`${url}, tls: { cert: "${certFile}" }`), /gateway\.yaml:3:\d+: error: cert needs key beside it/)
  t.match(problemOf(`${url}, tls: { cert: "${certFile}", key: other.pem }`), 'the private key does not belong to the certificate')
  t.match(problemOf(`${url}, tls: { cert: "${certFile}", key: sealed.pem }`), 'the private key has a passphrase')
  const wrong = problemOf(`${url}, tls: { cert: "${certFile}", key: sealed.pem, passphrase: wrong-one }`)
  t.match(wrong, 'the passphrase does not open the private key')
  t.notMatch(wrong, 'wrong-one')
  t.match(problemOf(`${url}, ca: "${certFile}", tls: { ca: "${certFile}" }`), 'the upstream has a ca already')
  t.match(problemOf(`${url}, tls: { server_nam: b }`), /"server_nam".*server_name/)
  t.match(problemOf(`url: "http://a.example.com", tls: { server_name: b }`), 'the url is not https')
})
