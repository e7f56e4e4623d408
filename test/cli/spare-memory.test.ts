import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { collectGarbageWhenIdle, thisProcess } from '../../src/cli/spare-memory.ts'
import type { MeasuredProcess } from '../../src/cli/spare-memory.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { gateway } from './command.ts'

const MB = 1024 * 1024
const MINUTE = 60_000

/** A process that has worked 400 ms to start, and counts its collections. */
function started() {
  const clock = new FakeClock()
  const state = { worked: 400, heap: 30 * MB, collections: 0 }
  const process: MeasuredProcess = {
    activeTime: () => state.worked,
    usedHeap: () => state.heap,
    collect: () => {
      state.collections++
      state.worked += 50
    },
  }
  collectGarbageWhenIdle(clock, process)
  return { clock, state }
}

t.test('what the start needed is given back once it has settled', async t => {
  const { clock, state } = started()
  t.equal(state.collections, 0)
  clock.advance(500)
  t.equal(state.collections, 1)
})

t.test('a start that takes longer, and brings some requests, is waited for', async t => {
  const { clock, state } = started()
  state.worked += 100
  clock.advance(500)
  state.worked += 140
  clock.advance(5_000)
  t.equal(state.collections, 0)
  clock.advance(5_000)
  t.equal(state.collections, 1)
})

t.test('who does nothing afterwards is left alone', async t => {
  const { clock, state } = started()
  clock.advance(500)
  clock.advance(60_000)
  t.equal(state.collections, 1)
})

t.test('while there is work nothing is collected, and once when it is long over', async t => {
  const { clock, state } = started()
  for (let i = 0; i < 120; i++) {
    state.worked += 300
    clock.advance(500)
  }
  t.equal(state.collections, 0)
  clock.advance(4 * MINUTE)
  t.equal(state.collections, 0, 'not at once: the next load would find no compiled code')
  clock.advance(2 * MINUTE)
  t.equal(state.collections, 1)
  clock.advance(20 * MINUTE)
  t.equal(state.collections, 1)
})

t.test('a load that comes right after the start is followed by no collection either', async t => {
  const { clock, state } = started()
  state.worked += 400
  clock.advance(500)
  clock.advance(4 * MINUTE)
  t.equal(state.collections, 0)
  clock.advance(2 * MINUTE)
  t.equal(state.collections, 1)
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

t.test('pauses between loads are no time to collect', async t => {
  const { clock, state } = started()
  clock.advance(500)
  for (let i = 0; i < 20; i++) {
    state.worked += 5_000
    clock.advance(4 * MINUTE)
  }
  t.equal(state.collections, 1)
})

t.test('a large heap is not looked through', async t => {
  const { clock, state } = started()
  state.heap = 500 * MB
  clock.advance(20 * MINUTE)
  t.equal(state.collections, 0)
})

/** @returns bytes of the heap, with some megabytes that nobody needs any more */
function litter(): number {
  const garbage = Array.from({ length: 200_000 }, () => ({ of: [] }))
  return garbage.length === 0 ? 0 : thisProcess.usedHeap()
}

t.test('garbage goes, and the process goes on', async t => {
  const before = litter()
  thisProcess.collect()
  while (thisProcess.usedHeap() > before - 3 * MB) await setTimeout(1)
  await setTimeout(1)
  t.ok(thisProcess.activeTime() > 0)
})
