import t from 'tap'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import { startUpstream } from '../../support/upstream.ts'

const USAGE = '"usage":{"prompt_tokens":7,"completion_tokens":5}'
const ANSWER = `{"choices":[{"message":{"content":"Hello"}}],${USAGE}}`
const STREAM = 'data: {"choices":[{"delta":{"content":"Hello"}}]}\n\n'
  + `data: {"choices":[],${USAGE}}\n\ndata: [DONE]\n\n`

t.test('a response is metered, whatever the spelling of its content-type and content-encoding', async t => {
  const answers = [
    { type: 'Application/JSON', body: ANSWER },
    { type: 'APPLICATION/VND.X+JSON; Charset=UTF-8', body: ANSWER },
    { type: 'Text/Event-Stream;Charset=UTF-8', body: STREAM },
    { type: null, body: ANSWER },
    { type: 'text/plain', body: ANSWER },
    { type: null, body: STREAM },
  ]
  for (const { type, body } of answers) {
    for (const coding of ['identity', 'Identity']) {
      await t.test(`${type}, ${coding}`, async t => {
        const upstream = await startUpstream(t, (req, res) => {
          req.resume()
          if (type) res.setHeader('content-type', type)
          res.writeHead(200, { 'content-encoding': coding }).end(body)
        })
        const gateway = await startTestGateway(t, `
server: { listen: 127.0.0.1:0, reveal_upstream: true }
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
`)
        const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
          method: 'POST',
          headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
          body: JSON.stringify({ model: 'm', messages: [], stream: body === STREAM }),
        })
        t.equal(answer.headers.get('content-type'), type, 'as the upstream spelled it')
        await answer.text()
        await gateway.waitForLog(line => line['msg'] === 'exchange')
        t.match(gateway.logged.find(line => line['msg'] === 'exchange'), {
          end: 'complete', input_tokens: 7, output_tokens: 5,
        })
      })
    }
  }
})

t.test('a JSON response without a content-type to a request for a stream is forwarded and metered', async t => {
  const upstream = await startUpstream(t, (req, res) => {
    req.resume()
    res.writeHead(200, { 'content-length': ANSWER.length }).end(ANSWER)
  })
  for (const to of ['up', '[up, other]']) {
    await t.test(`with to: ${to}`, async t => {
      const gateway = await startTestGateway(t, `
server: { listen: 127.0.0.1:0, reveal_upstream: true }
upstreams: { up: { url: "${upstream.url}" }, other: { url: "${upstream.url}" } }
routes: [{ to: ${to} }]
`)
      const answer = await ask(gateway.url)
      t.equal(await answer.text(), ANSWER, 'the client gets the whole response')
      await gateway.waitForLog(line => line['msg'] === 'exchange')
      t.match(gateway.logged.find(line => line['msg'] === 'exchange'), {
        upstream: 'up', end: 'complete', input_tokens: 7, output_tokens: 5,
      })
    })
  }
})

t.test('if a stream without a content-type breaks in its first event, the client gets a broken transfer', async t => {
  const upstream = await startUpstream(t, (req, res) => {
    req.resume()
    res.writeHead(200).end('data: {"choices":[')
  })
  const gateway = await startTestGateway(t, `
server: { listen: 127.0.0.1:0, reveal_upstream: true }
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
`)
  const answer = await ask(gateway.url)
  t.equal(answer.headers.get('x-gateway-upstream'), 'up', 'the client sees the upstream')
  await t.rejects(answer.text(), 'the body is broken off')
})

t.test('a 204 response to a request for a stream is forwarded, and recorded as complete', async t => {
  const upstream = await startUpstream(t, (req, res) => {
    req.resume()
    res.writeHead(204).end()
  })
  const gateway = await startTestGateway(t, `
server: { listen: 127.0.0.1:0, reveal_upstream: true }
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
`)
  t.equal((await ask(gateway.url)).status, 204)
  await gateway.waitForLog(line => line['msg'] === 'exchange')
  t.match(gateway.logged.find(line => line['msg'] === 'exchange'), { status: 204, end: 'complete' })
})

function ask(url: string): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', messages: [], stream: true }),
  })
}
