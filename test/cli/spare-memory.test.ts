import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { getHeapStatistics } from 'node:v8'
import t from 'tap'
import { collectGarbageOfStart, thisProcess } from '../../src/cli/spare-memory.ts'
import type { MeasuredProcess } from '../../src/cli/spare-memory.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { gateway } from './command.ts'

/** A process that has worked 400 ms to start, and counts its collections. */
function started() {
  const clock = new FakeClock()
  const state = { worked: 400, collections: 0 }
  const process: MeasuredProcess = {
    activeTime: () => state.worked,
    collect: () => {
      state.collections++
    },
  }
  collectGarbageOfStart(clock, process)
  return { clock, state }
}

t.test('the garbage of the start is collected once, when the process is idle', async t => {
  const { clock, state } = started()
  clock.advance(400)
  t.equal(state.collections, 0)
  clock.advance(100)
  t.equal(state.collections, 1)
  clock.advance(60_000)
  t.equal(state.collections, 1)
})

t.test('a start that takes longer delays the collection', async t => {
  const { clock, state } = started()
  for (let i = 0; i < 4; i++) {
    state.worked += 50
    clock.advance(500)
  }
  t.equal(state.collections, 0)
  clock.advance(500)
  t.equal(state.collections, 1)
})

t.test('nothing is collected after requests', async t => {
  const { clock, state } = started()
  state.worked += 300
  clock.advance(500)
  clock.advance(60_000)
  t.equal(state.collections, 0)
})

t.test('V8 is told what it does otherwise behind our back, by flags that it knows', async t => {
  // It would be seen by --trace-memory-reducer in half a minute, and by bench/garbage.ts.
  const told = `
    import v8 from 'node:v8'
    import { syncBuiltinESMExports } from 'node:module'
    const { setFlagsFromString } = v8
    v8.setFlagsFromString = flag => {
      setFlagsFromString(flag)
      console.error(flag)
    }
    syncBuiltinESMExports()`
  const preload = join(t.testdir({ 'told.mjs': told }), 'told.mjs')
  const { stderr } = await gateway(['--version'], { flags: ['--import', preload] })
  const flags = stderr.trim().split('\n')
  t.match(flags, [
    /^--gc-memory-reducer-start-delay-ms=[1-9]\d{9}$/, /^--memory-reducer-delay-ms=[1-9]\d{9}$/,
    /^--no-allocation-site-pretenuring$/,
  ])
  const known = execFileSync(process.execPath, ['--v8-options'], { encoding: 'utf8' })
  for (const flag of flags) {
    const [, no = '', name, value] = /^--(no-)?([\w-]+)(?:=(.*))?$/.exec(flag) ?? []
    t.match(known, new RegExp(`--${name} .*\n *type: ${no || value === undefined ? 'bool' : 'int'}`), flag)
  }
})

/** @returns bytes of the heap, with some megabytes that nobody needs any more */
function litter(): number {
  const garbage = Array.from({ length: 200_000 }, () => ({ of: [] }))
  return garbage.length === 0 ? 0 : getHeapStatistics().used_heap_size
}

t.test('garbage goes, and the process goes on', async t => {
  const before = litter()
  thisProcess.collect()
  while (getHeapStatistics().used_heap_size > before - 3 * 1024 * 1024) await setTimeout(1)
  await setTimeout(1)
  t.ok(thisProcess.activeTime() > 0)
})
