import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import * as http from 'node:http'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { DatabaseSync } from 'node:sqlite'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { printHeading } from './lib/figures.ts'
import { freePort, memory, pause, stopAtExit, temporaryDirectory } from './lib/subjects.ts'

/**
 * Claim: whatever upstreams do, and however often the gateway is reloaded or
 * killed, each request ends in a whole response or a clear error, the ledger has
 * each that was answered exactly once, and memory does not grow.
 *
 *   node bench/soak.ts [minutes] [clients]
 */

const minutes = Number(process.argv[2] ?? 60)
const clients = Number(process.argv[3] ?? 16)
const RELOAD_EVERY = 5_000
const KILL_EVERY = 30_000
const KEY = 'sk-soak-0123456789abcdef'
const WORDS = 16
/** Milliseconds, generously, that a row waits for its batch to be written. */
const BATCH = 250
const FAULTS = [
  '', '', '', ',status=503,every=2', ',status=429,retry_after_ms=20,every=2',
  ',status=401,every=3', ',status=400',
  ',reset,every=2', ',close,every=2', ',error_200', ',first_event_error', ',close_after=0', ',close_after=3',
  ',reset_after=7', ',cut_after=6', ',error_event_after=5', ',stall_after=4', ',headers_delay=3s,every=4',
  ',malformed_after=3', ',split=9', ',pace=5ms',
]

const folder = temporaryDirectory('gateway-soak-')
const file = join(folder, 'gateway.yaml')
const root = join(import.meta.dirname, '..')
const port = await freePort()
const tally = { whole: 0, errors: 0, cut: 0, lost: 0, wrong: [] as string[], ids: new Map<string, number>() }
const rss: { minute: number, mb: number }[] = []
let changes = 0
let kills = 0
let killedAt = -Infinity
const killTimes: number[] = []
/** Minutes from the start. */
let lastKill = 0

const simulator = await start(['simulate', '--listen', '127.0.0.1:0'])
configure()
let gateway = await start(['serve', '--config', file])
const startedAt = performance.now()
const endsAt = startedAt + minutes * 60_000
await Promise.all([...Array.from({ length: clients }, client), reloads(), killing(), sampling()])
await pause(2_000)
const exited = once(gateway.child, 'exit')
gateway.child.kill('SIGTERM')
await exited
report()

interface Command {
  readonly child: ChildProcess
  readonly base: string
}

