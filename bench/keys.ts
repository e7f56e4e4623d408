/**
 * The question: what ten thousand keys cost a request, and a start, more than one
 * key does, from the configuration and from the store.
 *
 *     node bench/keys.ts [rounds] [requests]      # 20 rounds of 1,500 requests by default
 *
 * Each subject is a gateway of its own, with the in-process simulator behind it.
 * They take turns, in short rounds and in changing order, so that each round is a pair; every request
 * presents another of the keys. CPU is user and system time of the gateway's process, all its threads, from
 * /proc/PID/stat. A start is from the process's beginning to the line that says that it listens.
 */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { hash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { KeyFile } from '../src/auth/key-file.ts'
import { generateKey } from '../src/base/secrets/key-format.ts'
import { percent, printHeading, printTable, relativeExcess, spread } from './lib/figures.ts'
import { cpuPerUnit } from './lib/subjects.ts'

const ROUNDS = Number(process.argv[2] ?? 20)
const REQUESTS = Number(process.argv[3] ?? 1_500)
const MANY = 10_000
const CONNECTIONS = 16
const GATEWAY = fileURLToPath(new URL('../bin/gateway.js', import.meta.url))
const BODY = JSON.stringify({ model: 'demo', messages: [{ role: 'user', content: 'hello' }] })

type Source = 'yaml' | 'store'

interface Subject {
  readonly name: string
  readonly keys: readonly string[]
  readonly child: ChildProcess
  readonly base: URL
  readonly startMs: number
  readonly agent: Agent
  readonly micros: number[]
}

async function start(source: Source, count: number, dir: string): Promise<Subject> {
  const keys = Array.from({ length: count }, () => generateKey(randomBytes))
  const listed = source === 'yaml'
    ? keys.map((key, i) => `  - { name: key-${i}, sha256: ${hash('sha256', key)} }\n`)
    : []
  writeFileSync(join(dir, 'gateway.yaml'), `server: { listen: 127.0.0.1:0 }
upstreams: { demo: { simulator: true } }
routes: [{ model: demo, to: demo }]
ledger: { file: ledger.db }
log: { level: warn }
keys:${listed.length === 0 ? ' []\n' : `\n${listed.join('')}`}`)
  if (source === 'store') {
    using store = new KeyFile(join(dir, 'keys.db'))
    for (const [i, key] of keys.entries()) {
      store.create(
        { name: `key-${i}`, digest: hash('sha256', key, 'buffer'), models: null, limits: null },
        i,
        { actor: 'bench', address: null },
      )
    }
  }
  const began = performance.now()
  const child = spawn(process.execPath, [GATEWAY, 'serve'], {
    cwd: dir, stdio: ['ignore', 'pipe', 'inherit'],
  })
  for await (const line of createInterface(child.stdout)) {
    const { msg, base } = JSON.parse(line) as { msg: string; base?: string }
    if (msg !== 'listening' || base === undefined) continue
    const startMs = performance.now() - began
    child.stdout.resume()
    const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS })
    return { name: `${source}, ${count}`, keys, child, base: new URL(base), startMs, agent, micros: [] }
  }
  throw new Error('the gateway ended before it listened')
}

async function ask({ base, agent, keys }: Subject, n: number): Promise<void> {
  const asked = request(new URL('/v1/chat/completions', base), {
    method: 'POST',
    agent,
    headers: {
      // A stride that meets every key, in an order that no cache foresees.
      authorization: `Bearer ${keys[(n * 7_919) % keys.length]}`,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(BODY),
    },
  })
  asked.end(BODY)
  const [answer] = await once(asked, 'response')
  answer.resume()
  await once(answer, 'end')
  if (answer.statusCode !== 200) throw new Error(`status ${answer.statusCode}`)
}

async function round(subject: Subject): Promise<{ units: number }> {
  let next = 0
  const client = async (): Promise<void> => {
    while (next < REQUESTS) await ask(subject, next++)
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, client))
  return { units: REQUESTS }
}

const dirs: string[] = []
const subjects: Subject[] = []
try {
  for (const source of ['yaml', 'store'] as const) {
    for (const count of [1, MANY]) {
      const dir = mkdtempSync(join(tmpdir(), 'gateway-keys-'))
      dirs.push(dir)
      subjects.push(await start(source, count, dir))
    }
  }
  // The first two count for nobody: the compiler warms up.
  for (let n = -1; n <= ROUNDS; n++) {
    for (const subject of n % 2 ? subjects.toReversed() : subjects) {
      const micros = await cpuPerUnit(subject.child.pid!, () => round(subject))
      if (n > 0) subject.micros.push(micros)
    }
  }
  printHeading(`${ROUNDS} rounds of ${REQUESTS} requests`)
  printTable(['keys', 'start ms', 'us CPU per request'], subjects.map(({ name, startMs, micros }) => [name, startMs.toFixed(0), spread(micros)]))
  for (const source of ['yaml', 'store']) {
    const [one, many] = subjects.filter(({ name }) => name.startsWith(source)).map(({ micros }) => micros)
    const figure = percent(relativeExcess(one ?? [], many ?? []))
    console.log(`${source}: ten thousand keys take ${figure} more than one, with 95 % certainty`)
  }
} finally {
  for (const { child, agent } of subjects) {
    agent.destroy()
    child.kill('SIGKILL')
  }
  for (const dir of dirs) rmSync(dir, { recursive: true, force: true })
}
