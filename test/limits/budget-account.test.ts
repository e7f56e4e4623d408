import fc from 'fast-check'
import t from 'tap'
import { BudgetAccount, IN_FLIGHT_RETRY_MS } from '../../src/limits/budget-account.ts'

const date = (text: string) => Date.parse(text)

/** Reserves and spends an amount in one step. */
function spend(account: BudgetAccount, pico: bigint, now: number): void {
  const period = account.reserve(pico, now)
  period.reserved -= pico
  period.spent += pico
}

t.test('periods are UTC days and months', async t => {
  const bounds = (per: 'day' | 'month', now: string) => {
    const { start, end } = new BudgetAccount(per, 1n, date(now)).periodAt(date(now))
    return [start, end].map(ms => new Date(ms).toISOString().replace('T00:00:00.000Z', ''))
  }
  t.strictSame(bounds('day', '2026-11-21T23:59:59.999Z'), ['2026-11-21', '2026-11-22'])
  t.strictSame(bounds('day', '2026-11-22T00:00:00Z'), ['2026-11-22', '2026-11-23'])
  t.strictSame(bounds('month', '2026-12-31T23:59:59.999Z'), ['2026-12-01', '2027-01-01'])
  t.strictSame(bounds('month', '2028-02-29T12:00:00Z'), ['2028-02-01', '2028-03-01'])
})

t.test('a budget renews with the next period, to the millisecond', async t => {
  const account = new BudgetAccount('month', 100n, date('2026-11-21T12:00:00Z'))
  spend(account, 100n, date('2026-11-21T12:00:00Z'))
  const now = date('2026-11-30T23:00:00Z')
  t.equal(account.wait(1n, now), 3_600_000)
  t.equal(account.wait(1n, now + 3_599_999), 1)
  t.equal(account.wait(1n, now + 3_600_000), 0)
})

t.test('a total budget never renews', async t => {
  const account = new BudgetAccount('total', 100n, 0)
  spend(account, 100n, 0)
  t.equal(account.wait(1n, date('9999-01-01')), Infinity)
  t.equal(account.wait(0n, 0), 0, 'a cost of 0 always fits')
})

t.test('a request above the whole budget never fits', async t => {
  t.equal(new BudgetAccount('day', 100n, 0).wait(101n, 0), Infinity)
  t.equal(new BudgetAccount('day', 100n, 0).wait(100n, 0), 0)
})

t.test('the wait is short if the budget fits after running requests release their reservations', async t => {
  const account = new BudgetAccount('month', 100n, 0)
  account.reserve(60n, 0)
  t.equal(account.wait(50n, 0), IN_FLIGHT_RETRY_MS)
  t.equal(account.wait(100n, 0), IN_FLIGHT_RETRY_MS, 'the whole budget, after the reservation is released')
  const end = account.periodAt(0).end
  t.equal(account.wait(50n, end - 5), 5)
})

t.test('each period keeps its spend when the clock goes back', async t => {
  const noon = date('2026-11-21T12:00:00Z')
  const day = 86_400_000
  const account = new BudgetAccount('day', 100n, noon)
  spend(account, 100n, noon)
  t.ok(account.wait(1n, noon - 3_600_000) > 0, 'within the period')
  t.equal(account.wait(100n, noon + day), 0)
  spend(account, 40n, noon + day)
  t.ok(account.wait(1n, noon) > 0, 'the clock is back from the next period')
  t.equal(account.wait(100n, noon + 365 * day), 0)
  t.ok(account.wait(1n, noon) > 0, 'the clock is back from a year ahead')
  t.equal(account.wait(60n, noon + day), 0)
  t.ok(account.wait(61n, noon + day) > 0, 'the spend of the next day is kept')
})

t.test('the last four periods are kept, even if spend arrives out of order', async t => {
  const day = 86_400_000
  const account = new BudgetAccount('day', 100n, 5 * day)
  const spent = [[5, 50n], [4, 40n], [6, 60n], [7, 70n], [8, 80n]] as const
  for (const [at, pico] of spent) spend(account, pico, at * day)
  t.strictSame([5, 6, 7, 8].map(at => account.free(at * day)), [50n, 40n, 30n, 20n])
  t.equal(account.free(4 * day), 50n, 'before these, the oldest of the four counts')
})

t.test('a clock that goes back to a period that is no longer kept does not renew the budget', async t => {
  const day = 86_400_000
  const account = new BudgetAccount('day', 100n, 0)
  for (let i = 0; i < 20; i++) spend(account, 100n, i * day)
  for (let i = 0; i < 20; i++) t.ok(account.wait(1n, i * day) > 0, `day ${i}`)
  t.equal(account.wait(100n, 20 * day), 0)
})

