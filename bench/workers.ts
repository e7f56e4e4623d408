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
import { endAfter, median, printTable, spread } from './lib/figures.ts'
import { closedLoop, requestLoad } from './lib/load.ts'
import { keepToShare } from './lib/slow-cores.ts'
import { cpuSeconds, startGateway, startScript } from './lib/subjects.ts'

const rounds = Number(process.argv[2] ?? 5)
const seconds = Number(process.argv[3] ?? 3)
const connections = Number(process.argv[4] ?? 32)
const isSlow = process.argv[5] === 'slow'
endAfter(180 + rounds * 2 * (seconds + 2))
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

/** Of a core, for each process, with `slow`. */
const SHARE = 1 / 3
/** What the compiler wants to see before it has made the most of it, of each process that serves. */
const WARM_UP_REQUESTS = 25_000

const load = requestLoad()
for (const [n, { port }] of subjects.entries()) {
  for (let done = 0; done < (n + 1) * WARM_UP_REQUESTS;) {
    done += (await closedLoop(port, load, connections, 2000)).units
  }
}
if (isSlow) {
  for (const { pid } of subjects) for (const each of family(pid as number)) keepToShare(each, SHARE)
}
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
  `${availableParallelism()} cores, ${connections} connections, ${rounds} rounds of ${seconds} s` +
  (isSlow ? ', each process kept to a third of a core' : ''))
printTable(
  ['', 'us CPU per request', 'of the busiest process', 'requests/s'],
  figures.map(({ name, all, busiest, rates }) => [
    name, spread(all), spread(busiest), median(rates).toFixed(0),
  ]),
)
const [one, two] = figures
const gains = (one?.rates ?? []).map((rate, round) => (two?.rates[round] ?? Number.NaN) / rate)
console.log(`\nrequests/s of two workers beside one process: ${spread(gains, 2)} x`)
for (const { stop } of [...subjects, upstream]) stop()
