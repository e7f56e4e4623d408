import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LedgerEntry } from '../src/ledger/entry.ts'
import { openLedger } from '../src/ledger/write/threaded-ledger.ts'
import type { Ledger } from '../src/ledger/write/ledger.ts'
import { draft, row } from '../test/ledger/rows.ts'

/**
 * Claim: a request costs the main thread a few microseconds of ledger, and its
 * row is safe long before 100 ms have passed.
 *
 *   node bench/ledger.ts [requests per second] [seconds]
 */

const rate = Number(process.argv[2] ?? 5000)
const seconds = Number(process.argv[3] ?? 4)

interface Cost {
  readonly main: number
  readonly all: number
}

function openAt(directory: string, maxWaiting = 100_000): Ledger {
  return openLedger({
    file: join(directory, 'gateway.db'),
    keep: null,
    maxWaiting,
    onFailure: trouble => console.error(trouble),
    onRecovered: () => undefined,
  })
}

type Target = Pick<Ledger, 'open' | 'close'>

const NONE: Target = { open: draft => new LedgerEntry(draft), close: () => undefined }

/**
 * @param overlap requests that are in flight at any time
 * @param sample called every two ms
 */
async function steady(overlap: number, to: Target, sample: () => void): Promise<Cost> {
  const open: { readonly id: string; readonly entry: LedgerEntry }[] = []
  const started = performance.now()
  const all = process.cpuUsage()
  const main = process.threadCpuUsage()
  let requests = 0
  for (let now = started; now - started < seconds * 1000; now = performance.now()) {
    for (const due = Math.floor((now - started) * rate / 1000); requests < due; requests += 1) {
      const id = `01JD6Z${String(requests).padStart(20, '0')}`
      open.push({ id, entry: to.open(() => draft(id)) })
      const first = open.length > overlap ? open.shift() : undefined
      if (first) to.close(row(first.id), first.entry)
    }
    sample()
    await new Promise(resolve => setTimeout(resolve, 2))
  }
  return { main: each(process.threadCpuUsage(main), requests), all: each(process.cpuUsage(all), requests) }
}

function each(usage: NodeJS.CpuUsage, requests: number): number {
  return (usage.user + usage.system) / requests
}

async function measure(name: string, overlap: number): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'ledger-'))
  const ledger = openAt(directory)
  ledger.close(row('first'))
  await ledger.flush()
  const without = await steady(overlap, NONE, () => undefined)
  const gaps: number[] = []
  let { written } = ledger.stats()
  let since = 0
  const cost = await steady(overlap, ledger, () => {
    const stats = ledger.stats()
    if (stats.written === written) return
    const now = performance.now()
    if (since > 0) gaps.push(now - since)
    since = now
    written = stats.written
  })
  gaps.sort((a, b) => a - b)
  const at = (share: number) => (gaps[Math.ceil(gaps.length * share) - 1] ?? 0).toFixed(1)
  const more = (part: keyof Cost) => (cost[part] - without[part]).toFixed(1)
  console.log(`${name}, ${rate}/s: us of CPU a request: main thread ${more('main')}, ` +
    `whole process ${more('all')}; ` +
    `ms between commits: p50 ${at(0.5)}, p99 ${at(0.99)}, max ${at(1)}`)
  await ledger.shutdown()
  rmSync(directory, { recursive: true })
}

/** @returns rows a second that the thread writes when it never has to wait */
async function flood(rows: number): Promise<number> {
  const directory = mkdtempSync(join(tmpdir(), 'ledger-'))
  const ledger = openAt(directory, rows + 1)
  const all = Array.from({ length: rows }, (_, n) => row(`01JD6Z${String(n).padStart(20, '0')}`))
  const started = performance.now()
  for (const one of all) ledger.close(one)
  await ledger.flush()
  const rate = rows / ((performance.now() - started) / 1000)
  await ledger.shutdown()
  rmSync(directory, { recursive: true })
  return rate
}

await measure('short requests', 1)
await measure('long requests', rate)
console.log(`rows a second at most: ${Math.round(await flood(100_000))}`)
