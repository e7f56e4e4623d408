/**
 * Claim: under random faults of the upstream, clients that leave, reloads,
 * restarts and kills, every request ends in success or in a clear error, the
 * ledger has each exactly once, and memory does not grow.
 *
 *   node bench/soak.ts [minutes] [clients]
 */
import * as http from 'node:http'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { KEY, Service } from '../test/reload/service.ts'
import { printTable } from './lib/figures.ts'
import { freePort, memory, pause } from './lib/subjects.ts'

const minutes = Number(process.argv[2] ?? 60)
const clients = Number(process.argv[3] ?? 16)
/** Milliseconds: what was begun or ended so near to a kill may be lost with it. */
const NEAR = 500

const folder = mkdtempSync(join(tmpdir(), 'gateway-soak-'))
const simulator = new Service(['simulate', '--listen', '127.0.0.1:0'])
const upstream = await simulator.listening()
const port = await freePort()
let changes = 0

function change(): void {
  const n = changes++
  const to = (...models: string[]) => models.map(model => `{ upstream: sim, model: "${model}" }`).join(', ')
  writeFileSync(join(folder, 'gateway.yaml'), `
server: { listen: 127.0.0.1:${port}, reuse_port: true, drain: 30s }
upstreams:
  sim: { url: "${upstream}" }
  other${n}: { url: "http://127.0.0.1:9" }
routes:
  - { model: plain, to: [${to('sim,pace=2ms')}] }
  - { model: flaky, to: [${to('sim,status=503,every=2', 'sim,close,every=3', 'sim,reset,every=3', 'sim')}] }
  - model: continued
    to: [${to('sim,close_after=5,every=2,pace=2ms')}, { upstream: sim, model: "sim,pace=2ms", prefill: true }]
    resume: continue
  - { model: held, to: [${to('sim,reset_after=5,every=2', 'sim')}], resume: hold }
  - { model: honest, to: [${to('sim,reset_after=5,every=2,pace=2ms')}] }
  - { model: refused, to: [${to('sim,status=429,retry_after=30', 'sim,status=500')}] }
  - { model: other${n}, to: other${n} }
timeouts: { first_byte: ${20 + (n % 5)}s, total: 60s }
models: { "sim*": { price: { input: 1, output: 2 } } }
keys: [{ name: soak, key: ${KEY}, limits: { requests_per_minute: ${1_000_000 + n} } }]
ledger: { file: gateway.db }
`)
}

const serve = () => new Service(['serve', '--config', join(folder, 'gateway.yaml')])
change()
let current = serve()
await current.listening()
/** From each kill until something listens again; on the monotonic clock, ms. */
const kills: { from: number; to: number }[] = []
const old: Promise<number | null>[] = []

const EVENTS: Record<string, () => Promise<void>> = {
  reload: async () => {
    const from = current.lines.length
    change()
    current.child.kill('SIGHUP')
    await current.logged('configuration reloaded', from)
  },
  restart: async () => {
    const before = current
    const next = serve()
    await next.listening()
    current = next
    before.child.kill('SIGTERM')
    old.push(before.ended)
  },
  kill: async () => {
    const kill = { from: performance.now(), to: Infinity }
    kills.push(kill)
    current.child.kill('SIGKILL')
    await current.ended
    current = serve()
    await current.listening()
    kill.to = performance.now()
  },
}

