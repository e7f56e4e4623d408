import t from 'tap'
import { KEY, startTestGateway } from '../support/gateway.ts'
import { connect } from '../support/wire.ts'

const { url } = await startTestGateway(t, `
upstreams: { demo: { simulator: true } }
routes: [{ model: [demo], to: demo }]
`)

/** Requests to which the gateway itself responds, without bodies. */
const OWN_ANSWERS = {
  '/api/status': 200,
  '/v1/models': 200,
  '/v1/models/demo': 200,
  '/v1/models/other': 404,
  '/nowhere': 404,
}

t.test('the connection stays open after every response that the gateway makes without an upstream', async t => {
  const client = await connect(t, url)
  for (const [path, status] of Object.entries(OWN_ANSWERS)) {
    client.clear()
    client.send(`GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\n\r\n`)
    const answer = await client.until(/\}$/)
    t.ok(answer.startsWith(`HTTP/1.1 ${status} `), answer)
    t.match(answer, /\r\nconnection: keep-alive\r\n/i, path)
  }
})

t.test('a request that is refused before the end of its body gets Connection: close', async t => {
  const client = await connect(t, url)
  client.send('POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n{')
  t.match(await client.until(/\}$/), /^HTTP\/1\.1 401 [^]*\r\nconnection: close\r\n/i)
})
