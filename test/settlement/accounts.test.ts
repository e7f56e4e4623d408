import { join } from 'node:path'
import pino from 'pino'
import t from 'tap'
import { openAccounts } from '../../src/settlement/accounts.ts'
import { systemClock } from '../../src/clock.ts'
import { loadConfig } from '../../src/config/load.ts'
import { draft, row } from '../ledger/rows.ts'
import { limits } from '../limits/limits-of.ts'

const USD = 10n ** 12n

t.test('a budget that is new knows what was spent to this moment, in the file or not', async t => {
  const dir = t.testdir({
    'gateway.yaml': `upstreams: { demo: { simulator: true } }
routes: [{ to: demo }]
auth: open
ledger: { file: ledger.db }
`,
  })
  const { config } = loadConfig(join(dir, 'gateway.yaml'), {})
  const accounts = openAccounts(config, { clock: systemClock, log: pino({ level: 'silent' }) })
  t.teardown(() => accounts.close())
  const { ledger, limiter } = accounts
  const now = { startedAt: Date.now(), key: 'team' }
  const entry = ledger?.open(() => draft('a', { ...now, costPico: USD }))
  await ledger?.flush()
  ledger?.close(row('a', { ...now, costPico: 2n * USD }), entry)
  ledger?.open(() => draft('b', { ...now, costPico: 3n * USD }))
  const key = { name: 'team', limits: limits({ budget: { usd: '6', per: 'total' } }) }
  accounts.recall([key], null)
  const ask = async (pico: bigint) => (await limiter.admit({ key, model: 'm', estimate: { tokens: 1, pico } })).ok
  t.equal(await ask(USD + 1n), false)
  t.equal(await ask(USD), true)
})
