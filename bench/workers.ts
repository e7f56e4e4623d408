/**
 * Requests per second and CPU per request with one process and with two workers,
 * supervisor included, limits and ledger on. Load and upstream want cores too: on
 * a machine with two, the rate shows nothing of what two workers can do elsewhere,
 * and the CPU per request is what holds.
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
endAfter(60 + (rounds + 1) * 2 * (seconds + 2))
const upstream = await startScript('upstream', 'upstream.ts')
const subjects = [
  await startGateway(upstream.port, { name: 'one process' }),
  await startGateway(upstream.port, { name: 'two workers', server: 'workers: 2' }),
]

/** Of a process and those that it started. */
function cpuOfAll(pid: number): number {
  const children = execFileSync('sh', ['-c', `pgrep -P ${pid} || true`]).toString().trim().split('\n')
  return [pid, ...children.filter(Boolean).map(Number)].reduce((sum, each) => sum + cpuSeconds(each), 0)
}

const figures = new Map(subjects.map(({ name }) => [name, { micros: [] as number[], rates: [] as number[] }]))
for (let round = 0; round <= rounds; round++) {
  for (const { name, port, pid } of subjects) {
    const before = cpuOfAll(pid as number)
    const { units } = await closedLoop(port, requestLoad(), 32, seconds * 1000)
    if (round === 0) continue
    figures.get(name)?.micros.push(((cpuOfAll(pid as number) - before) * 1e6) / units)
    figures.get(name)?.rates.push(units / seconds)
  }
}
console.log(`${new Date().toISOString().slice(0, 10)}, Node ${process.version}, ` +
  `${availableParallelism()} cores, ` +
  `${rounds} rounds of ${seconds} s`)
printTable(
  ['', 'us CPU per request', 'requests/s'],
  [...figures].map(([name, { micros, rates }]) => [name, spread(micros), median(rates).toFixed(0)]),
)
for (const { stop } of [...subjects, upstream]) stop()
