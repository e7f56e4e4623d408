import t from 'tap'
import type { Audit } from '../../../src/console/api/keys.ts'
import type { Configuration } from '../../../src/console/api/routes.ts'
import { startPostgres, withoutPostgres } from '../../support/postgres.ts'
import { startTcpProxy } from '../../support/tcp-proxy.ts'
import { PASSWORD, startConsole, YAML } from '../../behaviour/console/console.ts'
import type { Browser, TestConsole } from '../../behaviour/console/console.ts'
import { withFolder } from '../../support/folder.ts'

t.test('each console shows the reloads of all gateways, even a reload that happened while PostgreSQL was unreachable', {
  skip: withoutPostgres, timeout: 120_000,
}, async t => {
  const postgres = await startPostgres(t)
  const proxy = await startTcpProxy(t, postgres.port)
  const yaml = (name: string, url: string) => `${YAML}cluster: { instance: ${name}, postgres: "${url}" }\n`
  const urls = { gw1: postgres.url(), gw2: postgres.url(proxy.port) }
  const start = (name: keyof typeof urls) => startConsole(withFolder(t), yaml(name, urls[name]))
  const [one, two] = [await start('gw1'), await start('gw2')]
  const reload = async (gateway: TestConsole, name: keyof typeof urls, models: string) =>
    t.equal((await gateway.change(yaml(name, urls[name]).replace('[demo, "sim*"]', models))).applied, true)
  const reloads = async (browser: Browser, count: number) => {
    for (;;) {
      const { reloads: shown } = (await browser.ask('/configuration')).json as Configuration
      if (shown.length >= count) return shown.map(({ gateway, applied, diff }) => [gateway, applied, diff?.find(({ kind }) => kind === 'added')?.text])
    }
  }
  await reload(one, 'gw1', '[demo, one]')
  const [first, second] = [await one.login({ name: 'ops', password: PASSWORD }), await two.login({ name: 'ops', password: PASSWORD })]
  const ofFirst = ['gw1', true, 'routes: [{ model: [demo, one], to: sim }, { model: "other*", to: sim }]']
  t.strictSame(await reloads(second, 1), [ofFirst])

  proxy.cut()
  await reload(two, 'gw2', '[demo, two]')
  const alone = await two.login({ name: 'ops', password: PASSWORD })
  const ofSecond = ['gw2', true, 'routes: [{ model: [demo, two], to: sim }, { model: "other*", to: sim }]']
  t.strictSame(await reloads(alone, 1), [ofSecond], 'while PostgreSQL is unreachable, a console shows the reloads of its gateway')
  t.strictSame(await reloads(first, 1), [ofFirst])
  proxy.heal()
  t.strictSame(await reloads(first, 2), [ofSecond, ofFirst], 'the first console gets the reload without a request to the second console')

  for (;;) {
    const { entries } = (await first.ask('/audit')).json as Audit
    const details = entries.filter(({ action }) => action === 'config.reloaded').map(({ detail }) => detail)
    if (details.length < 2) continue
    t.strictSame(new Set(details), new Set(['gateway gw1: routes: changed', 'gateway gw2: routes: changed']))
    break
  }
})
