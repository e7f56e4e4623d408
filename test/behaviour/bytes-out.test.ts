import { once } from 'node:events'
import * as http from 'node:http'
import t from 'tap'
import type { Test } from 'tap'
import { KEY, startTestGateway } from '../support/gateway.ts'
import type { TestGateway } from '../support/gateway.ts'
import { H2Request, openSession } from '../support/http2.ts'
import { startUpstream } from '../support/upstream.ts'

const HEADERS = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
const BODY = JSON.stringify({ model: 'm', messages: [] })
/** A response that the gateway holds completely, and that is larger than the buffers of the system. */
const ANSWER = `{"choices":[{"message":{"content":"${' '.repeat(30_000_000)}"}}]}`

/** A gateway that reads a large response completely before it sends the response. */
async function holding(t: Test): Promise<TestGateway> {
  const { url } = await startUpstream(t, (req, res) => {
    req.resume()
    res.writeHead(200, { 'content-type': 'application/json' }).end(ANSWER)
  })
  return startTestGateway(t, `upstreams: { up: { url: "${url}" } }\nroutes: [{ to: up, resume: hold }]\n`)
}

/** @returns the bytes in the log line of the request, after its end */
async function bytesOut(gateway: TestGateway, end: string): Promise<number> {
  const line = await gateway.waitForLog(({ msg }) => msg === 'exchange')
  if (line['end'] !== end) throw new Error(`it ended with ${String(line['end'])}`)
  return line['bytes_out'] as number
}

t.test('bytes_out counts only bytes sent before the client disconnected', async t => {
  const gateway = await holding(t)
  const req = http.request(`${gateway.url}/v1/chat/completions`, {
    method: 'POST', agent: false, headers: HEADERS,
  })
  req.on('error', () => {}).end(BODY)
  const [res] = (await once(req, 'response')) as [http.IncomingMessage]
  let came = 0
  for await (const chunk of res.on('error', () => {})) {
    came += (chunk as Buffer).length
    if (came > 1_000_000) break
  }
  req.destroy()
  const told = await bytesOut(gateway, 'client_gone')
  t.ok(told >= came && told < ANSWER.length, `bytes_out is ${told}, and the client has read ${came} bytes`)
})

t.test('bytes_out over HTTP/2 does not count bytes that wait for a client that does not read', async t => {
  const gateway = await holding(t)
  const session = await openSession(t, gateway.url)
  const headers = { 'content-type': 'application/json' }
  const request = new H2Request(session, 'POST', '/v1/chat/completions', headers, false)
  request.stream.pause()
  request.stream.end(BODY)
  await request.head
  request.stream.close(8)
  const told = await bytesOut(gateway, 'client_gone')
  t.ok(told < 400_000, `${told} bytes`)
})

t.test('bytes_out counts all bytes of a complete response', async t => {
  const gateway = await holding(t)
  const res = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST', headers: HEADERS, body: BODY,
  })
  const came = (await res.text()).length
  t.equal(await bytesOut(gateway, 'complete'), came)
})
