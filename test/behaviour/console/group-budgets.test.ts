import t from 'tap'
import type { Budgets } from '../../../src/console/api/billing.ts'
import type { Live } from '../../../src/console/api/panel.ts'
import { KEY } from '../../support/gateway.ts'
import { chat, PASSWORD, startConsole, YAML } from './console.ts'

t.test('budgets of groups are listed beside those of keys and raise alerts, but not for holders of keys', async t => {
  const yaml = YAML.replace(`name: test, key: ${KEY}`, `name: test, key: ${KEY}, group: test, limits: { budget: { usd: 9, per: total } }`)
    .replace('models: {', 'models: { sim: { price: { per_request: 1 } },')
  const gateway = await startConsole(t, `${yaml}
groups:
  company: { limits: { budget: { usd: 2, per: month } } }
  test: { parent: company, limits: { budget: { usd: 3, per: total } } }
  idle: {}
`)
  for (const expected of [200, 200, 429]) t.equal((await chat(gateway, KEY, 'sim')).status, expected)
  const [admin, holder] = [await gateway.login({ name: 'ops', password: PASSWORD }), await gateway.login({ key: KEY })]
  const spent = async (asking: typeof admin) => {
    for (;;) {
      const { budgets } = (await asking.ask('/budgets')).json as Budgets
      if (budgets.every(({ spent_usd: usd }) => usd === '2')) return budgets.map(({ key, group, per, used }) => [key, group, per, used])
    }
  }
  t.strictSame(await spent(admin), [['test', null, 'total', 2 / 9], [null, 'company', 'month', 1], [null, 'test', 'total', 2 / 3]])
  t.strictSame(await spent(holder), [['test', null, 'total', 2 / 9]])
  const alerts = async (asking: typeof admin) =>
    ((await asking.ask('/live')).json as Live).concerns.filter(({ kind }) => kind === 'budget').map(({ message, subject }) => [message, subject])
  t.strictSame(await alerts(admin), [['Budget used up: group company, $2 per month', 'company']])
  t.strictSame(await alerts(holder), [], 'also where a group has the name of the key')
})
