/**
 * One process beside two workers, limits and ledger on: CPU per request, of all
 * processes together and of the busiest of them; and requests per second, which on a
 * machine whose cores load and upstream want too tell little of what two workers can do
 * elsewhere. With `slow`, each process of a gateway is kept to a third of a core (needs the
 * right to make control groups): load and upstream have the rest, so that the rates tell
 * what two workers do where each has a core and the load comes from elsewhere.
 *
 *   node bench/workers.ts [rounds] [seconds] [connections] [slow]
 */
import { execFileSync } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { limitCpu } from './lib/cpu-limit.ts'
import { endAfter, median, printHeading, printTable, spread } from './lib/figures.ts'
import { requestLoad, sharedLoop } from './lib/load.ts'
import { cpuSeconds, startGateway, startScript } from './lib/subjects.ts'
import type { Subject } from './lib/subjects.ts'

const rounds = Number(process.argv[2] ?? 5)
const seconds = Number(process.argv[3] ?? 3)
const connections = Number(process.argv[4] ?? 32)
const isSlow = process.argv[5] === 'slow'
endAfter(300 + rounds * 3 * (seconds + 2))
const upstream = await startScript('upstream', 'upstream.ts')
const subjects = [
  { name: 'one process', gateways: [await startGateway(upstream.port)] },
  { name: 'two workers', gateways: [await startGateway(upstream.port, { server: 'workers: 2' })] },
  { name: 'two gateways', gateways: [await startGateway(upstream.port), await startGateway(upstream.port)] },
]

/** A process and those that it started. */
function family(pid: number): number[] {
  const children = execFileSync('sh', ['-c', `pgrep -P ${pid} || true`]).toString().trim().split('\n')
  return [pid, ...children.filter(Boolean).map(Number)]
}

/** Of a core, for each process, with `slow`. */
const SHARE = 1 / 3
/** What the compiler wants to see before it has made the most of it, of each process that serves. */
const WARM_UP_REQUESTS = 25_000

const load = requestLoad()

const answered = (gateways: readonly Subject[], ms: number): Promise<number> =>
  sharedLoop(gateways.map(({ port }) => port), load, connections, ms)

const figures = subjects.map(({ name, gateways }) => ({
  name, gateways, processes: () => gateways.flatMap(({ pid }) => family(pid as number)),
  all: [] as number[], busiest: [] as number[], rates: [] as number[],
}))
// In turns: who came first, and then waited for the others, is slower ever after.
for (const missing = figures.map((_, n) => Math.min(n + 1, 2) * WARM_UP_REQUESTS); Math.max(...missing) > 0;) {
  for (const [n, { gateways }] of figures.entries()) missing[n]! -= await answered(gateways, 1000)
}
if (isSlow) for (const each of figures.flatMap(({ processes }) => processes())) limitCpu(each, SHARE)
for (let round = 0; round < rounds; round++) {
  for (const { gateways, processes, all, busiest, rates } of figures) {
    const before = processes().map(cpuSeconds)
    const units = await answered(gateways, seconds * 1000)
    const micros = processes().map(cpuSeconds).map((after, n) => ((after - (before[n] ?? 0)) * 1e6) / units)
    all.push(micros.reduce((sum, each) => sum + each, 0))
    busiest.push(Math.max(...micros))
    rates.push(units / seconds)
  }
}
printHeading(`${availableParallelism()} cores`, `${connections} connections`, `${rounds} rounds of ${seconds} s`,
  ...isSlow ? ['each process kept to a third of a core'] : [])
printTable(
  ['', 'us CPU per request', 'of the busiest process', 'requests/s'],
  figures.map(({ name, all, busiest, rates }) => [
    name, spread(all), spread(busiest), median(rates).toFixed(0),
  ]),
)
console.log()
const [one, ...two] = figures
for (const { name, rates } of two) {
  const gains = (one?.rates ?? []).map((rate, round) => (rates[round] ?? Number.NaN) / rate)
  console.log(`requests/s of ${name} beside one process: ${spread(gains, 2)} x`)
}
for (const { stop } of [...figures.flatMap(({ gateways }) => gateways), upstream]) stop()
