/**
 * Memory of the gateway under a load that does not end: requests on kept and on
 * new connections, streams that end and streams whose client leaves. It is read
 * at the end of each minute, a few seconds after the load stops for it.
 *
 *   node bench/growth.ts [minutes] [requests/s]
 */
import * as net from 'node:net'
import { endAfter, median, printHeading, printTable, spread } from './lib/figures.ts'
import { requestLoad, streamLoad } from './lib/load.ts'
import type { Load } from './lib/load.ts'
import { chunkDelays, firstByteTimes } from './lib/open-loop.ts'
import { memory, pause, startGateway, startScript } from './lib/subjects.ts'

const minutes = Number(process.argv[2] ?? 60)
const rate = Number(process.argv[3] ?? 300)
/** Seconds of a minute with load. */
const BUSY = 54
const STREAMS = 40
const EVERY_MS = 100
/** Clients a second that leave in mid-stream. */
const LEAVING = 10

endAfter(60 + minutes * 90)
const upstream = await startScript('upstream', 'upstream.ts')
const gateway = await startGateway(upstream.port)
const pid = gateway.pid as number
const figures: number[] = []
let left = 0
for (let minute = 0; minute < minutes; minute++) {
  const lasting = streamLoad((BUSY * 1000) / EVERY_MS, '', { everyMs: EVERY_MS, stamped: true })
  await Promise.all([
    firstByteTimes(gateway.port, requestLoad(), rate, BUSY),
    chunkDelays(gateway.port, lasting, STREAMS),
    leave(streamLoad(600, '', { everyMs: EVERY_MS }), BUSY * LEAVING),
  ])
  await pause((60 - BUSY) * 1000)
  figures.push(memory(pid, 'VmRSS'))
}

/** Opens so many streams over the minute, and closes each after its first chunk. */
async function leave(load: Load, streams: number): Promise<void> {
  for (let i = 0; i < streams; i++) {
    const socket = net.connect({ port: gateway.port, host: '127.0.0.1', noDelay: true })
    socket.on('error', () => {})
    socket.once('data', () => socket.destroy())
    socket.once('close', () => left++)
    socket.write(load.bytes)
    await pause(1000 / LEAVING)
  }
}

const requests = minutes * BUSY * rate
printHeading(`${requests} requests`, `${minutes * STREAMS} streams`, `${left} clients that left`)
const part = Math.max(1, Math.floor(minutes / 6))
const parts = Array.from({ length: Math.ceil(minutes / part) }, (_, i) =>
  figures.slice(i * part, (i + 1) * part))
printTable(['minutes', 'memory, MB'], parts.map((values, i) => [
  `${i * part + 1} - ${i * part + values.length}`, spread(values, 0),
]))
const [second = [], last = []] = [parts[1], parts.at(-1)]
const growth = median(last) - median(second)
const peak = memory(pid, 'VmHWM')
console.log(`growth after the first part: ${growth.toFixed(1)} MB; peak ${peak.toFixed(0)} MB`)
gateway.stop()
upstream.stop()
