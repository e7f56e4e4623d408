import { dirname, join } from 'node:path'
import { hash } from 'node:crypto'
import t from 'tap'
import { KeyFile } from '../../src/auth/key-file.ts'
import { readKeys } from '../../src/auth/key-reader.ts'
import { PASSWORD, YAML, chat, startConsole } from './console/console.ts'

t.test('requests have the tags of their key, configured or created', async t => {
  const gateway = await startConsole(t, YAML.replace('name: test,', 'name: test, tags: { project: alpha },')
    + 'attribution: { tags: { project: [key] }, require: [project] }\n')
  const file = join(dirname(gateway.file), 'data', 'keys.db')
  const secret = 'sk-created-0123456789abcdef'
  using store = new KeyFile(file)
  const tags = new Map([['project', 'beta']])
  store.create({ name: 'made', digest: hash('sha256', secret, 'buffer'), models: null, limits: null, tags }, Date.now(), { actor: 'test', address: null })
  t.same(readKeys(file)[0]?.key.tags, tags)
  const admin = await gateway.login({ name: 'ops', password: PASSWORD })
  // A change in the console waits until the gateway has read the file.
  t.equal((await admin.ask('/keys', { method: 'POST', body: { name: 'other' } })).status, 201)
  t.equal((await chat(gateway)).status, 200)
  t.equal((await chat(gateway, secret)).status, 200)
  const { groups } = (await admin.ask('/billing?by=tag:project')).json as { groups: { name: string, figures: { requests: number } }[] }
  t.same(groups.map(({ name, figures }) => [name, figures.requests]).sort(), [['alpha', 1], ['beta', 1]])
  t.equal((await chat(gateway, 'sk-second-0123456789abcdef')).status, 400, 'a key without the tag')
})
