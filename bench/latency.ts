/**
 * What the gateway adds to the time to the first byte of a request alone, and at half
 * of its own saturation to the first byte and to each streamed chunk. Requests begin at fixed times whatever
 * became of those before (an open loop), and count from the time at which they
 * were due: a proxy that stalls cannot hide it.
 *
 *   node bench/latency.ts [seconds] [rounds] [requests/s]
 */
import { endAfter, median, printHeading, printTable, quantile } from './lib/figures.ts'
import { closedLoop, requestLoad, streamLoad, timesAlone } from './lib/load.ts'
import { chunkDelays, firstByteTimes } from './lib/open-loop.ts'
import { startNginx } from './lib/peers.ts'
import { startGateway, startScript } from './lib/subjects.ts'
import type { Subject } from './lib/subjects.ts'

const seconds = Number(process.argv[2] ?? 5)
const rounds = Number(process.argv[3] ?? 3)
const STREAMS = 50
const EVERY_MS = 20

endAfter(90 + rounds * 4 * 4 * (seconds + 2))
const upstream = await startScript('direct', 'upstream.ts')
const nginx = await startNginx(upstream.port)
const bare = await startScript('http-proxy-3 alone', 'bare-proxy.ts', String(upstream.port))
const gateway = await startGateway(upstream.port)
const subjects: Subject[] = [upstream, ...nginx ? [nginx] : [], bare, gateway]

const request = requestLoad()
// As in peers.ts, a compiler that still warms up counts for nobody: it takes some ten thousand requests.
for (const { port } of [bare, gateway]) await closedLoop(port, request, 32, 10_000)
const { units } = await closedLoop(gateway.port, request, 32, 3_000)
const rate = Number(process.argv[4] ?? Math.round(units / 3 / 2))
printHeading(`${rate} requests/s`, `${STREAMS} streams of one chunk each ${EVERY_MS} ms`, `${rounds} rounds of ${seconds} s`)

const figures = {
  'first byte of one request at a time': (port: number) => timesAlone(port, request, seconds * 1000),
  'first byte': (port: number) => firstByteTimes(port, request, rate, seconds),
  chunk: (port: number) =>
    chunkDelays(
      port, streamLoad((seconds * 1000) / EVERY_MS, '', { everyMs: EVERY_MS, stamped: true }), STREAMS,
    ),
}
for (const [what, measure] of Object.entries(figures)) {
  const p50 = new Map<string, number[]>(subjects.map(({ name }) => [name, []]))
  const p99 = new Map<string, number[]>(subjects.map(({ name }) => [name, []]))
  for (let round = 0; round < rounds; round++) {
    for (const { name, port } of subjects) {
      const times = await measure(port)
      p50.get(name)?.push(quantile(times, 0.5))
      p99.get(name)?.push(quantile(times, 0.99))
    }
  }
  const direct = [median(p50.get('direct') ?? []), median(p99.get('direct') ?? [])] as const
  printTable(
    [`${what}, ms`, 'p50', 'p99', 'added p50', 'added p99'],
    subjects.map(({ name }) => {
      const [a, b] = [median(p50.get(name) ?? []), median(p99.get(name) ?? [])]
      return [name, a.toFixed(2), b.toFixed(2), (a - direct[0]).toFixed(2), (b - direct[1]).toFixed(2)]
    }),
  )
}
for (const { stop } of subjects) stop()
