import t from 'tap'
import { Alarm } from '../../../src/ledger/write/alarm.ts'
import type { LedgerFailureCode } from '../../../src/ledger/ledger-failure.ts'

const MINUTE = 60_000

t.test('a failure is reported when its code changes and once a minute, even if the date changes', async t => {
  let now = 0
  let date = Date.UTC(2026, 10, 21)
  const told: string[] = []
  const alarm = new Alarm(({ code }) => told.push(code), { monotonic: () => now, wall: () => date })
  const raise = (code: LedgerFailureCode, after: number): string[] => {
    now += after
    alarm.raise({ code, message: '' })
    return told.splice(0)
  }
  t.strictSame(raise('full', 0), ['full'])
  t.strictSame(raise('full', MINUTE - 1), [])
  t.strictSame(raise('locked', 0), ['locked'])
  date -= 1_000 * MINUTE
  t.strictSame(raise('full', 1), ['full'], 'the date was set back')
  date += 2_000 * MINUTE
  t.strictSame(raise('full', 1), [], 'and forward')
  t.strictSame(alarm.last, { code: 'full', message: '', at: date })
  alarm.end()
  t.strictSame(raise('full', 1), ['full'])
})
