import { once } from 'node:events'
import t from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { startTestGateway } from '../../support/gateway.ts'
import { startUpstream } from '../../support/upstream.ts'

/* A message of a realtime session that names another model does not reach the upstream. */

const LIMITED = 'sk-limited-0123456789abcdef'
const BUDGET = 'sk-budget-0123456789abcdef'
const ANY = 'sk-any-0123456789abcdef'
const seen: string[] = []
const upstream = await startUpstream(t, (_req, res) => res.writeHead(404).end())
const sockets = new WebSocketServer({ server: upstream.server, perMessageDeflate: { threshold: 0 } })
sockets.on('connection', socket => {
  socket.on('message', data => {
    seen.push(String(data))
    socket.send(JSON.stringify({ type: 'session.updated' }))
  })
})
t.teardown(() => sockets.close())
const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${upstream.url}", websocket: true } }
routes: [{ to: up }]
keys:
  - { name: limited, key: ${LIMITED}, models: ["m*"] }
  - { name: budget, key: ${BUDGET}, limits: { budget: { usd: 5, per: day } } }
  - { name: any, key: ${ANY} }
models: { m: { price: { input: 1, output: 1 } }, m2: { price: { input: 1, output: 1 } } }
`)

async function open(key: string): Promise<WebSocket> {
  seen.length = 0
  const url = `${gateway.url.replace('http', 'ws')}/v1/realtime?model=m`
  const socket = new WebSocket(url, { headers: { authorization: `Bearer ${key}` }, perMessageDeflate: { threshold: 0 } })
  await once(socket, 'open')
  return socket
}

const MESSAGES: Readonly<Record<string, (model: string) => object>> = {
  'session.update': model => ({ type: 'session.update', session: { model } }),
  'the model of transcripts': model => ({ type: 'session.update', session: { audio: { input: { transcription: { model } } } } }),
  'the model of transcripts in the beta': model => ({ type: 'session.update', session: { input_audio_transcription: { model } } }),
  'response.create': model => ({ type: 'response.create', response: { model } }),
  'a tool': model => ({ type: 'response.create', response: { tools: [{ type: 'image_generation', model }] } }),
  'a top-level model': model => ({ type: 'response.create', model }),
}

for (const [what, message] of Object.entries(MESSAGES)) {
  t.test(`${what}: the model is checked against allow-list and budget`, async t => {
    for (const key of [LIMITED, BUDGET]) {
      const socket = await open(key)
      socket.send(JSON.stringify(message('dear')))
      const [code, reason] = await once(socket, 'close')
      t.equal(code, 1008)
      t.match(String(reason), 'dear')
      t.strictSame(seen, [])
    }
    for (const [key, model] of [[LIMITED, 'm2'], [BUDGET, 'm2'], [ANY, 'dear']] as const) {
      const socket = await open(key)
      socket.send(JSON.stringify(message(model)))
      await once(socket, 'message')
      t.equal(seen.length, 1)
      socket.close()
    }
  })
}

t.test('the model is checked in a fragmented message, and in a message that follows another in the same packet', async t => {
  const socket = await open(LIMITED)
  const text = JSON.stringify({ type: 'session.update', session: { model: 'dear' } })
  socket.send(text.slice(0, 20), { fin: false })
  socket.send(text.slice(20), { fin: true })
  await once(socket, 'close')
  t.strictSame(seen, [])
  const other = await open(LIMITED)
  ;(other as unknown as { _socket: { cork(): void, uncork(): void } })._socket.cork()
  other.send('{"type":"input_audio_buffer.commit"}')
  other.send(text)
  ;(other as unknown as { _socket: { cork(): void, uncork(): void } })._socket.uncork()
  await once(other, 'close')
  t.notOk(seen.some(message => message.includes('dear')))
})

t.test('a "model" member in the output of a tool is not checked', async t => {
  const socket = await open(LIMITED)
  socket.send(JSON.stringify({ type: 'conversation.item.create', item: { type: 'function_call_output', output: '{"model":"dear"}' } }))
  await once(socket, 'message')
  t.equal(seen.length, 1)
  socket.close()
})
