/**
 * CPU per request with one route and with a thousand, the last of which matches.
 *
 *   node bench/routes.ts [rounds] [seconds]
 */
import { endAfter } from './lib/figures.ts'
import { printCpuExcess } from './lib/paired-rounds.ts'
import { startGateway, startScript } from './lib/subjects.ts'

const rounds = Number(process.argv[2] ?? 40)
const seconds = Number(process.argv[3] ?? 1)
endAfter(90 + rounds * 2 * (seconds + 2))
const upstream = await startScript('upstream', 'upstream.ts')
const route = (model: string) => `  - { path: /v1/*, model: ${model}, to: up }`
const many = Array.from(
  { length: 999 }, (_, i) => route(i % 2 === 0 ? `"vendor-${i}-*"` : `[model-${i}, other-${i}]`),
)
const one = await startGateway(upstream.port, { name: 'one route' })
const thousand = await startGateway(upstream.port, {
  name: 'a thousand routes', routes: [...many, route('"*"')].join('\n'),
})
await printCpuExcess([one, thousand], rounds, seconds)
for (const { stop } of [one, thousand, upstream]) stop()
