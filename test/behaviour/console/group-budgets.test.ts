import t from 'tap'
import type { Budgets } from '../../../src/console/api/billing.ts'
import type { Live } from '../../../src/console/api/panel.ts'
import { KEY } from '../../support/gateway.ts'
import { chat, PASSWORD, startConsole, YAML } from './console.ts'

t.test('users, but not key holders, see the budgets of groups and the alerts about these budgets', async t => {
  const yaml = YAML.replace(`name: test, key: ${KEY}`, `name: test, key: ${KEY}, group: test, limits: { budget: { usd: 2.2, per: total } }`)
    .replace('models: {', 'models: { sim: { price: { per_request: 1 } },')
  const gateway = await startConsole(t, `${yaml}
groups:
  company: { limits: { budget: { usd: 2, per: month } } }
  test: { parent: company, limits: { budget: { usd: 2.1, per: total } } }
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
  t.strictSame(await spent(admin), [['test', null, 'total', 2 / 2.2], [null, 'company', 'month', 1], [null, 'test', 'total', 2 / 2.1]])
  t.strictSame(await spent(holder), [['test', null, 'total', 2 / 2.2]])
  const alerts = async (asking: typeof admin) => ((await asking.ask('/live')).json as Live).concerns.filter(({ kind }) => kind === 'budget')
  const shown = async (asking: typeof admin) => (await alerts(asking)).map(({ message, subject }) => [message, subject])
  const ofKey = ['Budget 90 % used: test, $2.2 in total', 'test']
  const ofGroups = [['Budget used up: group company, $2 per month', 'company'], ['Budget 95 % used: group test, $2.1 in total', 'test']]
  t.strictSame(await shown(admin), [ofGroups[0], ofKey, ofGroups[1]])
  t.strictSame(await shown(holder), [ofKey], 'a group with the name of the key is not shown')
  t.equal(new Set((await alerts(admin)).map(({ id }) => id)).size, 3, 'a key and a group with one name have two alerts')
})
