import t from 'tap'
import { errorTypeOf, interruptedSettlement } from '../../src/telemetry/settlement.ts'
import { row } from '../ledger/rows.ts'

for (const [more, expected] of [
  [{}, null], [{ end: 'error', error: 'upstream_reset', status: 502 }, 'upstream_reset'], [{ end: 'error', error: null, status: 400 }, '400'], [{ end: 'error', error: null, status: null }, null], [{ end: 'client_gone', error: null, status: 200 }, null],
] as const) {
  t.test(`the error type of ${JSON.stringify(more)} is ${expected}`, async t => t.equal(errorTypeOf(interruptedSettlement(row('a', more))), expected))
}

t.test('the settlement of a request that a killed process left contains only the ledger row', async t => {
  const killed = row('a', { end: 'interrupted' })
  t.strictSame(interruptedSettlement(killed), { row: killed, failure: null, refusedBy: null, continued: [], call: null, isStream: false, overheadMs: null })
})
