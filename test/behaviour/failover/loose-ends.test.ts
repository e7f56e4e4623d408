import t from 'tap'
import type { Test } from 'tap'
import { startTestGateway } from '../../support/gateway.ts'
import { STREAM_HEAD, chunk, connect, post, startWireUpstream } from '../../support/wire.ts'

const GENERATE = '/v1beta/models/m:streamGenerateContent?alt=sse'
const ASKED = { contents: [{ role: 'user', parts: [{ text: '?' }] }] }

function said(text: string, finishReason?: string): string {
  const candidate = { content: { role: 'model', parts: [{ text }] }, finishReason }
  return `data: ${JSON.stringify({ candidates: [candidate] })}`
}

/** @returns the response of a client on a route with continuation, for upstreams that play these in order */
async function got(t: Test, plays: readonly { bytes: string; cut: boolean }[]): Promise<string> {
  let asked = 0
  const upstream = await startWireUpstream(t, async wire => {
    await wire.request()
    const { bytes, cut } = plays[asked++] as { bytes: string; cut: boolean }
    wire.send(STREAM_HEAD + chunk(bytes) + (cut ? '' : '0\r\n\r\n'))
    wire.socket.end()
    await wire.ended
  })
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${upstream.url}" }, b: { url: "${upstream.url}" } }
routes: [{ to: [{ upstream: a }, { upstream: b, prefill: true }], resume: continue }]
`)
  const client = await connect(t, gateway.url)
  client.send(post(GENERATE, ASKED, ['Connection: close']))
  await client.ended
  return client.text
}

t.test('a continued stream is complete even if its last event has no blank line', async t => {
  const text = await got(t, [
    { bytes: `${said('one ')}\n\n`, cut: true },
    { bytes: `${said('two ')}\n\n${said('three', 'STOP')}\n`, cut: false },
  ])
  t.match(text, /one .*two .*three.*STOP/s)
  t.match(text, /\r\n0\r\n\r\n$/, 'the response ends properly')
})

t.test('half an event after a complete response does not reach the client', async t => {
  const half = said('', 'STOP').slice(0, 30)
  const text = await got(t, [{ bytes: `${said('all', 'STOP')}\n\n${half}`, cut: true }])
  t.match(text, /all.*STOP/s)
  t.equal(text.match(/data: /g)?.length, 1)
  t.match(text, /\r\n0\r\n\r\n$/, 'the response ends properly')
})

for (const cut of [true, false]) {
  const end = cut ? 'the connection breaks there' : 'the stream ends there'
  t.test(`after an error event without its blank line the stream is continued: ${end}`, async t => {
    for (const lineEnds of ['', '\n']) {
      const error = `data: ${JSON.stringify({ error: { code: 503, message: 'overloaded' } })}${lineEnds}`
      const text = await got(t, [
        { bytes: `${said('one ')}\n\n${error}`, cut },
        { bytes: `${said('two', 'STOP')}\n\n`, cut: false },
      ])
      t.match(text, /one .*two.*STOP/s)
      t.notMatch(text, 'overloaded')
    }
  })
}
