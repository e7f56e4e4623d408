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
import { KEY, cpuSeconds, startGateway, startNginx, startScript } from './lib/subjects.ts'
import type { Subject } from './lib/subjects.ts'

const rounds = Number(process.argv[2] ?? 3)
const seconds = Number(process.argv[3] ?? 3)
const CONNECTIONS = 32
const CHUNKS = 200

const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x'.repeat(840) }] })
const streamed = JSON.stringify({ model: 'm', stream: true, stream_options: { include_usage: true }, messages: [] })

/** Requests, or chunks, that came back whole. */
interface Work {
  units: number
}

/** One connection that asks again as soon as it is answered, until the time is up. */
function drive(port: number, request: Buffer, endOf: (tail: string) => boolean, units: number, until: number, work: Work) {
  return new Promise<void>((resolve, reject) => {
    const socket = net.connect({ port, host: '127.0.0.1', noDelay: true })
    let tail = ''
    let received = 0
    socket.on('error', reject)
    socket.on('data', data => {
      received += data.length
      tail = (tail + data.toString('latin1')).slice(-4096)
      if (!endOf(tail)) return
      if (received < 300) return reject(new Error(`unexpected answer: ${tail}`))
      work.units += units
      tail = ''
      received = 0
      if (performance.now() < until) socket.write(request)
      else socket.end(resolve)
    })
    socket.write(request)
  })
}

function requestBytes(text: string, headers = ''): Buffer {
  return Buffer.from(
    `POST /v1/chat/completions HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ${KEY}\r\n` +
      `Content-Type: application/json\r\n${headers}Content-Length: ${text.length}\r\n\r\n${text}`,
  )
}

const LOADS = {
  request: { bytes: requestBytes(body), units: 1, endOf: (tail: string) => tail.endsWith('}}') },
  chunk: { bytes: requestBytes(streamed, `X-Chunks: ${CHUNKS}\r\n`), units: CHUNKS, endOf: (tail: string) => tail.endsWith('0\r\n\r\n') },
}

async function measure(subject: Subject, kind: keyof typeof LOADS): Promise<{ micros: number; rate: number }> {
  const { bytes, units, endOf } = LOADS[kind]
  const run = async (time: number) => {
    const work = { units: 0 }
    const until = performance.now() + time
    await Promise.all(Array.from({ length: CONNECTIONS }, () => drive(subject.port, bytes, endOf, units, until, work)))
    return work.units
  }
  await run(500)
  const cpu = subject.pid === null ? 0 : cpuSeconds(subject.pid)
  const began = performance.now()
  const done = await run(seconds * 1000)
  const used = subject.pid === null ? 0 : cpuSeconds(subject.pid) - cpu
  return { micros: (used * 1e6) / done, rate: (done / (performance.now() - began)) * 1000 }
}

const upstream = await startScript('no proxy', 'upstream.ts')
const nginx = await startNginx(upstream.port)
const subjects: Subject[] = [
  { ...upstream, pid: null },
  ...nginx ? [nginx] : [],
  await startScript('http-proxy-3 alone', 'bare-proxy.ts', String(upstream.port)),
  await startGateway(upstream.port),
]
console.log(`${new Date().toISOString().slice(0, 10)}, Node ${process.version}, ${availableParallelism()} cores, ` +
  `${CONNECTIONS} connections, ${rounds} rounds of ${seconds} s${nginx ? '' : ', nginx is not installed: skipped'}`)
for (const kind of ['request', 'chunk'] as const) {
  const figures = new Map(subjects.map(({ name }) => [name, [] as { micros: number; rate: number }[]]))
  for (let round = 0; round < rounds; round++) {
    for (const subject of subjects) figures.get(subject.name)?.push(await measure(subject, kind))
  }
  const median = (values: number[]) => values.toSorted((a, b) => a - b)[values.length >> 1] as number
  const base = nginx ? median(figures.get('nginx')?.map(({ micros }) => micros) ?? []) : null
  console.log(`\nper ${kind}`.padEnd(22), 'us CPU (min - max)'.padStart(26), 'x nginx'.padStart(9), `${kind}s/s`.padStart(11))
  for (const [name, runs] of figures) {
    const micros = runs.map(run => run.micros)
    const middle = median(micros)
    const cpu = middle === 0 ? '-' : `${middle.toFixed(1)} (${Math.min(...micros).toFixed(1)} - ${Math.max(...micros).toFixed(1)})`
    const ratio = base === null || middle === 0 ? '-' : (middle / base).toFixed(2)
    console.log(name.padEnd(22), cpu.padStart(25), ratio.padStart(9), median(runs.map(run => run.rate)).toFixed(0).padStart(11))
  }
}
for (const { stop } of [...subjects, upstream]) stop()
