import { readFileSync } from 'node:fs'
import t from 'tap'
import { MODEL_MEMBERS } from '../../src/protocols/request/named-models.ts'

t.test('docs/keys.md lists the request members that name models', async t => {
  const text = readFileSync(new URL('../../docs/keys.md', import.meta.url), 'utf8')
  const [, list = ''] = /Members that name models: (.*)\./.exec(text) ?? []
  t.strictSame([...list.matchAll(/`([a-z_]+)`/g)].map(([, name = '']) => name.replaceAll('_', '')), [...MODEL_MEMBERS])
})
