/**
 * Clients of streams that come as fast as they are read, in a process of their own: they leave when it ends. Prints
 * how many streams there are as soon as each has begun.
 *
 *   node bench/lib/stream-clients.ts PORT STREAMS reads|stalls
 */
import * as net from 'node:net'
import { fullSpeedLoad } from './load.ts'

const [port, streams, behaviour] = [Number(process.argv[2]), Number(process.argv[3]), process.argv[4]]
/** Streams that begin together: what is measured is not a crowd that arrives. */
const BATCH_SIZE = 20
const { bytes } = fullSpeedLoad()

function open(): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = net.connect({ port, host: '127.0.0.1', noDelay: true })
    socket.on('error', reject).on('close', () => reject(new Error('a stream has ended')))
    socket.once('data', head => {
      if (behaviour === 'stalls') socket.pause()
      if (head.toString('latin1').startsWith('HTTP/1.1 200')) resolve()
      else reject(new Error(head.toString()))
    })
    socket.on('data', () => {})
    socket.write(bytes)
  })
}

for (let opened = 0; opened < streams; opened += BATCH_SIZE) {
  await Promise.all(Array.from({ length: Math.min(BATCH_SIZE, streams - opened) }, open))
}
console.log(streams)
// Sockets that do not read keep no process alive.
setInterval(() => {}, 2 ** 30)
