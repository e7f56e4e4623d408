/**
 * What a proxy costs: nginx, haproxy, http-proxy-3 alone, other gateways and this one, in turn, in one run. CPU of the
 * process per request at full speed and at a rate that is the same for all, and per streamed chunk; the time to the first
 * byte of a request alone, and memory. Absolute figures do not hold from one machine or hour to the next; the ratios of
 * one run do. A slow proxy at full speed also pays for waking idle neighbours, so compare at the same rate too.
 *
 *   node bench/peers.ts [rounds] [seconds] [--rate requests/s] [--only name,name] [--markdown]
 *
 * With `--only`, names need only begin as given. With `--markdown`, the tables replace those in bench/README.md.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism, loadavg } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { table } from '../docs/generate/markdown.ts'
import { endAfter, heading, median, printTable, quantile, spread } from './lib/figures.ts'
import { closedLoop, requestLoad, streamLoad, timesAlone } from './lib/load.ts'
import type { Load } from './lib/load.ts'
import { firstByteTimes } from './lib/open-loop.ts'
import { BARE, BUSBAR, HTTP_PROXY, nginxVersion, portkeyHeaders, startPeers } from './lib/peers.ts'
import { cpuSeconds, memory, pause, startGateway, startScript } from './lib/subjects.ts'
import type { Subject } from './lib/subjects.ts'

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    only: { type: 'string', default: '' }, rate: { type: 'string', default: '2300' }, markdown: { type: 'boolean', default: false },
  },
})
const rounds = Number(positionals[0] ?? 5)
const seconds = Number(positionals[1] ?? 3)
const pace = Number(options.rate)
const wanted = options.only.split(',')
const isWanted = (name: string) => wanted.some(start => name.startsWith(start))
const CONNECTIONS = 32
const CHUNKS = 200
/** What the compiler wants to see before it has made the most of it; a slow proxy gets the time instead. */
const WARM_UP_REQUESTS = 80_000
const WARM_UP_MS = 60_000
const IDLE_MS = 7_000

/** What CPU is measured of, and at most how much of each other row this gateway may take. */
const TARGETS = {
  request: { title: 'per request, at full speed', [BUSBAR]: 1, [BARE]: 2.2, [HTTP_PROXY]: 0.85 },
  paced: { title: `per request, at ${pace} requests/s`, [BUSBAR]: 1, [BARE]: 2.2, [HTTP_PROXY]: 0.85 },
  chunk: { title: 'per chunk', [BUSBAR]: null, [BARE]: 1, [HTTP_PROXY]: null },
} as const

/** Of each round, a value; of memory, one value. */
interface Figures {
  readonly subject: Subject
  idle: number
  loaded: number
  readonly request: number[]
  readonly paced: number[]
  readonly chunk: number[]
  readonly rate: number[]
  readonly chunksPerRead: number[]
  readonly alone: number[]
  /** Why it has no figures for streams. */
  noStreams: string | null
}

/** The same load again and again, with the CPU that it took. */
async function measure({ port, pid }: Subject, load: Load): Promise<{ micros: number, rate: number, perRead: number }> {
  await closedLoop(port, load, CONNECTIONS, 500)
  const cpu = pid === null ? 0 : cpuSeconds(pid)
  const began = performance.now()
  const { units, reads } = await closedLoop(port, load, CONNECTIONS, seconds * 1000)
  return {
    micros: pid === null ? Number.NaN : ((cpuSeconds(pid) - cpu) * 1e6) / units,
    rate: (units / (performance.now() - began)) * 1000,
    perRead: units / reads,
  }
}

/** The same number of requests each second, whatever the proxy could do. @returns us of CPU; NaN = it cannot do so many */
async function measurePaced({ subject: { port, pid }, rate }: Figures, load: Load): Promise<number> {
  if (pid === null || median(rate) < pace * 1.1) return Number.NaN
  await firstByteTimes(port, load, pace, 0.5, 0)
  const cpu = cpuSeconds(pid)
  const times = await firstByteTimes(port, load, pace, seconds, 0)
  return ((cpuSeconds(pid) - cpu) * 1e6) / times.length
}

/** @returns why it does not respond to the load; null = it does */
async function failure({ port }: Subject, load: Load): Promise<string | null> {
  try {
    await closedLoop(port, load, 1, 0)
    return null
  } catch (error) {
    return String(error).split('\r\n', 1)[0] as string
  }
}

async function warmUp({ port }: Subject, load: Load): Promise<void> {
  const until = performance.now() + WARM_UP_MS
  for (let sent = 0; sent < WARM_UP_REQUESTS && performance.now() < until;) {
    sent += (await closedLoop(port, load, CONNECTIONS, 1_000)).units
  }
}

const megabytes = ({ pid }: Subject) => (pid === null ? Number.NaN : memory(pid, 'VmRSS'))

