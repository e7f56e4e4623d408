/**
 * How long a request may have to wait while a configuration with thousands of
 * keys and routes is read again: in an open loop, so that none is left out that
 * would have begun meanwhile.
 *
 *   node bench/large-reload.ts [keys] [routes] [workers] [reloads]
 */
import { readFileSync } from 'node:fs'
import { endAfter, printHeading, spread } from './lib/figures.ts'
import { closedLoop, requestLoad } from './lib/load.ts'
import { firstByteTimes } from './lib/open-loop.ts'
import { pause, startGateway, startScript } from './lib/subjects.ts'

const [keys = 10_000, routes = 5_000, workers = 1, reloads = 5] = process.argv.slice(2).map(Number)
const RATE = 200
const SECONDS = 6

endAfter(60 + reloads * 30)
const upstream = await startScript('upstream', 'upstream.ts')
const gateway = await startGateway(upstream.port, {
  server: `workers: ${workers}`,
  routes: [
    ...Array.from({ length: routes }, (_, i) => `  - { path: /v1/*, model: model-${i}, to: up }`),
    '  - { path: /v1/*, model: "*", to: up }',
  ].join('\n'),
  keys: Array.from({ length: keys }, (_, i) =>
    `  - { name: k${i}, key: sk-large-${String(i).padStart(16, '0')}, limits: { requests_per_minute: 600 } }`,
  ).join('\n'),
})
const load = requestLoad()
await closedLoop(gateway.port, load, 8, 3000)

/** The longest wait for a first byte, in ms; a reload begins after the first second, where there is one. */
async function round(reloading: boolean): Promise<number> {
  const before = reloaded()
  const times = firstByteTimes(gateway.port, load, RATE, SECONDS)
  if (reloading) {
    await pause(1000)
    process.kill(gateway.pid ?? 0, 'SIGHUP')
  }
  const all = await times
  if (reloading) while (reloaded() < before + workers) await pause(50)
  return Math.max(...all)
}

function reloaded(): number {
  return readFileSync(gateway.log, 'utf8').split('"configuration reloaded"').length - 1
}

const rounds = { without: [] as number[], with: [] as number[] }
for (let i = 0; i < reloads; i++) {
  rounds.without.push(await round(false))
  rounds.with.push(await round(true))
}
printHeading(`${keys} keys`, `${routes} routes`, `workers: ${workers}`, `${RATE} requests/s`)
console.log(`longest wait for a first byte in ${SECONDS} s: ${spread(rounds.without)} ms without a reload, ` +
  `${spread(rounds.with)} ms with one`)
for (const { stop } of [gateway, upstream]) stop()
