/**
 * CPU per request while thousands of streams are open that say nothing, and while
 * none is: a request should not pay for those that wait.
 *
 *   node bench/crowd.ts [streams] [rounds] [seconds]
 */
import { endAfter } from './lib/figures.ts'
import { openIdleStreams } from './lib/idle-streams.ts'
import { printCpuExcess } from './lib/paired-rounds.ts'
import { startGateway, startScript } from './lib/subjects.ts'

const streams = Number(process.argv[2] ?? 5_000)
const rounds = Number(process.argv[3] ?? 20)
const seconds = Number(process.argv[4] ?? 1)
endAfter(120 + streams / 100 + rounds * 2 * (seconds + 2))

const upstream = await startScript('upstream', 'upstream.ts')
const alone = await startGateway(upstream.port, { name: 'alone' })
const crowded = await startGateway(upstream.port, { name: `beside ${streams} streams` })
const open = await openIdleStreams(crowded.port, streams)
await printCpuExcess([alone, crowded], rounds, seconds)
for (const socket of open) socket.destroy()
for (const { stop } of [alone, crowded, upstream]) stop()
