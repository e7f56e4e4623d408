/**
 * Memory of the gateway: idle, after a load, and when it has rested since; and what the rest costs the requests after
 * it, compared with those before, because compiled code might be lost.
 *
 *   node bench/rest.ts [processes] [seconds] [flags of node ...]
 */
import { endAfter, printHeading, printTable, spread } from './lib/figures.ts'
import { countedLoop, requestLoad } from './lib/load.ts'
import { cpuPerUnit, memory, pause, startGateway, startScript } from './lib/subjects.ts'

const processes = Number(process.argv[2] ?? 2)
const seconds = Number(process.argv[3] ?? 120)
const nodeArgs = process.argv.slice(4)
const CONNECTIONS = 32
const LOAD = 50_000
const COUNTED = 5_000
const IDLE_MS = 7_000

endAfter(processes * (seconds + 180))
process.setMaxListeners(20 + 2 * processes)
const upstream = await startScript('upstream', 'upstream.ts')
const megabytes = { idle: [] as number[], loaded: [] as number[], rested: [] as number[] }
const micros = { before: [] as number[], after: [] as number[] }
for (let i = 0; i < processes; i++) {
  const { port, pid, stop } = await startGateway(upstream.port, { nodeArgs })
  const size = () => memory(pid as number, 'VmRSS')
  const send = (count: number) => cpuPerUnit(pid, () => countedLoop(port, requestLoad(), CONNECTIONS, count))
  await send(1)
  await pause(IDLE_MS)
  megabytes.idle.push(size())
  await send(LOAD)
  micros.before.push(await send(COUNTED))
  megabytes.loaded.push(size())
  await pause(seconds * 1000)
  megabytes.rested.push(size())
  micros.after.push(await send(COUNTED))
  stop()
}
upstream.stop()
printHeading(`${processes} processes`,
  `${LOAD + COUNTED} requests on ${CONNECTIONS} connections, then ${seconds} s of rest`)
printTable(
  ['MB idle', 'loaded', 'rested', `us CPU per request, ${COUNTED} before`, 'after'],
  [[
    spread(megabytes.idle, 0), spread(megabytes.loaded, 0), spread(megabytes.rested, 0),
    spread(micros.before, 0), spread(micros.after, 0),
  ]],
)
