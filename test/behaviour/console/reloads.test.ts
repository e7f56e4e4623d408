import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import type { Configuration } from '../../../src/console/api/routes.ts'
import { gateway as run, listening } from '../../cli/command.ts'
import { KEY } from '../../support/gateway.ts'
import { PASSWORD, cheapHash } from '../../support/operator.ts'
import { Browser } from './console.ts'

t.test('every worker shows each reload once, with the user who requested the reload', async t => {
  // A short path, because the path of the control socket can have at most 100 bytes.
  const dir = mkdtempSync(join(tmpdir(), 'reloads-'))
  t.teardown(() => rmSync(dir, { recursive: true }))
  const file = `${dir}/gateway.yaml`
  const yaml = (models: string, upstream = 'sim') => `
server: { listen: 127.0.0.1:0, workers: 2 }
console: { listen: 127.0.0.1:0, users: [{ name: ops, password: "${cheapHash(PASSWORD)}", role: admin }] }
upstreams: { sim: { simulator: true } }
routes: [{ model: ${models}, to: ${upstream} }]
keys: [{ name: test, key: ${KEY} }]
ledger: { file: ledger.db }
`
  writeFileSync(file, yaml('"*"'))
  const running = await listening(t, ['serve', '--config', file])
  writeFileSync(file, yaml('other'))
  t.match(await run(['reload', '--config', file]), { code: 0, stdout: 'Reloaded:\n  routes: changed\n' })
  writeFileSync(file, yaml('other', 'none'))
  t.match(await run(['reload', '--config', file]), { code: 2 })
  const browser = new Browser(String(running.lines.find(({ msg }) => msg === 'listening')?.['console']))
  t.equal((await browser.login({ name: 'ops', password: PASSWORD })).status, 201)
  // Each new connection goes to the next worker.
  for (let n = 0; n < 4; n++) {
    const { reloads } = (await browser.ask('/configuration', { headers: { connection: 'close' } })).json as Configuration
    t.match(reloads, [
      { applied: false, by: /^command line: /, problems: [/gateway\.yaml:5:/] },
      { applied: true, by: /^command line: /, changes: ['routes: changed'] },
    ])
    t.equal(reloads.length, 2)
  }
  const { entries } = (await browser.ask('/audit')).json as { entries: { action: string, actor: string }[] }
  t.match(entries.filter(({ action }) => action.startsWith('config.')), [
    { action: 'config.rejected', actor: /^command line: / }, { action: 'config.reloaded', actor: /^command line: / },
  ])
  running.child.kill('SIGTERM')
  await running.ended
})
