import t from 'tap'
import { candidateStates, circuitOf, healthOf } from '../../../src/console/state/candidates.ts'
import type { CandidateState } from '../../../src/console/state/candidates.ts'
import type { WorkerActivity } from '../../../src/console/state/workers.ts'

const state = (more: Partial<CandidateState> = {}): CandidateState => ({ model: 'm', circuit: 'closed', opens_in_ms: null, in_flight: 0, first_byte_ms: null, ...more })
const workerWith = (...candidates: (Partial<CandidateState> & { upstream?: string })[]) =>
  ({ candidates: candidates.map(({ upstream = 'a', ...more }) => ({ upstream, ...state(more) })) }) as unknown as WorkerActivity

const merged = (...workers: WorkerActivity[]) => Object.fromEntries(candidateStates(workers))

t.test('candidates are listed by upstream and model', async t => {
  t.match(merged(workerWith({}, { model: null }, { upstream: 'b' })), { a: [{ model: 'm' }, { model: null }], b: [{ model: 'm' }] })
  t.strictSame(merged(), {})
})

t.test('a candidate has the worst circuit and the sum of the running requests of all workers', async t => {
  const open = { circuit: 'open', opens_in_ms: 500, in_flight: 1, first_byte_ms: null } as const
  const closed = { circuit: 'closed', in_flight: 2, first_byte_ms: 80 } as const
  const probing = { circuit: 'probing', in_flight: 4, first_byte_ms: 90 } as const
  const expected = { circuit: 'open', opens_in_ms: 500, in_flight: 3, first_byte_ms: 80 }
  t.match(merged(workerWith(open), workerWith(closed)), { a: [expected] })
  t.match(merged(workerWith(closed), workerWith(open)), { a: [expected] })
  t.match(merged(workerWith(closed), workerWith(probing)), { a: [{ circuit: 'probing', in_flight: 6, first_byte_ms: 90 }] })
  t.match(merged(workerWith(closed), workerWith(closed), workerWith(closed)), { a: [{ circuit: 'closed', in_flight: 6 }] })
})

t.test('a model without requests has an open circuit only if the health checks of the upstream fail', async t => {
  t.equal(circuitOf('m', [state({ circuit: 'probing' })]), 'probing')
  t.equal(circuitOf('other', [state({ circuit: 'open', opens_in_ms: 5 })]), 'closed')
  t.equal(circuitOf('other', [state({ circuit: 'open', opens_in_ms: null })]), 'open')
  t.equal(circuitOf('other', [state({ circuit: 'closed', opens_in_ms: null })]), 'closed')
  t.equal(circuitOf(null, []), 'closed')
})

for (const [circuits, expected] of [[[], 'unknown'], [['closed', 'closed'], 'well'], [['closed', 'open'], 'failing'], [['closed', 'probing'], 'failing'], [['open', 'probing'], 'down'], [['open'], 'down']] as const) {
  t.test(`an upstream with ${circuits.length === 0 ? 'no known circuit' : `the circuits ${circuits.join(' and ')}`} is ${expected}`, async t => t.equal(healthOf(circuits.map(circuit => state({ circuit }))), expected))
}
