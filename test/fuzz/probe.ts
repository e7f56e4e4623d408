/*
 * Loaded into the gateway's process before the gateway itself. It measures, in CPU time of the main thread, the longest
 * turn of the event loop: what another process does on the machine meanwhile is not in it. And it sees each
 * settlement of a budget, of which the ledger tells only one side.
 */
import { readFileSync } from 'node:fs'
import { Scope } from '../../src/limits/scope.ts'

/** What the gateway's process tells of itself since the report before. */
export interface Report {
  /** Milliseconds of CPU time of the longest turn of the event loop. */
  readonly turnMs: number
  /** Bytes. */
  readonly heap: number
  readonly external: number
  /** The most memory of the process so far. */
  readonly peak: number
  /** Settlements above their reservation. */
  readonly overspent: readonly string[]
}

export type Question = 'report' | 'collect' | 'control'

/** Milliseconds: shorter turns count together. */
const INTERVAL = 5
const MB = 2 ** 20

let longest = 0
let before = process.threadCpuUsage()
let overspent: string[] = []

const turn = (): void => {
  const now = process.threadCpuUsage()
  longest = Math.max(longest, now.user + now.system - before.user - before.system)
  before = now
}
setInterval(turn, INTERVAL).unref()

const settle = Scope.prototype.settle
Scope.prototype.settle = function (this: Scope, ...parameters: Parameters<Scope['settle']>) {
  const [{ pico, period }, outcome] = parameters
  if (period !== null && (outcome.pico ?? 0n) > pico) overspent.push(`reserved ${pico}, settled ${outcome.pico}`)
  settle.apply(this, parameters)
}

/** @returns bytes; the maximum of `resourceUsage` begins with the memory of the process that started this one */
function peakMemory(): number {
  const [, kilobytes] = /^VmHWM:\s+(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? []
  return Number(kilobytes) * 1024
}

/** @returns milliseconds of CPU time of fixed work: parsing one megabyte */
function control(): number {
  const text = JSON.stringify(Array.from({ length: 14_000 }, (_, n) => ({ role: 'user', content: `message ${n}`, n, list: [n, null, true] }))).slice(0, MB)
  const whole = `${text.slice(0, text.lastIndexOf('}'))}}]`
  const start = process.threadCpuUsage()
  JSON.parse(whole)
  const { user, system } = process.threadCpuUsage(start)
  return (user + system) / 1000
}

process.on('message', (question: Question) => {
  turn()
  if (question === 'control') process.send?.(control())
  else {
    if (question === 'collect') void globalThis.gc?.()
    const { heapUsed, external } = process.memoryUsage()
    process.send?.({ turnMs: longest / 1000, heap: heapUsed, external, peak: peakMemory(), overspent } satisfies Report)
  }
  before = process.threadCpuUsage()
  longest = 0
  overspent = []
})
process.on('disconnect', () => process.exit())
process.channel?.unref()
