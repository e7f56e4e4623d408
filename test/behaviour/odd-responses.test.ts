import t from 'tap'
import { KEY, startTestGateway } from '../support/gateway.ts'
import { openSession, postH2 } from '../support/http2.ts'
import { connect, post, proxyTo, startWireUpstream } from '../support/wire.ts'

const TWICE = [
  'Content-Type: application/json', 'Content-Type: application/json', 'X-Content-Type-Options: nosniff',
  'X-Content-Type-Options: nosniff', 'Retry-After: 1', 'Retry-After: 2',
  'Date: Sat, 21 Nov 2026 07:00:00 GMT',
  'Date: Sat, 21 Nov 2026 07:00:01 GMT', 'Set-Cookie: a=1', 'Set-Cookie: b=2',
]

t.test('HTTP/2: a response with two values of a header that allows one value is forwarded', async t => {
  const { url } = await startWireUpstream(t, async wire => {
    await wire.request()
    wire.send(`HTTP/1.1 200 OK\r\nContent-Length: 2\r\n${TWICE.join('\r\n')}\r\n\r\n{}`)
  })
  const gateway = await startTestGateway(t, proxyTo(url))
  const session = await openSession(t, gateway.url)
  const request = postH2(session, '/v1/chat/completions', { model: 'm', messages: [] })
  t.match(await Promise.race([request.head, request.closed]), {
    ':status': 200, 'content-type': 'application/json', 'retry-after': '1', 'set-cookie': ['a=1', 'b=2'],
  })
  t.equal(await request.closed, 0)
  t.equal(request.text, '{}')
})

t.test('the bytes of a header are unchanged if the head arrives before the body', async t => {
  const odd = '\xe6\x97\xa5 \xff\x80'
  let sendBody: (() => void) | null = null
  const { url } = await startWireUpstream(t, async wire => {
    await wire.request()
    wire.send(`HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Odd: ${odd}\r\n\r\n`)
    sendBody = () => wire.send('{}')
  })
  const gateway = await startTestGateway(t, proxyTo(url))
  const client = await connect(t, gateway.url)
  client.send(post('/v1/chat/completions', { model: 'm', messages: [] }))
  t.match(await client.until(/\r\n\r\n/), `\r\nX-Odd: ${odd}\r\n`)
  sendBody!()
  await client.until(/\{\}$/)
})

for (const name of [Buffer.from('日本'), Buffer.from('é'), Buffer.from([0xff])]) {
  t.test(`a file name is forwarded byte for byte if Content-Disposition follows Content-Length: ${name.toString('hex')}`, async t => {
    const value = `attachment; filename="${name.toString('latin1')}.pdf"`
    const { url } = await startWireUpstream(t, async wire => {
      await wire.request()
      wire.send(`HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Disposition: ${value}\r\n\r\n{}`)
    })
    const gateway = await startTestGateway(t, proxyTo(url))
    const client = await connect(t, gateway.url)
    client.send(`GET /v1/files/f/content HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer ${KEY}\r\n\r\n`)
    const answer = await client.until(/\r\n\r\n\{\}$/)
    t.ok(answer.includes(`\r\nContent-Disposition: ${value}\r\n`))
    t.match(answer, /\r\nContent-Length: 2\r\n/)
  })
}

for (const [coding, due] of [
  ['gzip, chunked', '502'], ['gzip', '502'], ['Chunked', '200'], ['identity', '200'],
] as const) {
  t.test(`a response with Transfer-Encoding: ${coding} gives ${due}`, async t => {
    const { url } = await startWireUpstream(t, async wire => {
      await wire.request()
      const body = /chunked/i.test(coding) ? '2\r\n{}\r\n0\r\n\r\n' : '{}'
      wire.send(`HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: ${coding}\r\n\r\n${body}`)
      wire.socket.end()
    })
    const gateway = await startTestGateway(t, proxyTo(url))
    const client = await connect(t, gateway.url)
    client.send(post('/v1/chat/completions', { model: 'm', messages: [] }))
    t.match(await client.until(/\r\n\r\n/), `HTTP/1.1 ${due} `)
  })
}
