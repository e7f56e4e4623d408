/**
 * CPU per request with one route and with a thousand, the last of which matches.
 * The two take turns, in short rounds and in changing order; each round is a pair,
 * and what counts is how the two of a pair differ.
 *
 *   node bench/routes.ts [rounds] [seconds]
 */
import { endAfter, excess, percent, printTable, spread } from './lib/figures.ts'
import { closedLoop, requestLoad } from './lib/load.ts'
import { cpuSeconds, startGateway, startScript } from './lib/subjects.ts'

const rounds = Number(process.argv[2] ?? 40)
const seconds = Number(process.argv[3] ?? 1)
endAfter(90 + rounds * 2 * (seconds + 2))
const upstream = await startScript('upstream', 'upstream.ts')
const route = (model: string) => `  - { path: /v1/*, model: ${model}, to: up }`
const many = Array.from(
  { length: 999 }, (_, i) => route(i % 2 === 0 ? `"vendor-${i}-*"` : `[model-${i}, other-${i}]`),
)
const subjects = [
  await startGateway(upstream.port, { name: 'one route' }),
  await startGateway(upstream.port, { name: 'a thousand', routes: [...many, route('"*"')].join('\n') }),
]
const figures = new Map(subjects.map(({ name }) => [name, [] as number[]]))
// The compiler warms up.
for (const { port } of subjects) await closedLoop(port, requestLoad(), 32, 4_000)
for (let round = 0; round < rounds; round++) {
  for (const { name, port, pid } of round % 2 === 0 ? subjects : subjects.toReversed()) {
    const before = cpuSeconds(pid as number)
    const { units } = await closedLoop(port, requestLoad(), 32, seconds * 1000)
    figures.get(name)?.push(((cpuSeconds(pid as number) - before) * 1e6) / units)
  }
}
console.log(
  `${new Date().toISOString().slice(0, 10)}, Node ${process.version}, ${rounds} rounds of ${seconds} s`,
)
printTable(['routes', 'us CPU per request'], [...figures].map(([name, values]) => [name, spread(values)]))
const [one = [], thousand = []] = figures.values()
console.log(`\na thousand routes take ${percent(excess(one, thousand))} more, with 95 % certainty`)
for (const { stop } of [...subjects, upstream]) stop()
