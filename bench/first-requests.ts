/**
 * CPU of the gateway per request, from the first request of a process on: all threads, among them those in
 * which V8 compiles. Each process is new; its flags of node stand behind the first argument.
 *
 *   node bench/first-requests.ts [processes] [flags of node ...]
 */
import { endAfter, median, printHeading, printTable, spread } from './lib/figures.ts'
import { countedLoop, requestLoad } from './lib/load.ts'
import { cpuSeconds, memory, startGateway, startScript } from './lib/subjects.ts'

const processes = Number(process.argv[2] ?? 5)
const nodeArgs = process.argv.slice(3)
const CONNECTIONS = 32
/** The last request of each part. */
const PARTS = [1_000, 5_000, 20_000, 50_000, 80_000]

endAfter(60 + processes * 120)
process.setMaxListeners(20 + 2 * processes)
const upstream = await startScript('upstream', 'upstream.ts')
const figures = PARTS.map(() => [] as number[])
const ratios: number[] = []
const sizes: number[] = []
for (let i = 0; i < processes; i++) {
  const { port, pid, stop } = await startGateway(upstream.port, { nodeArgs })
  const used = [cpuSeconds(pid as number)]
  for (const [part, last] of PARTS.entries()) {
    const count = last - (PARTS[part - 1] ?? 0)
    await countedLoop(port, requestLoad(), CONNECTIONS, count)
    used.push(cpuSeconds(pid as number))
    figures[part]?.push((((used[part + 1] as number) - (used[part] as number)) * 1e6) / count)
  }
  const first = (((used[2] as number) - (used[0] as number)) * 1e6) / (PARTS[1] as number)
  ratios.push(first / (figures.at(-1)?.at(-1) as number))
  sizes.push(memory(pid as number, 'VmRSS'))
  stop()
}
upstream.stop()
printHeading(`${processes} processes`, `${CONNECTIONS} connections`)
printTable(
  ['requests', 'us CPU per request'],
  PARTS.map((last, part) => [`${(PARTS[part - 1] ?? 0) + 1} to ${last}`, spread(figures[part] ?? [])]),
)
console.log(`\nthe first ${PARTS[1]} take ${spread(ratios, 2)} x the last (target 1.5); ${spread(sizes, 0)} MB`)
process.exitCode = median(ratios) > 1.5 ? 1 : 0
