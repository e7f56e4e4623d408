/**
 * In a thread, so that their memory is not that of the gateway: an upstream that sends events of a chat stream for as
 * long as its connection takes them, and clients that do not read. Posts the port of the upstream; is sent what the
 * clients send, and how many there are.
 */
import { connect, createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { parentPort } from 'node:worker_threads'
import type { MessagePort } from 'node:worker_threads'

const port = parentPort as MessagePort

export interface ClientsOrder {
  readonly port: number
  readonly count: number
  readonly request: string
}

const DATA = `data: {"choices":[{"index":0,"delta":{"content":"${'some words '.repeat(10)}"}}]}\n\n`
const CHUNK = `${DATA.length.toString(16)}\r\n${DATA}\r\n`
const CHUNKS = Buffer.from(CHUNK.repeat(400))

const upstream = createServer(socket => {
  const send = () => {
    while (!socket.destroyed && socket.write(CHUNKS));
  }
  socket.on('error', () => {})
  socket.once('data', () => {
    socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n')
    socket.on('drain', send)
    send()
  })
})
upstream.listen(0, '127.0.0.1', () => port.postMessage((upstream.address() as AddressInfo).port))

port.on('message', (order: ClientsOrder) => {
  for (let n = 0; n < order.count; n++) {
    const socket = connect(order.port, '127.0.0.1')
    socket.on('error', () => {}).pause()
    socket.write(order.request)
  }
})
