/**
 * CPU per request with one route and with a thousand, the last of which matches.
 *
 *   node bench/routes.ts [rounds] [seconds]
 */
import { endAfter, printTable, spread } from './lib/figures.ts'
import { closedLoop, requestLoad } from './lib/load.ts'
import { cpuSeconds, startGateway, startScript } from './lib/subjects.ts'

const rounds = Number(process.argv[2] ?? 5)
const seconds = Number(process.argv[3] ?? 2)
endAfter(60 + (rounds + 1) * 2 * (seconds + 2))
const upstream = await startScript('upstream', 'upstream.ts')
const route = (model: string) => `  - { path: /v1/*, model: ${model}, to: up }`
const many = Array.from({ length: 999 }, (_, i) => route(i % 2 === 0 ? `"vendor-${i}-*"` : `[model-${i}, other-${i}]`))
const subjects = [
  await startGateway(upstream.port, { name: 'one route' }),
  await startGateway(upstream.port, { name: 'a thousand', routes: [...many, route('"*"')].join('\n') }),
]
const figures = new Map(subjects.map(({ name }) => [name, [] as number[]]))
for (let round = 0; round <= rounds; round++) {
  for (const { name, port, pid } of subjects) {
    const before = cpuSeconds(pid as number)
    const { units } = await closedLoop(port, requestLoad(), 32, seconds * 1000)
    if (round > 0) figures.get(name)?.push(((cpuSeconds(pid as number) - before) * 1e6) / units)
  }
}
console.log(`${new Date().toISOString().slice(0, 10)}, Node ${process.version}, ${rounds} rounds of ${seconds} s`)
printTable(['routes', 'us CPU per request'], [...figures].map(([name, values]) => [name, spread(values)]))
for (const { stop } of [...subjects, upstream]) stop()
