import { once } from 'node:events'
import t from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { KEY } from '../../support/gateway.ts'
import { startUpstream } from '../../support/upstream.ts'
import { openBooks } from './books.ts'

const PICO = 1_000_000_000_000n

t.test('a WebSocket that the gateway does not read has the price of the target that accepted the handshake', async t => {
  const ill = await startUpstream(t, (_req, res) => res.writeHead(503).end())
  const { server, url } = await startUpstream(t, (_req, res) => res.end())
  new WebSocketServer({ server }).on('connection', peer => peer.on('message', () => peer.close(1000)))
  const books = await openBooks(t, `
upstreams: { a: { url: "${ill.url}", websocket: true }, b: { url: "${url}", websocket: true } }
routes: [{ path: /v1/speech, to: [{ upstream: a, model: cheap }, { upstream: b, model: dear }] }]
models: { cheap: { price: { per_request: 1 } }, dear: { price: { per_request: 3 } } }`)
  const address = `${books.gateway.url.replace('http', 'ws')}/v1/speech?model=m`
  const client = new WebSocket(address, { headers: { authorization: `Bearer ${KEY}` } })
  await once(client, 'open')
  client.send('speak')
  await once(client, 'close')
  await books.gateway.waitForLog(line => line.msg === 'exchange')
  const [row] = [...(await books.drain()).values()]
  t.match(row, { upstream: 'b', upstreamModel: 'dear', price: { perRequest: '3' }, costPico: 3n * PICO })
})
