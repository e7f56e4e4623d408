import { join } from 'node:path'
import pino from 'pino'
import t from 'tap'
import type { Test } from 'tap'
import { systemClock } from '../../../src/base/clock.ts'
import type { Limits } from '../../../src/config/key-types.ts'
import { loadConfig } from '../../../src/config/load/load.ts'
import type { Config } from '../../../src/config/types.ts'
import { newlyBudgeted, openAccounts } from '../../../src/pipeline/parts/accounts.ts'
import type { Accounts, AccountsOptions } from '../../../src/pipeline/parts/accounts.ts'
import type { LimitedKey } from '../../../src/limits/types.ts'
import { limits } from '../../behaviour/limits/limits-of.ts'
import { draft, row } from '../../ledger/rows.ts'
import { FakeClock } from '../../support/fake-clock.ts'

const USD = 10n ** 12n
const DAY = 86_400_000

function configIn(t: Test): Config {
  const dir = t.testdir({
    'gateway.yaml': `upstreams: { demo: { simulator: true } }
routes: [{ to: demo }]
auth: open
ledger: { file: ledger.db }
`,
  })
  return loadConfig(join(dir, 'gateway.yaml'), {}).config
}

function open(config: Config, options: Partial<AccountsOptions> = {}): Accounts {
  return openAccounts(config, { clock: systemClock, log: pino({ level: 'silent' }), ...options })
}

const daily = limits({ budget: { usd: '8', per: 'day' } })
const monthly = limits({ budget: { usd: '8', per: 'month' } })

t.test('a new budget counts the earlier spend, whether the ledger has written it or not', async t => {
  const accounts = open(configIn(t))
  t.teardown(() => accounts.close())
  const { ledger, limiter } = accounts
  const now = { startedAt: Date.now(), key: 'team' }
  const entry = ledger?.open(() => draft('a', { ...now, costPico: USD }))
  await ledger?.flush()
  ledger?.close(row('a', { ...now, costPico: 2n * USD }), entry)
  ledger?.open(() => draft('b', { ...now, costPico: 3n * USD }))
  const key = { name: 'team', limits: limits({ budget: { usd: '6', per: 'total' } }) }
  accounts.restoreBudgets([key], null)
  const ask = async (pico: bigint) => (await limiter.admit({ key, model: 'm', estimate: { tokens: 1, pico } })).ok
  t.equal(await ask(USD + 1n), false)
  t.equal(await ask(USD), true)
})

t.test('after a restart, budgets count the spend of the ledger', async t => {
  const config = configIn(t)
  const before = open(config)
  // 1 USD last year, 2 this month, 4 today.
  const spent = { '2025-12-31T12:00:00Z': 1n, '2026-01-01T00:00:00Z': 2n, '2026-01-21T00:00:00Z': 4n }
  for (const [at, usd] of Object.entries(spent)) {
    before.ledger?.close(row(at, { key: 'team', model: 'm', startedAt: Date.parse(at), costPico: usd * USD }))
  }
  await before.close()
  // The FakeClock starts on January 1.
  const clock = new FakeClock()
  clock.advance(20.5 * DAY)
  const left = { day: 4n, month: 2n, total: 1n } as const
  const team = (own: Limits | null): LimitedKey => ({ name: 'team', limits: own })

  const leaves = async (
    what: string, usd: bigint, changes: Partial<Config>, key: LimitedKey, stored: LimitedKey[] = [],
  ) => {
    const accounts = open({ ...config, ...changes }, { clock, stored })
    const ask = async (pico: bigint) =>
      (await accounts.limiter.admit({ key, model: 'm', estimate: { tokens: 1, pico } })).ok
    t.strictSame([await ask(usd * USD + 1n), await ask(usd * USD)], [false, true], what)
    await accounts.close()
  }
  const keysOf = (...keys: LimitedKey[]) => ({ keys: keys as unknown as Config['keys'] })
  for (const per of ['day', 'month', 'total'] as const) {
    const set = { budget: { usd: '8', per } }
    const inside = limits({ models: { '*': set } })
    const own = team(limits(set))
    await leaves(`${per}: the key's own`, left[per], keysOf(own), own)
    const stored = team(inside)
    await leaves(`${per}: a stored key's, of its models`, left[per], {}, stored, [stored])
    const free = team(null)
    await leaves(`${per}: by default`, left[per], { ...keysOf(free), limits: inside }, free)
  }
  const own = team(monthly)
  await leaves('of a name that is stored, too, the configuration counts', 2n, keysOf(own), own, [team(daily)])
})

t.test('only the spend of a budget with a new key, model or period is read from the ledger', async t => {
  const dearer = limits({ budget: { usd: '9', per: 'day' } })
  const inside = (glob: string) => limits({ models: { [glob]: { budget: { usd: '1', per: 'day' } } } })
  const cases: [what: string, before: Limits | null, after: Limits | null, isNew: boolean][] = [
    ['none before', null, daily, true],
    ['none after', daily, null, false],
    ['another amount', daily, dearer, false],
    ['another period', daily, monthly, true],
    ['of some models', null, inside('gpt-*'), true],
    ['of the same models', inside('gpt-*'), inside('gpt-*'), false],
    ['of other models', inside('gpt-*'), inside('o*'), true],
    ['of some models beside that of all', daily, inside('gpt-*'), true],
  ]
  for (const [what, before, after, isNew] of cases) {
    const key = (own: Limits | null) => ({ name: 'team', limits: own })
    const had = { keys: [key(before)], limits: null }
    const has = { keys: [key(after)], limits: null }
    t.equal(newlyBudgeted(had, has).length, isNew ? 1 : 0, what)
    const byDefault = (defaults: Limits | null) => ({ keys: [key(null)], limits: defaults })
    t.equal(newlyBudgeted(byDefault(before), byDefault(after)).length, isNew ? 1 : 0, `${what}, by default`)
  }
  t.equal(newlyBudgeted({ keys: [], limits: null }, { keys: [{ name: 'new', limits: daily }], limits: null }).length,
    1, 'a key that is new')
})
