import { setTimeout } from 'node:timers/promises'
import { getHeapSpaceStatistics, getHeapStatistics } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { collectGarbageOfLoads, collectGarbageOfStart, thisProcess } from '../../src/process/spare-memory.ts'
import type { MeasuredProcess } from '../../src/process/spare-memory.ts'
import { FakeClock } from '../support/fake-clock.ts'

const MB = 1024 * 1024

/** A process that was active for 400 ms at its start, and that counts its garbage collections. */
function measuredProcess() {
  const state = { worked: 400, memory: 60 * MB, live: 60 * MB, collections: 0, young: 0 }
  const process: MeasuredProcess = {
    activeTime: () => state.worked,
    memory: () => state.memory,
    collect: () => {
      state.collections++
      state.memory = state.live
    },
    collectYoung: () => {
      state.young++
    },
  }
  return { clock: new FakeClock(), state, process }
}

function started() {
  const { clock, state, process } = measuredProcess()
  collectGarbageOfStart(clock, process)
  return { clock, state }
}

t.test('the garbage of the start is collected when the process becomes idle', async t => {
  const { clock, state } = started()
  clock.advance(400)
  t.equal(state.collections, 0)
  clock.advance(100)
  t.equal(state.collections, 1)
  clock.advance(60_000)
  t.equal(state.collections, 1)
})

t.test('the collection waits for the end of a longer start', async t => {
  const { clock, state } = started()
  for (let i = 0; i < 4; i++) {
    state.worked += 50
    clock.advance(500)
  }
  t.equal(state.collections, 0)
  clock.advance(500)
  t.equal(state.collections, 1)
})

t.test('requests during the start cancel the collection', async t => {
  const { clock, state } = started()
  state.worked += 300
  clock.advance(500)
  clock.advance(60_000)
  t.equal(state.collections, 0)
})

t.test('garbage is collected when the process becomes idle after a load', async t => {
  const { clock, state, process } = measuredProcess()
  collectGarbageOfLoads(clock, process)
  clock.advance(10_000)
  for (let i = 0; i < 6; i++) {
    state.worked += 5_000
    state.memory = 300 * MB
    clock.advance(10_000)
  }
  t.equal(state.collections, 0, 'no collection under load')
  state.worked += 20
  clock.advance(10_000)
  t.equal(state.collections, 1)
  clock.advance(600_000)
  t.equal(state.collections, 1)
  state.memory += 65 * MB
  clock.advance(10_000)
  t.equal(state.collections, 2)
})

t.test('after a load, collectYoung runs three times', async t => {
  const { clock, state, process } = measuredProcess()
  collectGarbageOfLoads(clock, process)
  clock.advance(60_000)
  t.equal(state.young, 0, 'no collection without a load')
  state.worked += 5_000
  clock.advance(10_000)
  t.equal(state.young, 0, 'no collection under load')
  clock.advance(10_000)
  t.equal(state.young, 1)
  clock.advance(600_000)
  t.equal(state.young, 3)
  state.worked += 5_000
  clock.advance(10_000)
  clock.advance(600_000)
  t.equal(state.young, 6)
})

t.test('garbage is collected after a load that starts together with the process', async t => {
  const { clock, state, process } = measuredProcess()
  collectGarbageOfLoads(clock, process)
  state.worked += 5_000
  state.memory = 300 * MB
  clock.advance(10_000)
  t.equal(state.collections, 0)
  clock.advance(10_000)
  t.equal(state.collections, 1)
})

t.test('memory in use and small amounts of garbage do not cause another collection', async t => {
  const { clock, state, process } = measuredProcess()
  collectGarbageOfLoads(clock, process)
  clock.advance(10_000)
  state.memory = state.live = 300 * MB
  clock.advance(10_000)
  t.equal(state.collections, 1)
  clock.advance(10_000)
  state.memory += 140 * MB
  clock.advance(600_000)
  t.equal(state.collections, 1, 'garbage below half of the memory in use causes no collection')
  state.memory += 11 * MB
  clock.advance(10_000)
  t.equal(state.collections, 2)
})

t.test('`memory` includes the buffers of the process', async t => {
  const before = thisProcess.memory()
  const buffer = Buffer.alloc(32 * MB)
  t.ok(thisProcess.memory() - before > 31 * MB, `${buffer.length}`)
})

t.test('activeTime does not include the time in which the thread waits', async t => {
  const before = thisProcess.activeTime()
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300)
  t.ok(thisProcess.activeTime() - before < 200)
})

function litterOf(length: number): readonly object[] {
  return Array.from({ length }, () => ({ of: [] }))
}

/** @returns used bytes of the heap after some megabytes of garbage are created */
function litter(): number {
  const garbage = litterOf(200_000)
  return garbage.length === 0 ? 0 : getHeapStatistics().used_heap_size
}

/** @returns bytes that V8 keeps for young objects */
function youngSpace(): number {
  return getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space')?.space_size ?? 0
}

t.test('collectYoung reduces the space for young objects', async t => {
  // Surviving objects make the young space grow.
  for (const kept = [litterOf(100_000)]; youngSpace() < 8 * MB;) kept.push(litterOf(100_000))
  const before = youngSpace()
  // V8 shrinks the young space only while little is allocated.
  while (youngSpace() > before / 2) {
    await setTimeout(100)
    thisProcess.collectYoung()
  }
  t.notOk('gc' in globalThis)
  t.equal(runInNewContext('typeof gc'), 'undefined')
})

t.test('collect frees garbage while the process runs', async t => {
  const before = litter()
  thisProcess.collect()
  while (getHeapStatistics().used_heap_size > before - 3 * 1024 * 1024) await setTimeout(1)
  await setTimeout(1)
  t.ok(thisProcess.activeTime() > 0)
})
