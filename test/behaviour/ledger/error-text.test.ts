import type { ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import type { Test } from 'tap'
import { WebSocket } from 'ws'
import { gateway as command } from '../../cli/command.ts'
import { KEY } from '../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'
import { openBooks } from '../billing/books.ts'

const SECRET = 'sk-operator-0123456789'
const ERROR = JSON.stringify({ error: { message: `The engine is overloaded, ${SECRET}.\u0000 Try later.`, type: 'overloaded' } })
const TEXT = ERROR.replace(SECRET, '*'.repeat(SECRET.length))

type Answer = (res: ServerResponse, model: string) => void

async function start(t: Test, answer: Answer, route = '{ to: up, retries: 0 }') {
  const { url, server } = await startUpstream(t, async (req, res) => {
    const { model } = JSON.parse(String(await bodyOf(req))) as { model: string }
    res.setHeader('content-type', 'application/json')
    answer(res, model)
  })
  server.on('upgrade', (_, socket) => socket.end(`HTTP/1.1 429 No\r\ncontent-length: ${ERROR.length}\r\n\r\n${ERROR}`))
  const books = await openBooks(t, `
upstreams: { up: { url: "${url}", websocket: true, auth: { bearer: ${SECRET} } } }
routes: [${route}]
`)
  const ask = async (more: object = {}) => {
    const response = await fetch(`${books.gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x' }], ...more }),
    })
    await response.text().catch(() => '')
    return response.headers.get('x-gateway-request-id') as string
  }
  const texts = async () => [...(await books.close()).values()].map(({ attempts }) => attempts.map(each => each.errorText))
  return { books, ask, texts }
}

t.test('the ledger has the text of an error, with the credential masked', async t => {
  for (const [status, route] of [[400, '{ to: up }'], [503, '{ to: up, retries: 0 }'], [500, '{ to: up, resume: hold, retries: 0 }']] as const) {
    const { ask, texts } = await start(t, res => res.writeHead(status).end(ERROR), route)
    await ask()
    t.strictSame(await texts(), [[TEXT]], String(status))
  }
})

t.test('the error text of a failed attempt is kept if another attempt follows', async t => {
  const { ask, texts } = await start(t, (res, model) => {
    if (model === 'bad') res.writeHead(429, { 'content-encoding': 'gzip' }).end(gzipSync(ERROR))
    else res.end('{"choices":[]}')
  }, '{ to: [{ upstream: up, model: bad }, { upstream: up, model: good }] }')
  await ask()
  t.strictSame(await texts(), [[TEXT, undefined]])
})

t.test('the text of an error with status 200 is kept, in a body and in a stream', async t => {
  const event = `data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\ndata: ${ERROR}\n\n`
  for (const route of ['{ to: up, retries: 0 }', '{ to: up, retries: 0, resume: hold }']) {
    const { ask, texts } = await start(t, (res, model) => {
      if (model === 'stream') res.writeHead(200, { 'content-type': 'text/event-stream' }).end(event)
      else res.end(ERROR)
    }, route)
    await ask()
    await ask({ model: 'stream', stream: true })
    const [[body], [stream]] = await texts() as [[string], [string]]
    t.equal(body, TEXT)
    t.ok(stream.includes('The engine is overloaded'))
    t.notMatch(stream, SECRET)
  }
})

t.test('secrets are masked before a long error is cut to one kilobyte', async t => {
  const long = `${'é'.repeat(505)}${SECRET}${'x'.repeat(5_000)}`
  const { ask, texts } = await start(t, res => res.writeHead(400).end(long))
  await ask()
  t.strictSame(await texts(), [[`${'é'.repeat(505)}${'*'.repeat(14)}`]])
})

t.test('the error text of a refused WebSocket is kept', async t => {
  const { books, texts } = await start(t, res => res.end())
  const socket = new WebSocket(`${books.gateway.url.replace('http', 'ws')}/v1/realtime?model=m`, { headers: { authorization: `Bearer ${KEY}` } })
  const closed = new Promise(resolve => socket.on('error', resolve).on('unexpected-response', (_, res) => res.resume().on('end', resolve)))
  await closed
  t.strictSame(await texts(), [[TEXT]])
})

t.test('the report of a request shows the text of an error', async t => {
  const { ask, books } = await start(t, res => res.writeHead(400).end(ERROR))
  const id = await ask()
  await books.close()
  const { stdout } = await command(['usage', '--config', books.gateway.file, '--request', id])
  t.match(stdout, /attempt 1: .*The engine is overloaded/)
  t.notMatch(stdout, SECRET)
})