async function start(args: readonly string[]): Promise<Command> {
  const child = spawn(
    process.execPath, [join(root, 'bin/gateway.js'), ...args], { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  stopAtExit(child)
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  createInterface(child.stdout as Readable).on('line', line => {
    const { msg, base } = JSON.parse(line) as { msg?: string, base?: string }
    if (msg === 'listening' && base !== undefined) resolve(base)
  })
  child.once('exit', code => reject(new Error(`ended with ${code}`)))
  return { child, base: await promise }
}

function configure(): void {
  const n = changes++
  const routes = FAULTS.flatMap((fault, index) => ['off', 'continue', 'hold'].map(resume =>
    `  - { model: "${resume}-${index}", resume: ${resume}, retries: ${n % 3}, `
    + `to: [{ upstream: a, model: "sim${fault}" }, { upstream: b, model: sim, prefill: true }] }`))
  writeFileSync(file, `
server: { listen: "127.0.0.1:${port}", drain: 20s }
upstreams:
  a: { url: "${simulator.base}" }
  b: { url: "${simulator.base}", headers: { x-change: "${n % 2}" } }
timeouts: { first_byte: 1s, idle: 1s, total: 10s }
routes:
${routes.join('\n')}
keys: [{ name: soak, key: ${KEY}, limits: { requests_per_minute: ${1_000_000 + n}, concurrent: 1000 } }]
ledger: { file: gateway.db }
log: { level: warn }
`)
}

async function client(): Promise<void> {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
  while (performance.now() < endsAt) {
    const resume = ['off', 'continue', 'hold'][Math.floor(Math.random() * 3)]
    const name = `${resume}-${Math.floor(Math.random() * FAULTS.length)}`
    await ask(agent, name, Math.random() < 0.5)
  }
  agent.destroy()
}

async function ask(agent: http.Agent, model: string, stream: boolean): Promise<void> {
  const asked = performance.now()
  let id: string | undefined
  try {
    const request = http.request({
      host: '127.0.0.1', port, agent, method: 'POST', path: '/v1/chat/completions',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    })
    request.end(JSON.stringify({ model, stream, messages: [{ role: 'user', content: 'hello' }] }))
    const [answer] = (await once(request, 'response')) as [http.IncomingMessage]
    id = answer.headers['x-gateway-request-id'] as string
    tally.ids.set(id, Infinity)
    const body = await text(answer)
    tally.ids.set(id, performance.now())
    if ((answer.statusCode ?? 0) >= 400 || body.includes('"error"')) tally.errors++
    else if (stream ? body.trimEnd().endsWith('[DONE]') : body.includes(`w${WORDS}`)) tally.whole++
    // As the upstream sent it, on a route without further attempts: no client takes it for a response.
    else if (!stream && !isJson(body)) tally.errors++
    else tally.wrong.push(`${model}${stream ? ' stream' : ''} ${answer.statusCode}: ${body.slice(-200)}`)
  } catch {
    // A cut stream ends abruptly; only a killed gateway may end before the head.
    if (id !== undefined) tally.cut++
    else if (killedAt > asked - 5_000) {
      tally.lost++
      await pause(20)
    } else tally.wrong.push(`${model}: no response at all`)
  }
}

function isJson(body: string): boolean {
  try {
    JSON.parse(body)
    return true
  } catch {
    return false
  }
}

async function reloads(): Promise<void> {
  while (performance.now() < endsAt) {
    await pause(RELOAD_EVERY)
    configure()
    if (gateway.child.exitCode === null) gateway.child.kill('SIGHUP')
  }
}

async function killing(): Promise<void> {
  while (performance.now() + KILL_EVERY < endsAt) {
    await pause(KILL_EVERY)
    // Every other minute is without, to see memory over a longer life.
    if (Math.floor((performance.now() - startedAt) / 60_000) % 2 === 1) continue
    killedAt = Infinity
    const gone = once(gateway.child, 'exit')
    killTimes.push(performance.now())
    gateway.child.kill('SIGKILL')
    await gone
    kills++
    gateway = await start(['serve', '--config', file])
    killedAt = performance.now()
    lastKill = (killedAt - startedAt) / 60_000
  }
}

async function sampling(): Promise<void> {
  while (performance.now() < endsAt) {
    await pause(10_000)
    const { child } = gateway
    if (killedAt === Infinity || child.pid === undefined) continue
    rss.push({ minute: (performance.now() - startedAt) / 60_000, mb: memory(child.pid, 'VmRSS') })
  }
}

/** Megabytes an hour by which memory grew, over the samples since the last kill: least squares. */
function slope(): number {
  const samples = rss.filter(({ minute }) => minute > lastKill)
  const mean = (of: (sample: typeof rss[number]) => number) =>
    samples.reduce((sum, each) => sum + of(each), 0) / samples.length
  const x = mean(({ minute }) => minute)
  const y = mean(({ mb }) => mb)
  const over = samples.reduce((sum, { minute, mb }) => sum + (minute - x) * (mb - y), 0)
  return (60 * over) / samples.reduce((sum, { minute }) => sum + (minute - x) ** 2, 0)
}

function report(): void {
  using db = new DatabaseSync(join(folder, 'gateway.db'), { readOnly: true })
  const ends = db.prepare('SELECT "end", count(*) AS n FROM requests GROUP BY "end"').all()
  const known = new Set(
    db.prepare('SELECT request_id FROM requests').all().map(row => String(row['request_id'])),
  )
  const twice = db.prepare('SELECT request_id FROM requests GROUP BY request_id HAVING count(*) > 1')
    .all().length
  const missing = [...tally.ids].filter(([id]) => !known.has(id))
  // Rows are written in batches: those of the last moments die with the process.
  const lost = missing.filter(([, at]) => !killTimes.some(kill => at > kill - BATCH)).length
  printHeading(`${minutes} min`, `${clients} clients`, `${changes - 1} reloads`, `${kills} kills`)
  console.log(`requests: ${tally.whole} whole, ${tally.errors} clear errors, ${tally.cut} cut, ` +
    `${tally.lost} unanswered at a kill`)
  console.log(`wrong: ${tally.wrong.length} ${tally.wrong.slice(0, 5).join(' | ')}`)
  console.log(`ledger: ${ends.map(row => `${row['n']} ${row['end']}`).join(', ')}; twice ${twice}, ` +
    `missing ${lost}, and of the last ${BATCH} ms before a kill ${missing.length - lost}`)
  console.log(`memory since the last kill: ${slope().toFixed(0)} MB an hour`)
  console.log(
    `memory (MB): ${rss.map(({ minute, mb }) => `${minute.toFixed(1)} min ${mb.toFixed(0)}`).join(', ')}`,
  )
  process.exitCode = tally.wrong.length + twice + lost > 0 ? 1 : 0
  simulator.child.kill()
}
