/**
 * One process beside two workers, limits and ledger on. On a machine whose cores
 * load and upstream want too, requests per second tell nothing of what two workers
 * can do elsewhere. So the gateway's processes share one core, which is busy all the
 * time, and load and upstream have the others: what a request costs the busiest of
 * them there tells how many more there would be where each has a core of its own.
 *
 *   node bench/workers.ts [rounds] [seconds]
 */
import { execFileSync } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { endAfter, median, printTable, spread } from './lib/figures.ts'
import { closedLoop, requestLoad } from './lib/load.ts'
import { cpuSeconds, startGateway, startScript } from './lib/subjects.ts'

const rounds = Number(process.argv[2] ?? 5)
const seconds = Number(process.argv[3] ?? 3)
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

/** @param cores as taskset(1) takes them */
function pin(pid: number, cores: string): void {
  execFileSync('taskset', ['--all-tasks', '--cpu-list', '--pid', cores, String(pid)])
}

const CONNECTIONS = 64
const WARM_UP_MS = 8_000

const cores = availableParallelism()
for (const pid of [process.pid, upstream.pid as number]) pin(pid, `0-${cores - 2}`)
for (const subject of subjects) for (const pid of family(subject.pid as number)) pin(pid, String(cores - 1))

const load = requestLoad()
for (const { port } of subjects) await closedLoop(port, load, CONNECTIONS, WARM_UP_MS)
const figures = subjects.map(({ name, port, pid }) => ({
  name, port, pid: pid as number, all: [] as number[], busiest: [] as number[], rates: [] as number[],
}))
for (let round = 0; round < rounds; round++) {
  for (const { port, pid, all, busiest, rates } of figures) {
    const before = family(pid).map(cpuSeconds)
    const { units } = await closedLoop(port, load, CONNECTIONS, seconds * 1000)
    const micros = family(pid).map(cpuSeconds).map((after, n) => ((after - (before[n] ?? 0)) * 1e6) / units)
    all.push(micros.reduce((sum, each) => sum + each, 0))
    busiest.push(Math.max(...micros))
    rates.push(units / seconds)
  }
}
console.log(`${new Date().toISOString().slice(0, 10)}, Node ${process.version}, ` +
  `${cores} cores, ${CONNECTIONS} connections, ${rounds} rounds of ${seconds} s`)
printTable(
  ['', 'us CPU per request', 'of the busiest process', 'requests/s'],
  figures.map(({ name, all, busiest, rates }) => [
    name, spread(all), spread(busiest), median(rates).toFixed(0),
  ]),
)
const [one, two] = figures
const gains = (one?.all ?? []).map((micros, round) => micros / (two?.busiest[round] ?? Number.NaN))
console.log(`\nwhere each has a core: ${spread(gains, 2)} x`)
for (const { stop } of [...subjects, upstream]) stop()
