/**
 * CPU per request while thousands of streams are open that say nothing, and while
 * none is: a request should not pay for those that wait.
 *
 *   node bench/crowd.ts [streams] [rounds] [seconds]
 */
import { once } from 'node:events'
import * as net from 'node:net'
import { endAfter } from './lib/figures.ts'
import { streamLoad } from './lib/load.ts'
import { startGateway, startScript } from './lib/subjects.ts'
import { printExcess } from './lib/turns.ts'

const streams = Number(process.argv[2] ?? 5_000)
const rounds = Number(process.argv[3] ?? 20)
const seconds = Number(process.argv[4] ?? 1)
/** Streams that begin together: more than a listener's backlog would be refused. */
const AT_ONCE = 100
endAfter(120 + streams / AT_ONCE + rounds * 2 * (seconds + 2))

const upstream = await startScript('upstream', 'upstream.ts')
const alone = await startGateway(upstream.port, { name: 'alone' })
const crowded = await startGateway(upstream.port, { name: `beside ${streams} streams` })
// Each begins at once, and its first chunk comes when all is over.
const silent = streamLoad(1, '', { everyMs: 2 ** 31 - 1 })
const open: net.Socket[] = []
while (open.length < streams) {
  const begun = Array.from({ length: Math.min(AT_ONCE, streams - open.length) }, async () => {
    const socket = net.connect({ port: crowded.port, host: '127.0.0.1' })
    open.push(socket)
    socket.write(silent.bytes)
    await once(socket, 'data')
  })
  await Promise.all(begun)
}
await printExcess([alone, crowded], rounds, seconds)
for (const socket of open) socket.destroy()
for (const { stop } of [alone, crowded, upstream]) stop()
