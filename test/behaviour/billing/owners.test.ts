import t from 'tap'
import { gateway as command } from '../../cli/command.ts'
import { KEY } from '../../support/gateway.ts'
import { PASSWORD, YAML, chat, startConsole } from '../console/console.ts'

interface Group {
  readonly names: readonly (string | null)[]
  readonly figures: { readonly requests: number }
}

interface Sum {
  readonly owner: string | null
  readonly requests: number
}

t.test('billing and `usage --by owner` agree on the owner of a key that changes hands', async t => {
  const gateway = await startConsole(t, YAML.replace(`key: ${KEY} }`, `key: ${KEY}, owner: ops }`))
  const admin = await gateway.login({ name: 'ops', password: PASSWORD })
  const create = async (name: string, owner: string) =>
    ((await admin.ask('/keys', { method: 'POST', body: { name, owner } })).json as { key: string }).key
  const moved = await create('moved', 'research')
  const revoked = await create('revoked', 'research')
  for (const key of [moved, moved, revoked, KEY, 'sk-second-0123456789abcdef']) await chat(gateway, key)
  t.equal((await admin.ask('/keys/moved', { method: 'PATCH', body: { owner: 'growth' } })).status, 204)
  t.equal((await admin.ask('/keys/revoked', { method: 'DELETE' })).status, 204)
  await chat(gateway, moved)
  const expected = [[null, 1], ['growth', 3], ['ops', 1], ['research', 1]]

  const billing = async () => ((await admin.ask('/billing?by=owner')).json as { groups: Group[] }).groups
    .map(({ names: [owner], figures: { requests } }) => [owner, requests]).sort()
  const usage = async () => (await command(['usage', '--by', 'owner', '--json', '--config', gateway.file])).stdout.trim().split('\n')
    .map(line => JSON.parse(line) as Sum).map(({ owner, requests }) => [owner, requests]).sort()
  // The ledger gets the row of the last request after its response.
  while ((await usage()).reduce((sum, [, requests]) => sum + Number(requests), 0) < 6);
  t.strictSame(await usage(), expected)
  t.strictSame(await billing(), expected)
  t.match((await command(['usage', '--by', 'owner,key', '--config', gateway.file])).stdout, /growth +moved +3 /)
})