t.test('a short jump of the clock to before the first day renews no later day', async t => {
  const day = 86_400_000
  const account = new BudgetAccount('day', 100n, 10 * day)
  for (let i = 10; i < 16; i++) spend(account, 100n, i * day)
  t.ok(account.wait(1n, 9 * day) > 0, 'the oldest period that is kept counts')
  for (let i = 10; i < 16; i++) t.ok(account.wait(1n, i * day) > 0, `day ${i}`)
})

t.test('a clock that goes back to before the first period does not renew the budget', async t => {
  const day = 86_400_000
  for (let spentDays = 1; spentDays <= 4; spentDays++) {
    const account = new BudgetAccount('day', 100n, 100 * day)
    for (let i = 0; i < spentDays; i++) spend(account, 100n, (100 + i) * day)
    for (let ago = 1; ago <= 10; ago++) t.ok(account.wait(1n, (100 - ago) * day) > 0, `${ago} days ago, after ${spentDays}`)
    t.ok(account.wait(1n, (99 + spentDays) * day) > 0, 'also when the clock is right again')
    t.equal(account.wait(100n, (100 + spentDays) * day), 0, 'the next day has a new budget')
  }
})

t.test('a clock that goes back to a day without requests uses the budget of the next kept day', async t => {
  const day = 86_400_000
  const account = new BudgetAccount('day', 100n, 100 * day)
  spend(account, 30n, 100 * day)
  spend(account, 80n, 105 * day)
  account.reserve(10n, 105 * day)
  t.equal(account.free(103 * day), 10n, 'the budget of the next kept day, with its reservations')
  t.equal(account.free(104 * day), 100n, 'the day after has a new budget')
  t.equal(account.free(105 * day), 10n)
})

t.test('after a start with the date set back, spend of the next day counts, unless the ledger has spend of the current day', async t => {
  const day = 86_400_000
  const account = new BudgetAccount('day', 100n, 99 * day)
  t.ok(account.restore(100n, 100 * day))
  account.closeRestore()
  t.ok(account.wait(1n, 99 * day) > 0)
  const known = new BudgetAccount('day', 100n, 99 * day)
  known.restore(100n, 100 * day)
  known.restore(20n, 99 * day)
  known.closeRestore()
  t.equal(known.free(99 * day), 80n, 'the spend of that day in the ledger counts')
})

t.test('past spend is restored only until closeRestore', async t => {
  const now = date('2026-11-21T12:00:00Z')
  const account = new BudgetAccount('month', 100n, now)
  t.ok(account.restore(30n, date('2026-11-01')))
  t.ok(account.restore(30n, date('2026-11-21')))
  t.ok(account.restore(99n, date('2026-10-31')), 'spend of another month')
  t.equal(account.periodAt(now).spent, 60n)
  account.closeRestore()
  t.notOk(account.restore(30n, now))
  t.equal(account.periodAt(now).spent, 60n)

  const busy = new BudgetAccount('month', 100n, now)
  busy.reserve(1n, now)
  t.notOk(busy.restore(30n, now))
})

t.test('past spend in any order is summed for the current period', async () => {
  const now = date('2026-11-21T12:00:00Z')
  const row = fc.tuple(fc.integer({ min: -40, max: 5 }), fc.bigInt({ min: 1n, max: 9n }))
  fc.assert(fc.property(fc.array(row, { maxLength: 80 }), rows => {
    const account = new BudgetAccount('day', 100n, now)
    for (const [day, pico] of rows) account.restore(pico, now + day * 86_400_000)
    const today = rows.filter(([day]) => day === 0).reduce((sum, [, pico]) => sum + pico, 0n)
    return account.periodAt(now).spent === today
  }))
})

t.test('past spend outside of the kept periods renews no budget', async t => {
  const day = 86_400_000
  const account = new BudgetAccount('day', 100n, 100 * day)
  for (const ago of [9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 9]) account.restore(100n, (100 - ago) * day)
  for (let ago = 0; ago < 15; ago++) t.ok(account.wait(1n, (100 - ago) * day) > 0, `${ago} days ago`)

  const early = new BudgetAccount('day', 100n, 100 * day)
  for (let ahead = 1; ahead < 9; ahead++) early.restore(1n, (100 + ahead) * day)
  spend(early, 100n, 100 * day)
  t.equal(early.wait(99n, 101 * day), 0)
  t.ok(early.wait(1n, 100 * day) > 0)
  t.equal(early.wait(100n, 120 * day), 0)
})

t.test('an account is idle while nothing is spent or reserved', async t => {
  const account = new BudgetAccount('day', 100n, 0)
  t.ok(account.idle())
  const period = account.reserve(5n, 0)
  t.notOk(account.idle())
  period.reserved -= 5n
  t.ok(account.idle())
  period.spent += 1n
  t.notOk(account.idle())
})
