/**
 * CPU of the proxy's process per request by how many requests are in progress at
 * once: nginx, http-proxy-3 alone and the gateway, in turn. With few of them a
 * process sleeps and wakes for each, and what it does then it does with cold
 * caches: half the requests are more than half the work.
 *
 *   node bench/concurrency.ts [rounds] [seconds]
 */
import { endAfter, printHeading, printTable, spread } from './lib/figures.ts'
import { closedLoop, requestLoad } from './lib/load.ts'
import { startNginx } from './lib/peers.ts'
import { cpuPerUnit, startGateway, startScript } from './lib/subjects.ts'
import type { Subject } from './lib/subjects.ts'

const rounds = Number(process.argv[2] ?? 3)
const seconds = Number(process.argv[3] ?? 2)
const AT_ONCE = [1, 2, 4, 8, 32]
const WARM_UP_MS = 8_000

endAfter(120 + rounds * AT_ONCE.length * 3 * (seconds + 1))
const load = requestLoad()
const upstream = await startScript('upstream', 'upstream.ts')
const nginx = await startNginx(upstream.port)
const subjects: Subject[] = [
  ...nginx ? [nginx] : [],
  await startScript('http-proxy-3 alone', 'bare-proxy.ts', String(upstream.port)),
  await startGateway(upstream.port),
]
for (const { port } of subjects) await closedLoop(port, load, 32, WARM_UP_MS)
const figures = new Map<string, number[][]>(subjects.map(({ name }) => [name, AT_ONCE.map(() => [])]))
for (let round = 0; round < rounds; round++) {
  for (const [at, connections] of AT_ONCE.entries()) {
    for (const { name, port, pid } of subjects) {
      figures.get(name)?.[at]?.push(await cpuPerUnit(pid, () => closedLoop(port, load, connections, seconds * 1000)))
    }
  }
}
printHeading(`${rounds} rounds of ${seconds} s`, 'us CPU per request')
printTable(
  ['requests at once', ...AT_ONCE.map(String)],
  [...figures].map(([name, all]) => [name, ...all.map(values => spread(values, 0))]),
)
for (const { stop } of [...subjects, upstream]) stop()
