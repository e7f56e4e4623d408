/**
 * Streams whose upstream sends as fast as it can, with clients that read and with clients that do not: memory before,
 * meanwhile and after the clients have left, and how long other requests take, each on a connection of its own to an
 * upstream of its own.
 *
 *   node bench/full-speed.ts [streams] [seconds]
 */
import { request } from 'node:http'
import { availableParallelism } from 'node:os'
import { endAfter, printHeading, printTable, quantile } from './lib/figures.ts'
import { closedLoop, requestLoad } from './lib/load.ts'
import { KEY } from './lib/gateway-yaml.ts'
import { memory, pause, startGateway, startScript } from './lib/subjects.ts'

const streams = Number(process.argv[2] ?? 500)
const seconds = Number(process.argv[3] ?? 8)
/** Milliseconds between two of the other requests. */
const EVERY_MS = 50
/** Milliseconds after the clients have left: the thread that counts tokens ends when it had nothing to do for a minute. */
const MEMORY_AFTER = 100_000
/** Milliseconds after which the streams count as not ended. */
const MAX_WAIT = 60_000
const TARGET_P99 = 250

interface Figures {
  readonly before: number
  readonly most: number
  readonly after: number
  readonly endedMs: number
  readonly waits: readonly number[]
}

async function measure(behaviour: 'reads' | 'stalls'): Promise<Figures> {
  const upstream = await startScript('upstream', 'upstream.ts')
  const others = await startScript('upstream', 'upstream.ts')
  const gateway = await startGateway(others.port, {
    upstreams: `  full: { url: "http://127.0.0.1:${upstream.port}" }`,
    routes: '  - { path: /v1/*, model: m, to: up }\n  - { path: /v1/*, model: full, to: [{ upstream: full, model: m }] }',
  })
  const pid = gateway.pid as number
  await closedLoop(gateway.port, requestLoad(), 16, 3_000)
  await pause(1_000)
  const before = memory(pid, 'VmRSS')
  const starting = startScript('clients', 'stream-clients.ts', String(gateway.port), String(streams), behaviour)
  const waits: number[] = []
  const running: Promise<void>[] = []
  let most = before
  const begin = performance.now()
  for (let n = 0; n * EVERY_MS < seconds * 1_000; n++) {
    const dueAt = begin + n * EVERY_MS
    await pause(Math.max(0, dueAt - performance.now()))
    running.push(requestOnce(gateway.port).then(() => void waits.push(performance.now() - dueAt)))
    most = Math.max(most, memory(pid, 'VmRSS'))
  }
  const clients = await starting
  await Promise.all(running)
  const leftAt = performance.now()
  clients.stop()
  while (await runningStreams(gateway.port) > 0 && performance.now() - leftAt < MAX_WAIT) await pause(50)
  const endedMs = performance.now() - leftAt
  await pause(MEMORY_AFTER)
  const after = memory(pid, 'VmRSS')
  gateway.stop()
  upstream.stop()
  others.stop()
  return { before, most, after, endedMs, waits }
}

/** A short request on a connection of its own. Settles when its response is whole. */
function requestOnce(port: number): Promise<void> {
  return closedLoop(port, requestLoad(), 1, 0).then(() => undefined)
}

function runningStreams(port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${KEY}` }
    request({ host: '127.0.0.1', port, path: '/api/status', headers, agent: false }, res => {
      let text = ''
      res.on('data', piece => (text += String(piece)))
      res.on('end', () => resolve((JSON.parse(text) as { running: number }).running))
    }).on('error', reject).end()
  })
}

endAfter(2 * (seconds + 180))
const rows: string[][] = []
for (const behaviour of ['reads', 'stalls'] as const) {
  const { before, most, after, endedMs, waits } = await measure(behaviour)
  const p99 = quantile(waits, 0.99)
  if (p99 > TARGET_P99) process.exitCode = 1
  rows.push([
    `client ${behaviour}`, before.toFixed(0), most.toFixed(0), (((most - before) * 1024) / streams).toFixed(0),
    after.toFixed(0), endedMs.toFixed(0), quantile(waits, 0.5).toFixed(1), p99.toFixed(0), Math.max(...waits).toFixed(0),
  ])
}
printHeading(`${availableParallelism()} cores`,
  `${streams} streams at full speed for ${seconds} s`, `another request each ${EVERY_MS} ms`)
printTable(
  ['', 'MB before', 'most', 'kB/stream', `${MEMORY_AFTER / 1_000} s after`, 'all ended, ms', 'others p50, ms', 'p99', 'worst'], rows,
)
