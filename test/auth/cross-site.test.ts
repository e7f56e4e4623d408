import { once } from 'node:events'
import t from 'tap'
import { KEY, startTestGateway } from '../support/gateway.ts'
import { openSession } from '../support/http2.ts'
import { rawRequest, startUpstream } from '../support/upstream.ts'

/*
 * A gateway with `auth: open` accepts requests without a key. A page of any site can make a browser send such requests:
 * a WebSocket, a form, or JSON without a content type.
 */

let seen = 0
const upstream = await startUpstream(t, (_req, res) => {
  seen++
  res.setHeader('content-type', 'application/json').end('{}')
})
const gateway = await startTestGateway(t, `
server: { listen: 127.0.0.1:0, hosts: [llm.example.com] }
auth: open
upstreams: { up: { url: "${upstream.url}", websocket: true } }
routes: [{ to: up }]
`)
const { host } = new URL(gateway.url)
const BODY = '{"model":"m"}'

function asked(headers: readonly string[], to = host): Promise<string> {
  return rawRequest(gateway.url, [
    'POST /v1/chat/completions HTTP/1.1', `Host: ${to}`, 'Connection: close',
    `Content-Length: ${BODY.length}`, ...headers, '', BODY,
  ].join('\r\n'))
}

for (const headers of [
  ['Origin: https://evil.example'],
  ['Origin: https://evil.example', 'Sec-Fetch-Site: cross-site'],
  ['Origin: http://192.168.0.7', 'Sec-Fetch-Site: same-site'],
  ['Origin: http://localhost.evil.example'],
  ['Origin: null'],
  ['Sec-Fetch-Site: cross-site'],
]) {
  t.test(`a request from a page of another site is refused: ${headers}`, async t => {
    seen = 0
    const answer = await asked(headers)
    t.match(answer, /^HTTP\/1\.1 401 /)
    t.match(answer, /does not apply to pages of other sites/)
    t.equal(seen, 0)
  })
}

for (const headers of [
  [],
  [`Origin: http://${host}`],
  ['Origin: https://chat.example.com', 'Sec-Fetch-Site: same-origin'],
  ['Origin: http://localhost:3000'],
  ['Origin: http://tauri.localhost'],
  ['Origin: http://[::1]:3000'],
  ['Origin: app://obsidian.md'],
  ['Origin: file://'],
  ['Sec-Fetch-Site: none'],
  ['Origin: http://localhost:3000', 'Sec-Fetch-Site: cross-site'],
]) {
  t.test(`a request that is not from a page of another site is served: ${headers}`, async t => {
    t.match(await asked(headers), /^HTTP\/1\.1 200 /)
  })
}

t.test('an Origin that equals Host, with or without the default port, is accepted', async t => {
  t.match(await asked(['Origin: http://llm.example.com'], 'LLM.example.com:80'), /^HTTP\/1\.1 200 /)
  t.match(await asked(['Origin: https://llm.example.com'], 'llm.example.com:443'), /^HTTP\/1\.1 200 /)
  t.match(await asked(['Origin: http://llm.example.com'], 'llm.example.com:8080'), /^HTTP\/1\.1 401 /)
})

t.test('a request without a key is refused if Host is not a name of the gateway', async t => {
  seen = 0
  for (const name of ['evil.example', 'evil.example:80', 'localhost.evil.example', '127.0.0.1.evil.example', '192.0.2.1']) {
    for (const headers of [[`Origin: http://${name}`, 'Sec-Fetch-Site: same-origin'], []]) {
      const answer = await asked(headers, name)
      t.match(answer, /^HTTP\/1\.1 401 /, name)
      t.match(answer, /server\.hosts/)
    }
  }
  t.equal(seen, 0)
  for (const name of ['localhost', 'LOCALHOST:8080', 'gateway.localhost', 'localhost.', '127.8.9.1:1', '[::1]:8080', 'llm.example.com.']) {
    t.match(await asked([], name), /^HTTP\/1\.1 200 /, name)
  }
})

t.test('a request with a key is served for any Host', async t => {
  const guarded = await startTestGateway(t, `
auth: open
keys: [{ name: test, key: ${KEY} }]
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
`)
  const ask = (headers: readonly string[]) => rawRequest(guarded.url, [
    'POST /v1/chat/completions HTTP/1.1', 'Host: llm.example.com', 'Connection: close',
    `Content-Length: ${BODY.length}`, ...headers, '', BODY,
  ].join('\r\n'))
  t.match(await ask([]), /^HTTP\/1\.1 401 /)
  t.match(await ask([`x-api-key: ${KEY}`]), /^HTTP\/1\.1 200 /)
})

t.test('over HTTP/2 a request is refused if its authority is not a name of the gateway', async t => {
  const session = await openSession(t, gateway.url)
  const ask = async (authority: string) => {
    const stream = session.request({ ':method': 'POST', ':path': '/v1/chat/completions', ':authority': authority })
    stream.end(BODY)
    const [head] = await once(stream, 'response') as [{ ':status': number }]
    stream.close()
    return head[':status']
  }
  t.equal(await ask('evil.example'), 401)
  t.equal(await ask('localhost'), 200)
})

t.test('a WebSocket from a page of another site is refused', async t => {
  seen = 0
  const answer = await rawRequest(gateway.url, [
    'GET /v1/realtime?model=m HTTP/1.1', `Host: ${host}`, 'Origin: https://evil.example',
    'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', '', '',
  ].join('\r\n'))
  t.match(answer, /^HTTP\/1\.1 401 /)
  t.equal(seen, 0)
})
