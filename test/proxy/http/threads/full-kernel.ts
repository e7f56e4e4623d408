/**
 * An upstream that responds with so many chunks of 1 kB. It sets the cell to 1 when the kernel holds all it takes of each
 * response, so that nobody has to have read for that.
 */
import { createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { parentPort, workerData } from 'node:worker_threads'
import type { MessagePort } from 'node:worker_threads'

const port = parentPort as MessagePort

const { cell, responses, chunks } = workerData as { cell: Int32Array; responses: number; chunks: number }
const CHUNK = `400\r\n${'x'.repeat(1024)}\r\n`
const BODY = Buffer.from(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${CHUNK.repeat(chunks)}0\r\n\r\n`)
/** Number of turns of the event loop without progress after which the kernel counts as full. */
const STILL_TURNS = 50
const sockets: Socket[] = []

const server = createServer(socket => {
  socket.on('error', () => {})
  socket.once('data', () => {
    socket.write(BODY)
    if (sockets.push(socket) === responses) watch(-1, 0)
  })
})
server.listen(0, '127.0.0.1', () => port.postMessage((server.address() as AddressInfo).port))

function watch(before: number, turns: number): void {
  const taken = sockets.reduce((sum, { bytesWritten, writableLength }) => sum + bytesWritten - writableLength, 0)
  if (taken === before && turns === STILL_TURNS) {
    Atomics.store(cell, 0, 1)
    Atomics.notify(cell, 0)
  } else {
    setTimeout(watch, 1, taken, taken === before ? turns + 1 : 0)
  }
}
