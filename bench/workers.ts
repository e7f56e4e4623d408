/**
 * One process beside two workers, limits and ledger on: CPU per request, of all
 * processes together and of the busiest of them, which bounds the rate where cores
 * are free; and requests per second, which on a machine whose cores load and upstream
 * want too tell little of what two workers can do elsewhere. With `core`, all processes of
 * a gateway share one core, and load and upstream have the others: what two workers reach
 * there beside one process is what is left of a core when they are two, each with its own.
 *
 *   node bench/workers.ts [rounds] [seconds] [connections] [core]
 */
import { execFileSync } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { endAfter, median, printTable, spread } from './lib/figures.ts'
import { closedLoop, requestLoad } from './lib/load.ts'
import { cpuSeconds, startGateway, startScript } from './lib/subjects.ts'

const rounds = Number(process.argv[2] ?? 5)
const seconds = Number(process.argv[3] ?? 3)
const connections = Number(process.argv[4] ?? 32)
const isOneCore = process.argv[5] === 'core'
// Before any is kept from this process.
const cores = availableParallelism()
endAfter(80 + rounds * 2 * (seconds + 2))
const upstream = await startScript('upstream', 'upstream.ts')
const subjects = [
  await startGateway(upstream.port, { name: 'one process' }),
  await startGateway(upstream.port, { name: 'two workers', server: 'workers: 2' }),
]

/** A process and those that it started. */
function family(pid: number): number[] {
  const children = execFileSync('sh', ['-c', `pgrep -P ${pid} || true`]).toString().trim().split('\n')
  return [pid, ...children.filter(Boolean).map(Number)]
}

/** Keeps processes, with their threads, to some of the cores. */
function pin(pids: readonly number[], which: string): void {
  for (const pid of pids) execFileSync('taskset', ['--all-tasks', '--pid', '--cpu-list', which, String(pid)])
}

if (isOneCore) {
  const last = cores - 1
  pin([process.pid, upstream.pid as number], `0-${last - 1}`)
  for (const { pid } of subjects) pin(family(pid as number), String(last))
}

const WARM_UP_MS = 8_000

const load = requestLoad()
for (const { port } of subjects) await closedLoop(port, load, connections, WARM_UP_MS)
const figures = subjects.map(({ name, port, pid }) => ({
  name, port, pid: pid as number, all: [] as number[], busiest: [] as number[], rates: [] as number[],
}))
for (let round = 0; round < rounds; round++) {
  for (const { port, pid, all, busiest, rates } of figures) {
    const before = family(pid).map(cpuSeconds)
    const { units } = await closedLoop(port, load, connections, seconds * 1000)
    const micros = family(pid).map(cpuSeconds).map((after, n) => ((after - (before[n] ?? 0)) * 1e6) / units)
    all.push(micros.reduce((sum, each) => sum + each, 0))
    busiest.push(Math.max(...micros))
    rates.push(units / seconds)
  }
}
console.log(`${new Date().toISOString().slice(0, 10)}, Node ${process.version}, ` +
  `${cores} cores, ${connections} connections, ${rounds} rounds of ${seconds} s` +
  (isOneCore ? ', each gateway on the last core' : ''))
printTable(
  ['', 'us CPU per request', 'of the busiest process', 'requests/s'],
  figures.map(({ name, all, busiest, rates }) => [
    name, spread(all), spread(busiest), median(rates).toFixed(0),
  ]),
)
const [one, two] = figures
const gains = isOneCore
  ? (two?.rates ?? []).map((rate, round) => 2 * rate / (one?.rates[round] ?? Number.NaN))
  : (one?.all ?? []).map((micros, round) => micros / (two?.busiest[round] ?? Number.NaN))
console.log(`\n${isOneCore ? 'with a core each' : 'by the busiest'}: ${spread(gains, 2)} x`)
for (const { stop } of [...subjects, upstream]) stop()
