/**
 * An upstream that is never the bottleneck: it looks for the end of each request
 * and answers with bytes that were rendered before. Run as a process of its own;
 * prints its port. A request whose `user` says `x-chunks:N` gets a stream of N
 * events, one every `x-every` milliseconds; with `x-stamped` each tells when it
 * was sent, in microseconds of the system's monotonic clock: `@123@`. One whose head says
 * `x-full-speed` gets events without end, as fast as its connection takes them. Headers, and a path that begins with
 * `/x-chunks:N`, say the same as `user`. Below `/model/` it is Amazon Bedrock.
 */
import * as net from 'node:net'

const BODY = JSON.stringify({
  id: 'chatcmpl-1', object: 'chat.completion', created: 1, model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'x'.repeat(220) }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 200, completion_tokens: 50, total_tokens: 250 },
})
const RESPONSE = Buffer.from(
  `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${BODY.length}\r\n\r\n${BODY}`,
)
const MESSAGE = JSON.stringify({
  id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [{ type: 'text', text: 'x'.repeat(220) }],
  stop_reason: 'end_turn', stop_sequence: null, usage: { input_tokens: 200, output_tokens: 50 },
})
const MESSAGE_RESPONSE = Buffer.from(
  `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${MESSAGE.length}\r\n\r\n${MESSAGE}`,
)
const STREAM = Buffer.from(
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n',
)
const EVENT = event('x'.repeat(60))
/** 64 kB of events. */
const MANY_EVENTS = Buffer.concat(Array.from({ length: Math.ceil(65_536 / EVENT.length) }, () => EVENT))
const USAGE = '{"choices":[],"usage":{"prompt_tokens":200,"completion_tokens":50,"total_tokens":250}}'
const STREAM_END = Buffer.concat([
  chunked(`data: ${USAGE}\n\n`), chunked('data: [DONE]\n\n'), Buffer.from('0\r\n\r\n'),
])

const server = net.createServer({ noDelay: true }, socket => {
  let seen = ''
  socket.on('error', () => {})
  socket.on('data', data => {
    seen += data.toString('latin1')
    for (let end = seen.indexOf('\r\n\r\n'); end !== -1; end = seen.indexOf('\r\n\r\n')) {
      const head = seen.slice(0, end)
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0)
      if (seen.length < end + 4 + length) return
      const wishes = head + (/"user":".*?"/.exec(seen.slice(end, end + 100))?.[0] ?? '')
      seen = seen.slice(end + 4 + length)
      const wish = (name: string) => Number(new RegExp(`(?:\\r\\n| |/|")${name}: ?(\\d+)`, 'i').exec(wishes)?.[1] ?? 0)
      const chunks = wish('x-chunks')
      if (wish('x-full-speed') === 1) sendAtFullSpeed(socket)
      else if (chunks === 0) socket.write(head.startsWith('POST /model/') ? MESSAGE_RESPONSE : RESPONSE)
      else sendStream(socket, chunks, wish('x-every') || 1, wish('x-stamped') === 1)
    }
  })
})
server.listen(0, '127.0.0.1', () => console.log((server.address() as net.AddressInfo).port))

function sendStream(socket: net.Socket, chunks: number, every: number, stamped: boolean): void {
  socket.write(STREAM)
  let sent = 0
  const timer = setInterval(() => {
    if (sent++ < chunks && !socket.destroyed) {
      socket.write(stamped ? event(`@${process.hrtime.bigint() / 1000n}@${'x'.repeat(40)}`) : EVENT)
      return
    }
    clearInterval(timer)
    if (!socket.destroyed) socket.write(STREAM_END)
  }, every)
}

function sendAtFullSpeed(socket: net.Socket): void {
  socket.write(STREAM)
  const send = () => {
    while (!socket.destroyed && socket.write(MANY_EVENTS));
  }
  socket.on('drain', send)
  send()
}

function event(content: string): Buffer {
  return chunked(`data: ${JSON.stringify({
    id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm',
    choices: [{ index: 0, delta: { content }, finish_reason: null }],
  })}\n\n`)
}

function chunked(text: string): Buffer {
  return Buffer.from(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`)
}
