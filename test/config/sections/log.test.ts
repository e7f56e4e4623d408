import t from 'tap'
import type { Test } from 'tap'
import { load as loadText, LEAST } from '../../behaviour/config/loading.ts'

const LEDGER = 'auth: open\nledger: { file: gateway.db }\n'

function load(t: Test, log: string, ledger = LEDGER) {
  return loadText(t, `log: ${log}\n${LEAST}${ledger}`).config.log
}

t.test('log.bodies names keys, and for each the time and the size limit of logged bodies', async t => {
  t.same(load(t, '{ level: warn }'), { level: 'warn', bodies: [] })
  t.same(load(t, '{ bodies: [{ key: team-a, keep: 7d }, { key: "test-*", keep: 1h, limit: 1mb }] }').bodies, [
    { key: 'team-a', keep: 7 * 86_400_000, limit: 65_536 },
    { key: 'test-*', keep: 3_600_000, limit: 1_048_576 },
  ])
})

t.test('the error about an invalid value of log.bodies has line and column', async t => {
  t.throws(() => load(t, '{ bodies: [{ key: a }] }'), /gateway\.yaml:1:\d+.*keep/s, '`keep` is required')
  t.throws(() => load(t, '{ bodies: [{ key: a, keep: soon }] }'), /gateway\.yaml:1:33/)
  t.throws(
    () => load(t, '{ bodies: [{ key: a, keep: 1d, limit: 17mb }] }'), /gateway\.yaml:1:44.*at most 16mb/s,
  )
  t.throws(
    () => load(t, '{ bodies: [{ key: a, keep: 1d, limit: 0b }] }'), /gateway\.yaml:1:44.*at least 1b/s,
  )
  t.throws(
    () => load(t, '{ bodies: [{ key: a, keep: 1d }] }', 'auth: open\n'), /gateway\.yaml:1:\d+.*ledger:/s,
  )
})
