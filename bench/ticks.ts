/**
 * What `process.nextTick` costs after a full collection at a moment when nothing waited for its
 * tick, in a process that keeps one for its shape and in one that does not.
 *
 *   node bench/ticks.ts [rounds]
 */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { printHeading, printTable, spread } from './lib/figures.ts'

const rounds = Number(process.argv[2] ?? 5)

/** Few calls, as before the first request; a collection as the gateway's own; then many. */
const SCRIPT = `
  import { keepShapeOfTicks } from ${JSON.stringify(join(import.meta.dirname, '../src/process/kept-shapes.ts'))}
  import { thisProcess } from ${JSON.stringify(join(import.meta.dirname, '../src/process/spare-memory.ts'))}
  import { setTimeout } from 'node:timers/promises'
  const CALLS = 1e6
  const tick = calls => new Promise(resolve => {
    const next = () => --calls > 0 ? process.nextTick(next) : resolve()
    process.nextTick(next)
  })
  if (process.argv[1] === 'kept') await keepShapeOfTicks()
  await tick(300)
  thisProcess.collect()
  await setTimeout(200)
  await tick(CALLS)
  const { user } = process.cpuUsage()
  await tick(CALLS)
  console.log((process.cpuUsage().user - user) * 1000 / CALLS)
`

function nanoseconds(how: 'kept' | 'not kept'): number {
  return Number(execFileSync(process.execPath, ['--input-type=module', '-e', SCRIPT, how]))
}

const figures = { 'not kept': [] as number[], kept: [] as number[] }
for (let round = 0; round < rounds; round++) {
  for (const how of ['not kept', 'kept'] as const) figures[how].push(nanoseconds(how))
}
printHeading(`${rounds} rounds`)
printTable(['shape', 'ns CPU per tick'], Object.entries(figures).map(([how, each]) => [how, spread(each)]))
