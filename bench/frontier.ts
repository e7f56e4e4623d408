/**
 * Requests per second that nginx, http-proxy-3 alone and the gateway serve while the 99th percentile of the time to
 * the first byte stays below 1, 5, 10, 50 and 100 ms. Requests begin at fixed times (an open loop), at rates that
 * grow by a quarter, until the highest limit is passed.
 *
 *   node bench/frontier.ts [rounds] [seconds] [requests/s to begin with]
 */
import { endAfter, median, printHeading, printTable, quantile } from './lib/figures.ts'
import { closedLoop, requestLoad } from './lib/load.ts'
import { firstByteTimes } from './lib/open-loop.ts'
import { startNginx } from './lib/peers.ts'
import { startGateway, startScript } from './lib/subjects.ts'
import type { Subject } from './lib/subjects.ts'

const rounds = Number(process.argv[2] ?? 3)
const seconds = Number(process.argv[3] ?? 3)
const first = Number(process.argv[4] ?? 500)
const LIMITS_MS = [1, 5, 10, 50, 100]
const GROWTH = 1.25
const WARM_UP_MS = 10_000
/** No rate is higher: the load itself is slow then. */
const MAX_RATE = 40_000

endAfter(120 + rounds * 3 * 20 * (seconds + 3))
const load = requestLoad()
const upstream = await startScript('direct', 'upstream.ts')
const nginx = await startNginx(upstream.port)
const subjects: Subject[] = [
  ...nginx ? [nginx] : [],
  await startScript('http-proxy-3 alone', 'bare-proxy.ts', String(upstream.port)),
  await startGateway(upstream.port, { extra: 'telemetry: { prometheus: { listen: 127.0.0.1:0 } }' }),
]
for (const { port } of subjects) await closedLoop(port, load, 32, WARM_UP_MS)
const frontiers = new Map<string, number[]>()
for (const { name, port } of subjects) {
  const frontier = LIMITS_MS.map(() => 0)
  for (let rate = first, p99 = 0; p99 <= Math.max(...LIMITS_MS) && rate <= MAX_RATE; rate = Math.round(rate * GROWTH)) {
    const all: number[] = []
    for (let round = 0; round < rounds; round++) {
      all.push(quantile(await firstByteTimes(port, load, rate, seconds), 0.99))
    }
    p99 = median(all)
    for (const [n, limit] of LIMITS_MS.entries()) if (p99 <= limit) frontier[n] = rate
  }
  frontiers.set(name, frontier)
}
printHeading(`${rounds} rounds of ${seconds} s for each rate`)
printTable(
  ['requests/s at p99 of', ...LIMITS_MS.map(limit => `${limit} ms`)],
  [...frontiers].map(([name, rates]) => [name, ...rates.map(rate => (rate === 0 ? `below ${first}` : String(rate)))]),
)
for (const { stop } of [...subjects, upstream]) stop()
