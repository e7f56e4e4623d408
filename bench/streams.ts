/**
 * Memory of the gateway with thousands of slow streams open at once, each on a
 * connection of its own: before, with all of them open, and after.
 *
 *   node bench/streams.ts [streams] [seconds]
 */
import * as net from 'node:net'
import { availableParallelism } from 'node:os'
import { endAfter, printHeading } from './lib/figures.ts'
import { closedLoop, requestLoad, ResponseEnd, streamLoad } from './lib/load.ts'
import { memory, pause, startGateway, startScript } from './lib/subjects.ts'

const streams = Number(process.argv[2] ?? 5_000)
const seconds = Number(process.argv[3] ?? 20)
const EVERY_MS = 1_000
const PER_TICK = 50
endAfter(120 + seconds + streams / 50)

const upstream = await startScript('upstream', 'upstream.ts')
const gateway = await startGateway(upstream.port)
const pid = gateway.pid as number
await closedLoop(gateway.port, requestLoad(), 16, 3_000)
await pause(2_000)
const before = memory(pid, 'VmRSS')

const load = streamLoad(seconds + Math.ceil(streams / PER_TICK / 100), '', { everyMs: EVERY_MS })
let open = 0
let most = 0
let whole = 0
let failed = 0
const all: Promise<void>[] = []
for (let i = 0; i < streams; i++) {
  all.push(new Promise(resolve => {
    const socket = net.connect({ port: gateway.port, host: '127.0.0.1', noDelay: true })
    const end = new ResponseEnd()
    let begun = false
    let isWhole = false
    socket.on('error', () => {})
    socket.on('data', data => {
      if (!begun) {
        begun = true
        most = Math.max(most, ++open)
      }
      if (!end.add(data.toString('latin1'))) return
      isWhole = true
      whole++
      socket.destroy()
    })
    socket.on('close', () => {
      if (begun) open--
      if (!isWhole) failed++
      resolve()
    })
    socket.write(load.bytes)
  }))
  if (i % PER_TICK === 0) await pause(10)
}
while (most < streams && failed === 0 && whole === 0) await pause(100)
await pause(2_000)
const during = memory(pid, 'VmRSS')
await Promise.all(all)
await pause(3_000)
printHeading(`${availableParallelism()} cores`, `${most} streams open at once, a chunk each second; ${whole} ended whole, ${failed} did not`)
console.log(`memory ${before.toFixed(0)} MB before, ${during.toFixed(0)} MB during: ` +
  `${(((during - before) * 1024) / most).toFixed(1)} kB for each stream (target 60); ` +
  `${memory(pid, 'VmRSS').toFixed(0)} MB after`)
process.exitCode = failed > 0 ? 1 : 0
gateway.stop()
upstream.stop()
