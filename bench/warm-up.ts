/**
 * CPU of the first requests of a process under sets of node's flags, in turn: the gateway as it is, then each set.
 *
 *   node bench/warm-up.ts ROUNDS [FLAGS ...]     flags of a set are separated by commas
 *
 *   node bench/warm-up.ts 5 --always-sparkplug --invocation-count-for-maglev=200,--no-lazy-feedback-allocation
 */
import { endAfter, printHeading, printTable, spread } from './lib/figures.ts'
import { countedLoop, requestLoad } from './lib/load.ts'
import { cpuSeconds, memory, startGateway, startScript } from './lib/subjects.ts'

const rounds = Number(process.argv[2] ?? 5)
const sets = ['', ...process.argv.slice(3)]
const CONNECTIONS = 32
const FIRST = 5_000
const LAST = 20_000

endAfter(60 + rounds * sets.length * 40)
process.setMaxListeners(20 + 2 * rounds * sets.length)
const upstream = await startScript('upstream', 'upstream.ts')
const figures = sets.map(() => ({ start: [] as number[], first: [] as number[], ratio: [] as number[], later: [] as number[], size: [] as number[] }))
for (let round = 0; round < rounds; round++) {
  for (const [at, set] of sets.entries()) {
    const { port, pid, stop } = await startGateway(upstream.port, { nodeArgs: set === '' ? [] : set.split(',') })
    const started = cpuSeconds(pid as number)
    await countedLoop(port, requestLoad(), CONNECTIONS, FIRST)
    const first = cpuSeconds(pid as number)
    await countedLoop(port, requestLoad(), CONNECTIONS, LAST - FIRST)
    const later = cpuSeconds(pid as number)
    const figure = figures[at] as typeof figures[number]
    figure.start.push(started * 1e3)
    figure.first.push(((first - started) * 1e6) / FIRST)
    figure.ratio.push((first - started) * 1e6 / FIRST / (figures[0]?.first[round] as number))
    figure.later.push(((later - first) * 1e6) / (LAST - FIRST))
    figure.size.push(memory(pid as number, 'VmRSS'))
    stop()
  }
}
upstream.stop()
printHeading(`${rounds} rounds`, `${CONNECTIONS} connections`)
printTable(
  ['flags', 'ms CPU to start', `us CPU of the first ${FIRST}`, 'of the same round', `us CPU up to ${LAST}`, 'MB'],
  sets.map((set, at) => {
    const { start, first, ratio, later, size } = figures[at] as typeof figures[number]
    return [set === '' ? 'as it is' : set, spread(start, 0), spread(first, 0), `${spread(ratio, 2)} x`, spread(later, 0), spread(size, 0)]
  }),
)
