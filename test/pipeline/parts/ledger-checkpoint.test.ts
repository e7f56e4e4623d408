import t from 'tap'
import { CheckpointTimer } from '../../../src/pipeline/parts/ledger-checkpoint.ts'
import { FakeClock } from '../../support/fake-clock.ts'

function setUp() {
  const clock = new FakeClock()
  const drafts = new CheckpointTimer(clock)
  const written: string[] = []
  const add = (name: string) => drafts.add(() => written.push(`${name} ${clock.monotonic()}`))
  return { clock, drafts, written, add }
}

t.test('each checkpoint is written once, a second after the change, and all checkpoints share one timer', async t => {
  const { clock, written, add } = setUp()
  add('a')
  clock.advance(400)
  add('b')
  t.equal(clock.pending, 1)
  clock.advance(599)
  t.strictSame(written, [])
  clock.advance(1)
  t.strictSame(written, ['a 1000'])
  t.equal(clock.pending, 1)
  clock.advance(10_000)
  t.strictSame(written, ['a 1000', 'b 1400'])
  t.equal(clock.pending, 0, 'no timer runs if no checkpoint waits')
})

t.test('checkpoints that are due at most 20 ms apart are written together', async t => {
  const { clock, written, add } = setUp()
  add('a')
  clock.advance(20)
  add('b')
  clock.advance(1)
  add('c')
  clock.advance(5_000)
  t.strictSame(written, ['a 1000', 'b 1000', 'c 1021'])
})

t.test('a checkpoint that is added during a write is written a second later', async t => {
  const { clock, drafts, written, add } = setUp()
  drafts.add(() => add('late'))
  clock.advance(1_999)
  t.strictSame(written, [])
  clock.advance(1)
  t.strictSame(written, ['late 2000'])
})

t.test('no checkpoint is written after close', async t => {
  const { clock, drafts, written, add } = setUp()
  add('a')
  drafts.close()
  clock.advance(5_000)
  t.strictSame(written, [])
})
