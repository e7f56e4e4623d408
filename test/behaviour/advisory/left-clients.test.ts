import { once } from 'node:events'
import t from 'tap'
import { disconnectDuringAdmission } from '../../support/disconnect-during-admission.ts'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import { startUpstream } from '../../support/upstream.ts'
import { post, proxyTo } from '../../support/wire.ts'

const EVENT = 'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n'

for (const [when, begin] of [['before the response head', ''], ['in mid-stream', EVENT]] as const) {
  t.test(`hazard: a client that disconnects ${when} does not count as a failure of the upstream`, async t => {
    let isSlow = true
    const slow = await startUpstream(t, (req, res) => {
      req.resume()
      if (!isSlow) {
        res.writeHead(200, { 'content-type': 'application/json' }).end('{}')
      } else if (begin !== '') {
        res.writeHead(200, { 'content-type': 'text/event-stream' }).write(begin)
      }
    })
    const other = await startUpstream(t, (_req, res) => res.end('{}'))
    const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${slow.url}" }, b: { url: "${other.url}" } }
routes: [{ to: [a, b] }]
`)
    const ask = (stream: boolean, signal: AbortSignal | null = null) =>
      fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST', signal, body: JSON.stringify({ model: 'm', stream, messages: [] }),
        headers: { 'x-api-key': KEY, 'content-type': 'application/json' },
      })
    for (let n = 0; n < 6; n++) {
      const leaving = new AbortController()
      const arrived = once(slow.server, 'request')
      const asked = ask(true, leaving.signal)
      await arrived
      if (begin === '') {
        leaving.abort()
        await t.rejects(asked)
      } else {
        const reader = (await asked).body?.getReader()
        await reader?.read()
        leaving.abort()
      }
      while (gateway.logged.filter(line => line.error === 'client_gone').length <= n) {
        await fetch(`${gateway.url}/api/status`)
      }
    }
    isSlow = false
    t.equal((await ask(false)).headers.get('x-gateway-upstream'), 'a')
  })
}

t.test('hazard: a request does not go upstream if its client disconnects during admission', async t => {
  let requests = 0
  const upstream = await startUpstream(t, () => requests++)
  const request = post('/v1/chat/completions', { model: 'm', messages: [] })
  const line = await disconnectDuringAdmission(t, proxyTo(upstream.url), request)
  t.match(line, { end: 'client_gone', status: 499, attempts: undefined })
  t.equal(requests, 0)
})

t.test('a stream that ends normally before its first event counts as a failure of the upstream', async t => {
  const empty = await startUpstream(t, (_req, res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' }).end(': ping\n\n')
  })
  const other = await startUpstream(t, (_req, res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' }).end(`${EVENT}data: [DONE]\n\n`)
  })
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${empty.url}" }, b: { url: "${other.url}" } }
routes: [{ to: [a, b] }]
`)
  const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST', body: JSON.stringify({ model: 'm', stream: true, messages: [] }),
    headers: { 'x-api-key': KEY, 'content-type': 'application/json' },
  })
  t.equal(answer.headers.get('x-gateway-upstream'), 'b')
  t.equal(await answer.text(), `${EVENT}data: [DONE]\n\n`)
})
