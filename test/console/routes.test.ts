import { readFileSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { KEY } from '../support/gateway.ts'
import { chat, startConsole, YAML } from '../behaviour/console/console.ts'
import type { Configuration, Routes } from '../../src/console/api/routes.ts'
import { PASSWORD } from '../support/operator.ts'

const OPS = { name: 'ops', password: PASSWORD }

t.test('the active configuration is shown as written except for secrets, and each warning has its line', async t => {
  const yaml = `# The gateway of research.\n${YAML}
  # The end.
`.replace('upstreams: {', 'upstreams: { idle: { url: https://idle.example },')
  const gateway = await startConsole(t, yaml)
  const browser = await gateway.login(OPS)
  const { text, warnings, reloads } = (await browser.ask('/configuration')).json as Configuration
  const file = readFileSync(gateway.file, 'utf8').split('\n')
  const lines = text.split('\n')
  t.equal(lines.length, file.length)
  t.same(lines.filter((line, n) => line !== file[n]).length, 3, 'only the lines of the two passwords and of the keys are changed')
  t.match(warnings, [{ severity: 'warning', message: 'no route names this upstream', line: file.findIndex(line => line.includes('idle')) + 1 }])
  t.same(reloads, [])
})

t.test('reloads are listed with actor, changes and problems, without secrets, and are in the audit list', async t => {
  const gateway = await startConsole(t)
  const browser = await gateway.login(OPS)
  await gateway.change(YAML.replace('"other*"', '"else*"').replace(KEY, 'hunter-hunter-hunter'))
  await gateway.change(YAML.replace('"other*"', '[').replace(KEY, 'hunter-hunter-hunter'))
  const { text, reloads, failure } = (await browser.ask('/configuration')).json as Configuration
  t.match(reloads, [
    { applied: false, by: 'test', problems: [/gateway\.yaml:\d+:\d+: /] },
    { applied: true, by: 'test', changes: ['routes: changed', 'keys.test: changed'] },
  ])
  const changed = reloads[1]?.diff?.filter(({ kind }) => kind === 'removed' || kind === 'added').map(({ kind, text: line }) => `${kind} ${line}`) ?? []
  t.match(changed, [/removed .*"other\*"/, /added .*"else\*"/, /removed keys: .*\*\*\*/, /added keys: .*\*\*\*/])
  t.ok(reloads[0]?.diff?.some(({ kind }) => kind === 'added'))
  t.notMatch(JSON.stringify([text, reloads, failure]), 'hunter')
  const { entries } = (await browser.ask('/audit')).json as { entries: object[] }
  t.match(entries, [{ action: 'config.rejected', actor: 'test' }, { action: 'config.reloaded', actor: 'test', detail: 'routes: changed, keys.test: changed' }])
})

t.test('a rejected file that is not text is shown as unreadable', async t => {
  const gateway = await startConsole(t)
  const browser = await gateway.login(OPS)
  writeFileSync(gateway.file, Buffer.from([0xff, 0xfe, 0xfd]))
  await gateway.change()
  const { failure, reloads } = (await browser.ask('/configuration')).json as Configuration
  t.match(failure, { text: null })
  t.match(reloads, [{ applied: false, diff: null }])
})

t.test('a route with a glob lists the matching models that are configured or were requested', async t => {
  const gateway = await startConsole(t, YAML.replace('models: {', 'models: { sim-priced: { price: { input: 1 } },'))
  await chat(gateway, KEY, 'sim-used')
  const browser = await gateway.login(OPS)
  const { routes } = (await browser.ask('/routes')).json as Routes
  t.match(routes, [{ models: ['demo', 'sim*'] }, { models: ['other*'] }])
  t.same(routes.map(({ served }) => served), [['sim-priced', 'sim-used'], []])
})