const busy = (loadavg()[0] as number).toFixed(1)
// Each peer leaves some.
process.setMaxListeners(50)
// A peer that hangs, and one that takes its time to warm up.
endAfter(300 + 12 * (60 + rounds * 4 * (seconds + 3)))
const upstream = await startScript('no proxy', 'upstream.ts')
const { peers, missing } = await startPeers(upstream.port, isWanted)
const gateway = await startGateway(upstream.port, { extra: 'telemetry: { prometheus: { listen: 127.0.0.1:0 } }' })
const all = [{ ...upstream, pid: null }, ...peers, gateway]
const headers = portkeyHeaders(upstream.port)
const [request, stream] = [requestLoad(headers), streamLoad(CHUNKS, headers)]
const notes = missing.map(text => `Skipped: ${text}.`)
const figures: Figures[] = []
for (const subject of all.filter(({ name }) => isWanted(name))) {
  const reason = await failure(subject, request)
  if (reason !== null) {
    notes.push(`Skipped: ${subject.name}: ${reason}.`)
    continue
  }
  const noStreams = await failure(subject, stream)
  if (noStreams !== null) notes.push(`No streams: ${subject.name}: ${noStreams}.`)
  figures.push({ subject, noStreams, idle: 0, loaded: 0, request: [], paced: [], chunk: [], rate: [], chunksPerRead: [], alone: [] })
}
await pause(IDLE_MS)
for (const each of figures) each.idle = megabytes(each.subject)
for (const { subject } of figures) await warmUp(subject, request)
for (let round = 0; round < rounds; round++) {
  for (const { subject, request: micros, rate } of figures) {
    const figure = await measure(subject, request)
    micros.push(figure.micros)
    rate.push(figure.rate)
  }
}
for (let round = 0; round < rounds; round++) {
  for (const each of figures) each.paced.push(await measurePaced(each, request))
}
for (const each of figures) each.loaded = megabytes(each.subject)
for (let round = 0; round < rounds; round++) {
  for (const { subject, alone } of figures) {
    alone.push(quantile(await timesAlone(subject.port, request, seconds * 1000), 0.5))
  }
}
// The first round of streams counts for nobody, because V8 still compiles.
for (let round = 0; round <= rounds; round++) {
  for (const { subject, noStreams, chunk, chunksPerRead } of figures) {
    if (noStreams !== null) continue
    const figure = await measure(subject, stream)
    if (round === 0) continue
    chunk.push(figure.micros)
    chunksPerRead.push(figure.perRead)
  }
}

const nginx = figures.find(({ subject }) => subject.name === 'nginx')
const ratio = (values: readonly number[], base: readonly number[] | undefined) => {
  const times = median(values) / median(base ?? [])
  return Number.isNaN(times) ? '-' : times.toFixed(2)
}
const size = (value: number) => (Number.isNaN(value) ? '-' : value.toFixed(0))
const titles = [
  'Proxy', 'µs CPU per request', 'x nginx', 'Requests/s', `at ${pace}/s`, 'µs CPU per chunk', 'x nginx', 'Chunks per read',
  'Alone, p50 ms', 'MB idle / loaded',
]
const rows = figures.map(({ subject, idle, loaded, request: micros, rate, paced, chunk, chunksPerRead, alone }) => [
  subject.name, spread(micros), ratio(micros, nginx?.request), median(rate).toFixed(0), spread(paced),
  spread(chunk), ratio(chunk, nginx?.chunk), chunk.length === 0 ? '-' : median(chunksPerRead).toFixed(1),
  spread(alone, 2), `${size(idle)} / ${size(loaded)}`,
])
const ours = figures.find(({ subject }) => subject.name === gateway.name)
const targets = ([BUSBAR, BARE, HTTP_PROXY] as const).flatMap(name => {
  const theirs = figures.find(({ subject }) => subject.name === name)
  if (ours === undefined || theirs === undefined) return []
  return (['request', 'paced', 'chunk'] as const).map(what => {
    // Those of one round were measured right after each other.
    const ratios = ours[what].map((value, round) => value / (theirs[what][round] ?? Number.NaN)).filter(value => !Number.isNaN(value))
    const target = TARGETS[what][name]
    const verdict = target === null || ratios.length === 0 ? '-' : median(ratios) <= target ? 'met' : 'missed'
    return [`${name}, ${TARGETS[what].title}`, spread(ratios, 2), target === null ? '-' : String(target), verdict]
  })
})
const targetTitles = ['This gateway, compared with', 'x', 'Target', '']
const about = heading(
  nginxVersion(), `${availableParallelism()} cores`,
  `${CONNECTIONS} connections`, `${rounds} rounds of ${seconds} s`, `load of the machine at the start ${busy}`,
)
console.log([about, ...notes].join('\n'))
printTable(titles, rows)
printTable(targetTitles, targets)
if (options.markdown) {
  const command = `\`node bench/peers.ts ${rounds} ${seconds} --rate ${pace}\``
  writeSection([`${command}: ${about}.`, table(titles, rows), table(targetTitles, targets), ...notes])
}
for (const { stop } of all) stop()

/** Replaces what stands between the two marks in the README. */
function writeSection(paragraphs: readonly string[]): void {
  const file = join(import.meta.dirname, 'README.md')
  const text = readFileSync(file, 'utf8')
  const section = /(?<=<!-- peers -->\n).*(?=<!-- peers end -->)/s
  if (!section.test(text)) throw new Error(`${file} has no <!-- peers --> and <!-- peers end -->`)
  writeFileSync(file, text.replace(section, () => `\n${paragraphs.join('\n\n')}\n\n`))
}
