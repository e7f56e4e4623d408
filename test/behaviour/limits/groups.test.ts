import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { openReader } from '../../../src/ledger/read/file-reader.ts'
import { gateway as command } from '../../cli/command.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { startUpstream } from '../../support/upstream.ts'

const upstream = await startUpstream(t, (_req, res) => {
  res.setHeader('content-type', 'application/json')
  res.end('{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}')
})

const YAML = `
server: { listen: 127.0.0.1:0 }
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
models: { m: { price: { per_request: 1 } }, n: { price: { per_request: 1 } } }
groups:
  company: { limits: { budget: { usd: 3, per: total } } }
  research: { parent: company, models: [m], limits: { budget: { usd: 2, per: total } } }
keys:
  - { name: a, key: sk-a-0123456789abcdef, group: research, owner: ann }
  - { name: b, key: sk-b-0123456789abcdef, group: research }
  - { name: c, key: sk-c-0123456789abcdef, group: company }
ledger: { file: ledger.db }
`

async function ask(base: string, key: string, model = 'm'): Promise<{ status: number, text: string }> {
  const response = await fetch(`${base}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [] }),
  })
  return { status: response.status, text: await response.text() }
}

const [A, B, C] = ['a', 'b', 'c'].map(name => `sk-${name}-0123456789abcdef`) as [string, string, string]

t.test('keys share the budget of their group and its parents, also after a restart', async t => {
  // Not in the directory of the configuration, which is created again for each gateway.
  const directory = mkdtempSync(join(tmpdir(), 'groups-'))
  t.teardown(() => rmSync(directory, { recursive: true }))
  const file = join(directory, 'ledger.db')
  const yaml = YAML.replace('ledger.db', file)
  const gateway = await startTestGateway(t, yaml)
  t.equal((await ask(gateway.url, A, 'n')).status, 403, 'a key can use only models that its group can use')
  t.equal((await ask(gateway.url, C, 'n')).status, 200)
  t.equal((await ask(gateway.url, A)).status, 200)
  t.equal((await ask(gateway.url, B)).status, 200)
  const refused = await ask(gateway.url, B)
  t.match(refused, { status: 429, text: /group company|group research/ })
  t.match(await ask(gateway.url, C), { status: 429, text: /the group company/ }, 'the spend of other keys counts')
  t.notMatch(refused.text, /sk-|\ba\b/, 'no other key is named')
  await gateway.close()

  const reader = openReader(file)
  t.strictSame(reader.sums({ key: '*' }, ['group', 'key']).filter(({ costPico }) => costPico !== 0n)
    .map(({ groups, costPico }) => [...groups, costPico]), [
    ['company', 'c', 1_000_000_000_000n],
    ['research', 'a', 1_000_000_000_000n],
    ['research', 'b', 1_000_000_000_000n],
  ])
  t.strictSame(new Set(Array.from(reader.rows({ key: 'a' }), ({ owner }) => owner)), new Set(['ann']))
  reader[Symbol.dispose]()
  const { stdout } = await command(['usage', '--by', 'group', '--config', gateway.file])
  t.match(stdout, /^GROUP/)
  t.match(stdout, /research +/)

  // The spend of the first two keys counts for another key of the group.
  const next = await startTestGateway(t, yaml.replace('name: b,', 'name: d,'))
  t.match(await ask(next.url, B), { status: 429, text: /the group/ })
  t.match(await ask(next.url, C), { status: 429, text: /the group company/ })
})

t.test('if a reload gives a group a budget, the past spend of its keys counts', async t => {
  const gateway = await startTestGateway(t, YAML.replace(/^ {2}company: .*$/m, '  company: {}').replace(/, limits: .*usd: 2.*$/m, ' }'))
  for (let n = 0; n < 3; n++) t.equal((await ask(gateway.url, A)).status, 200)
  t.equal((await gateway.change(YAML)).applied, true)
  t.match(await ask(gateway.url, B), { status: 429, text: /the group/ })
})
