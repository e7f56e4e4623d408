/**
 * The files, named functions and calls of `src` that one warm request runs through. It needs no load, and the counts
 * are the same on any machine. With `--functions` it lists them, most calls first.
 *
 *   node bench/calls.ts [--functions unary|stream|"translated stream"]
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { CALL_LIMITS, CALL_TARGETS } from './lib/call-limits.ts'
import { countCalls, sumOf } from './lib/calls.ts'
import type { CountedRequest } from './lib/calls.ts'
import { endAfter, printHeading, printTable } from './lib/figures.ts'

const { values: options } = parseArgs({ options: { functions: { type: 'string', default: '' } } })
endAfter(120)
const dir = mkdtempSync(join(tmpdir(), 'gateway-calls-'))
process.once('exit', () => rmSync(dir, { recursive: true, force: true }))
const counted = await countCalls(dir)
printHeading()
for (const [kind, functions] of Object.entries(counted)) {
  if (kind !== options.functions) continue
  const sorted = functions.toSorted((a, b) => b.calls - a.calls)
  printTable(['file', 'function', 'calls'], sorted.map(({ file, name, calls }) => [file, name, String(calls)]))
}
const of = ['files', 'functions', 'calls'] as const
const rows = Object.entries(counted).flatMap(([kind, functions]) => of.map(what => {
  const value = sumOf(functions)[what]
  const [limit, target] = [CALL_LIMITS, CALL_TARGETS].map(limits => limits[kind as CountedRequest][what])
  return { kind, what, value, limit: limit as number, target }
}))
printTable(['one warm request', '', '', 'limit', 'target'], rows.map(({ kind, what, value, limit, target }) => (
  [kind, what, ...[value, limit, target ?? '-'].map(String)]
)))
process.exitCode = rows.some(({ value, limit }) => value > limit) ? 1 : 0