const MODELS = ['plain', 'flaky', 'continued', 'held', 'honest', 'refused']
const PATHS: Record<string, (model: string, stream: boolean) => [path: string, body: object]> = {
  chat: (model, stream) => ['/v1/chat/completions', { model, stream, messages: [{ role: 'user', content: 'Go on.' }] }],
  messages: (model, stream) =>
    ['/v1/messages', { model, stream, max_tokens: 100, messages: [{ role: 'user', content: 'Go on.' }] }],
  generate: (model, stream) => [
    `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    { contents: [{ role: 'user', parts: [{ text: 'Go on.' }] }] },
  ],
}
const END = /data: \[DONE\]|event: message_stop|"finishReason":"STOP"/

/** How one request ended: its outcome, and its id as far as an answer told it. */
interface Ended {
  readonly outcome: string
  readonly id: string | null
  /** What was asked, and the last that was answered. */
  readonly about: string
  readonly began: number
  readonly ended: number
}

const agent = new http.Agent({ keepAlive: true })
const pick = <T>(items: readonly T[]): T => items[Math.floor(Math.random() * items.length)] as T

function ask(): Promise<Ended> {
  const stream = Math.random() < 0.6
  const leaves = Math.random() < 0.1
  const [path, body] = (PATHS[pick(Object.keys(PATHS))] as (typeof PATHS)[string])(pick(MODELS), stream)
  const began = performance.now()
  return new Promise(resolve => {
    let id: string | null = null
    let text = ''
    const end = (outcome: string) => resolve({
      outcome, id, began, ended: performance.now(), about: `${path} ${JSON.stringify(body)}: ...${text.slice(-300)}`,
    })
    const judge = (status: number, whole: boolean) => {
      if (leaves && !whole) return end('left')
      const told = text.includes('"error"') || text.includes('event: error')
      if (status !== 200) return end(whole && told ? 'error' : `status ${status} without an error`)
      if (whole && (stream ? END.test(text) && !told : !told && isJson(text))) return end('success')
      if (whole) return end('whole without an end or an error')
      // Cut in the middle of an event there is no telling, and what HTTP says of the end has to do.
      end(told ? 'error in the stream' : text.endsWith('\n\n') ? 'cut between events without an error' : 'cut in an event')
    }
    const req = http.request({
      port, host: '127.0.0.1', path, method: 'POST', agent,
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    }, res => {
      id = String(res.headers['x-gateway-request-id'])
      res.on('data', data => {
        text += String(data)
        if (leaves) req.destroy()
      })
      res.on('error', () => {})
      res.on('close', () => judge(res.statusCode ?? 0, res.complete))
    })
    // A kept connection that was closed just now is no answer: the vendors' SDKs ask again.
    req.on('error', () => {
      if (id === null) end(req.reusedSocket ? 'asked again' : 'no answer')
    })
    req.end(JSON.stringify(body))
  })
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const isNearKill = ({ began, ended }: Ended) => kills.some(({ from, to }) => began < to + NEAR && ended > from - NEAR)

const all: Ended[] = []
const stopAt = performance.now() + minutes * 60_000
const samples: string[][] = []
const workers = Array.from({ length: clients }, async () => {
  while (performance.now() < stopAt) {
    const ended = await ask()
    all.push(ended)
    if (ended.outcome === 'no answer') await pause(20)
  }
})
const plan = ['reload', 'reload', 'restart', 'reload', 'kill', 'reload']
for (let i = 0; performance.now() < stopAt; i++) {
  const event = plan[i % plan.length] as string
  await EVENTS[event]?.()
  await pause(5_000)
  const mb = memory(current.child.pid as number, 'VmRSS').toFixed(0)
  samples.push([String(i), event, String(all.length), mb])
}
await Promise.all(workers)
agent.destroy()
current.child.kill('SIGTERM')
const codes = await Promise.all([...old, current.ended])
simulator.child.kill()

const outcomes = new Map<string, number>()
for (const ended of all) {
  const fine = ['success', 'error', 'error in the stream', 'cut in an event', 'left', 'asked again'].includes(ended.outcome)
  if (!fine && !isNearKill(ended)) console.log(`WRONG: ${ended.outcome}: ${ended.about}`)
  const name = fine ? ended.outcome : `${ended.outcome}${isNearKill(ended) ? ', at a kill' : ' (WRONG)'}`
  outcomes.set(name, (outcomes.get(name) ?? 0) + 1)
}
using db = new DatabaseSync(join(folder, 'gateway.db'), { readOnly: true })
const rows = new Map<unknown, number>()
for (const { request_id: id } of db.prepare('SELECT request_id FROM requests').iterate()) rows.set(id, (rows.get(id) ?? 0) + 1)
const asked = all.filter(({ id }) => id !== null)
const missing = asked.filter(({ id }) => !rows.has(id))
const twice = [...rows.values()].filter(count => count > 1).length
console.log(`${new Date().toISOString().slice(0, 10)}, Node ${process.version}, ${minutes} minutes, ${clients} clients`)
printTable(['event', 'what', 'requests so far', 'memory MB'], samples)
printTable(['outcome', 'requests'], [...outcomes].map(([name, count]) => [name, String(count)]))
console.log(`\n${all.length} requests; ledger: ${rows.size} rows, ${twice} twice, ` +
  `${missing.filter(each => !isNearKill(each)).length} missing, ${missing.filter(isNearKill).length} missing at a kill`)
console.log(`processes that ended with another code than 0: ${codes.filter(code => code !== 0).length}`)
const isWrong = twice > 0 || missing.some(each => !isNearKill(each)) || [...outcomes.keys()].some(name => name.endsWith('(WRONG)'))
process.exitCode = isWrong ? 1 : 0
rmSync(folder, { recursive: true, force: true })
