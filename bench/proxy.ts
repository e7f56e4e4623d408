/**
 * CPU of the proxy's process per request and per streamed chunk: the upstream
 * itself (no proxy), nginx, haproxy, http-proxy-3 alone, Portkey's gateway and
 * this one, in turn, in one run. Absolute figures do not hold from one machine or
 * hour to the next; the ratios of one run do.
 *
 *   node bench/proxy.ts [rounds] [seconds]
 */
import { availableParallelism } from 'node:os'
import { endAfter, median, printTable, spread } from './lib/figures.ts'
import { closedLoop, requestLoad, streamLoad } from './lib/load.ts'
import type { Load } from './lib/load.ts'
import { nginxVersion, portkeyHeaders, startPeers } from './lib/peers.ts'
import { cpuSeconds, startGateway, startScript } from './lib/subjects.ts'
import type { Subject } from './lib/subjects.ts'

const rounds = Number(process.argv[2] ?? 3)
const seconds = Number(process.argv[3] ?? 3)
const CONNECTIONS = 32
const CHUNKS = 200

interface Figure {
  readonly micros: number
  readonly rate: number
  readonly perRead: number
}

async function measure({ port, pid }: Subject, load: Load): Promise<Figure> {
  await closedLoop(port, load, CONNECTIONS, 500)
  const cpu = pid === null ? 0 : cpuSeconds(pid)
  const began = performance.now()
  const { units, reads } = await closedLoop(port, load, CONNECTIONS, seconds * 1000)
  const used = pid === null ? Number.NaN : cpuSeconds(pid) - cpu
  return {
    micros: (used * 1e6) / units,
    rate: (units / (performance.now() - began)) * 1000,
    perRead: units / reads,
  }
}

/** Those that respond to the load; the others are named. */
async function those(all: readonly Subject[], load: Load): Promise<Subject[]> {
  const able: Subject[] = []
  for (const each of all) {
    try {
      await closedLoop(each.port, load, 1, 0)
      able.push(each)
    } catch (error) {
      console.log(`\nskipped: ${each.name}: ${String(error).split('\r\n', 1)[0]}`)
    }
  }
  return able
}

endAfter(60 + 2 * (rounds + 1) * 7 * (seconds + 3))
const upstream = await startScript('no proxy', 'upstream.ts')
const { peers, missing } = await startPeers(upstream.port)
const subjects: Subject[] = [{ ...upstream, pid: null }, ...peers, await startGateway(upstream.port)]
console.log([
  new Date().toISOString().slice(0, 10),
  `Node ${process.version}`,
  nginxVersion(),
  `${availableParallelism()} cores`,
  `${CONNECTIONS} connections`,
  `${rounds} rounds of ${seconds} s`,
  ...missing.map(name => `skipped, not installed: ${name}`),
].join(', '))
const headers = portkeyHeaders(upstream.port)
const loads = { request: requestLoad(headers), chunk: streamLoad(CHUNKS, headers) }
for (const kind of ['request', 'chunk'] as const) {
  const able = await those(subjects, loads[kind])
  const figures = new Map(able.map(({ name }) => [name, [] as Figure[]]))
  // Round 0 counts for nobody: a compiler that still warms up is not what a long-lived proxy costs.
  for (let round = 0; round <= rounds; round++) {
    for (const subject of able) {
      const figure = await measure(subject, loads[kind])
      if (round > 0) figures.get(subject.name)?.push(figure)
    }
  }
  const base = median((figures.get('nginx') ?? []).map(({ micros }) => micros))
  printTable(
    [`per ${kind}`, 'us CPU (min - max)', 'x nginx', `${kind}s/s`, `${kind}s/read`],
    [...figures].map(([name, runs]) => {
      const micros = runs.map(run => run.micros)
      const ratio = median(micros) / base
      return [
        name,
        spread(micros),
        Number.isNaN(ratio) ? '-' : ratio.toFixed(2),
        median(runs.map(run => run.rate)).toFixed(0),
        median(runs.map(run => run.perRead)).toFixed(2),
      ]
    }),
  )
}
for (const { stop } of subjects) stop()
