import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import type { Process } from '../../src/cli/spare-memory.ts'
import { giveBackMemory, thisProcess } from '../../src/cli/spare-memory.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { start } from './command.ts'

const MB = 1024 * 1024
const MINUTE = 60_000

const YAML = `server: { listen: 127.0.0.1:0 }
auth: open
upstreams: { demo: { simulator: true } }
routes: [{ to: demo }]
`

/** A process that has worked 400 ms to start, and counts its collections. */
function started() {
  const clock = new FakeClock()
  const state = { worked: 400, heap: 30 * MB, collections: 0 }
  const process: Process = {
    worked: () => state.worked,
    heap: () => state.heap,
    collect: () => {
      state.collections++
      state.worked += 50
    },
  }
  giveBackMemory(clock, process)
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

t.test('V8 does not collect an idle process on its own', async t => {
  const cwd = t.testdir({ 'gateway.yaml': YAML })
  // With this flag the memory reducer says what it does, and with the second it would do it at once.
  const flags = ['--trace-gc', '--trace-memory-reducer', '--gc-memory-reducer-start-delay-ms=1']
  const child = start(['serve'], { cwd, flags })
  t.teardown(() => child.kill('SIGKILL'))
  const said: string[] = []
  let collections = 0
  for await (const line of createInterface(child.stdout)) {
    said.push(line)
    if (line.includes('Mark-Compact')) collections++
    // Ours, at the end of the start; it comes after whatever the reducer had begun.
    if (line.includes('low memory notification')) break
  }
  t.ok(collections > 1, 'it collected while it started')
  const reducer = said.filter(line => line.includes('Memory reducer'))
  t.same(reducer.filter(line => line.includes('started')), [])
  const waits = reducer.map(line => /waiting for (\d+) ms/.exec(line)?.[1]).filter(wait => wait !== undefined)
  t.ok(waits.every(wait => Number(wait) > 1e9), waits.join(', '))
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
  return garbage.length === 0 ? 0 : thisProcess.heap()
}

t.test('garbage goes, and the process goes on', async t => {
  const before = litter()
  thisProcess.collect()
  while (thisProcess.heap() > before - 3 * MB) await setTimeout(1)
  await setTimeout(1)
  t.ok(thisProcess.worked() > 0)
})
