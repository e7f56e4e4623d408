/**
 * CPU of the proxy's process per request and per streamed chunk: the upstream
 * itself (no proxy), nginx, http-proxy-3 alone and this gateway, in turn, in one
 * run. Absolute figures do not hold from one machine or hour to the next; the
 * ratios of one run do.
 *
 *   node bench/proxy.ts [rounds] [seconds]
 */
import * as net from 'node:net'
import { availableParallelism } from 'node:os'
import { KEY, cpuSeconds, nginxVersion, startGateway, startNginx, startScript } from './lib/subjects.ts'
import type { Subject } from './lib/subjects.ts'

const rounds = Number(process.argv[2] ?? 3)
const seconds = Number(process.argv[3] ?? 3)
const CONNECTIONS = 32
const CHUNKS = 200

const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x'.repeat(840) }] })
const streamed = JSON.stringify({
  model: 'm', stream: true, stream_options: { include_usage: true }, messages: [],
})

interface Load {
  readonly bytes: Buffer
  /** What one answer counts for. */
  readonly units: number
  /** The last bytes of a whole answer. */
  readonly end: string
}

/** Requests, or chunks, that came back whole, and in how many pieces. */
interface Work {
  units: number
  reads: number
}

interface Figure {
  readonly micros: number
  readonly rate: number
  readonly perRead: number
}

/**
 * One connection that asks again as soon as it is answered, until the time is up.
 * Rejects on any answer but 200 and on an end before the answer: work that failed
 * is cheap, and would flatter the proxy that failed it.
 */
function drive(port: number, { bytes, units, end }: Load, until: number, work: Work): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = net.connect({ port, host: '127.0.0.1', noDelay: true })
    let tail = ''
    let isFirst = true
    socket.on('error', reject)
    socket.on('close', () => reject(new Error(`the connection ended before the answer did: ${tail}`)))
    socket.on('data', data => {
      const text = data.toString('latin1')
      if (isFirst && !text.startsWith('HTTP/1.1 200 ')) return reject(new Error(`unexpected answer: ${text}`))
      isFirst = false
      work.reads++
      tail = (tail + text).slice(-end.length)
      if (tail !== end) return
      work.units += units
      tail = ''
      isFirst = true
      if (performance.now() < until) {
        socket.write(bytes)
      } else {
        resolve()
        socket.end()
      }
    })
    socket.write(bytes)
  })
}

function requestBytes(text: string, headers = ''): Buffer {
  return Buffer.from(
    `POST /v1/chat/completions HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ${KEY}\r\n` +
      `Content-Type: application/json\r\n${headers}Content-Length: ${text.length}\r\n\r\n${text}`,
  )
}

const LOADS = {
  request: { bytes: requestBytes(body), units: 1, end: '}}' },
  chunk: { bytes: requestBytes(streamed, `X-Chunks: ${CHUNKS}\r\n`), units: CHUNKS, end: '0\r\n\r\n' },
}

async function measure({ port, pid }: Subject, kind: keyof typeof LOADS): Promise<Figure> {
  const run = async (time: number) => {
    const work = { units: 0, reads: 0 }
    const until = performance.now() + time
    await Promise.all(Array.from({ length: CONNECTIONS }, () => drive(port, LOADS[kind], until, work)))
    return work
  }
  await run(500)
  const cpu = pid === null ? 0 : cpuSeconds(pid)
  const began = performance.now()
  const { units, reads } = await run(seconds * 1000)
  const used = pid === null ? 0 : cpuSeconds(pid) - cpu
  return {
    micros: (used * 1e6) / units,
    rate: (units / (performance.now() - began)) * 1000,
    perRead: units / reads,
  }
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN
}

/** Prints a line for each subject; the last column tells whether chunks travelled one by one. */
function print(kind: keyof typeof LOADS, figures: ReadonlyMap<string, readonly Figure[]>): void {
  const base = median((figures.get('nginx') ?? []).map(({ micros }) => micros))
  const columns = ['us CPU (min - max)', 'x nginx', `${kind}s/s`, `${kind}s/read`]
  const widths = [26, 9, 11, 14]
  const line = (name: string, cells: string[]) =>
    console.log(name.padEnd(22) + cells.map((cell, i) => cell.padStart(widths[i] ?? 0)).join(''))
  console.log()
  line(`per ${kind}`, columns)
  for (const [name, runs] of figures) {
    const micros = runs.map(run => run.micros)
    const middle = median(micros)
    line(name, [
      middle === 0
        ? '-'
        : `${middle.toFixed(1)} (${Math.min(...micros).toFixed(1)} - ${Math.max(...micros).toFixed(1)})`,
      middle === 0 || Number.isNaN(base) ? '-' : (middle / base).toFixed(2),
      median(runs.map(run => run.rate)).toFixed(0),
      median(runs.map(run => run.perRead)).toFixed(2),
    ])
  }
}

const LIMIT_SECONDS = 30 + 2 * (rounds + 1) * 4 * (seconds + 3)
setTimeout(() => {
  console.error(`not done after ${LIMIT_SECONDS} s`)
  process.exit(1)
}, LIMIT_SECONDS * 1000).unref()

const upstream = await startScript('no proxy', 'upstream.ts')
const nginx = await startNginx(upstream.port)
const subjects: Subject[] = [
  { ...upstream, pid: null },
  ...nginx ? [nginx] : [],
  await startScript('http-proxy-3 alone', 'bare-proxy.ts', String(upstream.port)),
  await startGateway(upstream.port),
]
console.log([
  new Date().toISOString().slice(0, 10),
  `Node ${process.version}`,
  nginx === null ? 'nginx is not installed: skipped' : nginxVersion(),
  `${availableParallelism()} cores`,
  `${CONNECTIONS} connections`,
  `${rounds} rounds of ${seconds} s`,
].join(', '))
for (const kind of ['request', 'chunk'] as const) {
  const figures = new Map(subjects.map(({ name }) => [name, [] as Figure[]]))
  // Round 0 counts for nobody: a compiler that still warms up is not what a long-lived proxy costs.
  for (let round = 0; round <= rounds; round++) {
    for (const subject of subjects) {
      const figure = await measure(subject, kind)
      if (round > 0) figures.get(subject.name)?.push(figure)
    }
  }
  print(kind, figures)
}
for (const { stop } of subjects) stop()
