/**
 * Chunks that come late, by how many streams there are at once, each with a chunk every 20 ms: straight from the
 * upstream, through nginx and through the gateway. Late is a chunk that takes more than ten times the pace from its
 * sending to its arrival.
 *
 *   node bench/pace.ts [seconds] [streams ...]
 */
import { endAfter, printHeading, printTable, quantile } from './lib/figures.ts'
import { closedLoop, requestLoad, streamLoad } from './lib/load.ts'
import { chunkDelays } from './lib/open-loop.ts'
import { startNginx } from './lib/peers.ts'
import { startGateway, startScript } from './lib/subjects.ts'
import type { Subject } from './lib/subjects.ts'

const seconds = Number(process.argv[2] ?? 5)
const counts = process.argv.length > 3 ? process.argv.slice(3).map(Number) : [100, 500, 1_000, 2_000, 5_000]
const EVERY_MS = 20
const LATE_MS = 10 * EVERY_MS
const WARM_UP_MS = 10_000

// With more streams than the machine serves, a run takes many times as long.
endAfter(120 + counts.length * 3 * (seconds + 60))
const upstream = await startScript('direct', 'upstream.ts')
const nginx = await startNginx(upstream.port)
const gateway = await startGateway(upstream.port)
const subjects: Subject[] = [upstream, ...nginx ? [nginx] : [], gateway]
await closedLoop(gateway.port, requestLoad(), 32, WARM_UP_MS)
const load = streamLoad((seconds * 1000) / EVERY_MS, '', { everyMs: EVERY_MS, stamped: true })
const rows: string[][] = []
for (const streams of counts) {
  for (const { name, port } of subjects) {
    const delays = await chunkDelays(port, load, streams)
    const late = delays.filter(delay => delay > LATE_MS).length
    rows.push([
      String(streams), name, quantile(delays, 0.5).toFixed(2), quantile(delays, 0.99).toFixed(2),
      String(late), ((late / delays.length) * 100).toFixed(2),
    ])
  }
}
printHeading(`a chunk each ${EVERY_MS} ms`, `${seconds} s`)
printTable(['streams', '', 'p50, ms', 'p99, ms', `chunks over ${LATE_MS} ms`, '%'], rows)
for (const { stop } of subjects) stop()
