/**
 * How long the upstream goes on working for a client that has left: from the
 * client's close to the upstream's, with other requests in progress.
 *
 *   node bench/close.ts [closes] [requests per second]
 */
import * as net from 'node:net'
import type { AddressInfo } from 'node:net'
import { endAfter, printHeading, quantile } from './lib/figures.ts'
import { closedLoop, requestLoad, streamLoad } from './lib/load.ts'
import { firstByteTimes } from './lib/open-loop.ts'
import { pause, startGateway } from './lib/subjects.ts'

const closes = Number(process.argv[2] ?? 1_000)
const rate = Number(process.argv[3] ?? 1_000)
endAfter(180)

/** An event that names the stream, so that each end is identified. */
const HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n'
const answer = '{"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2},"choices":[],"x":{}}'
const closedAt = new Map<number, () => void>()
let streams = 0
const upstream = net.createServer({ noDelay: true }, socket => {
  socket.on('error', () => {})
  let seen = ''
  socket.on('data', data => {
    seen += data.toString('latin1')
    const end = seen.indexOf('\r\n\r\n')
    if (end === -1) return
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(seen)?.[1] ?? 0)
    if (seen.length < end + 4 + length) return
    if (/\r\nx-chunks: /i.test(seen)) {
      const id = streams++
      socket.write(`${HEAD}data: {"choices":[{"index":0,"delta":{"content":"#${id}#"}}]}\n\n`)
      socket.once('close', () => closedAt.get(id)?.())
    } else {
      socket.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n' +
        `content-length: ${answer.length}\r\n\r\n${answer}`)
    }
    seen = ''
  })
}).listen(0, '127.0.0.1')
await new Promise(resolve => upstream.once('listening', resolve))
const gateway = await startGateway((upstream.address() as AddressInfo).port)

async function leave(bytes: Buffer): Promise<number> {
  const socket = net.connect({ port: gateway.port, host: '127.0.0.1', noDelay: true })
  socket.write(bytes)
  const id = await new Promise<number>((resolve, reject) => {
    let text = ''
    socket.on('error', reject)
    socket.on('data', data => {
      text += data.toString('latin1')
      const found = /#(\d+)#/.exec(text)
      if (found) resolve(Number(found[1]))
    })
  })
  const began = performance.now()
  return new Promise(resolve => {
    closedAt.set(id, () => resolve(performance.now() - began))
    socket.destroy()
  })
}

await closedLoop(gateway.port, requestLoad(), 16, 10_000)
const { bytes } = streamLoad(1)
const times: number[] = []
const seconds = Math.ceil((closes * 10) / 1000) + 1
const background = firstByteTimes(gateway.port, requestLoad(), rate, seconds)
for (let i = 0; i < closes; i++) {
  times.push(await leave(bytes))
  await pause(5)
}
await background
printHeading(`${rate} requests/s beside: client's close ` +
  `to upstream's, ${closes} times: p50 ${quantile(times, 0.5).toFixed(2)} ms, ` +
  `p99 ${quantile(times, 0.99).toFixed(2)} ms ` +
  '(target 5)')
gateway.stop()
upstream.close()
