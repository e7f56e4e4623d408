import { dirname, join } from 'node:path'
import t from 'tap'
import { KeyReader } from '../../../src/auth/key-reader.ts'
import { PASSWORD, startConsole } from './console.ts'

t.test('a block of a key gets 503, also if it is repeated, until every gateway has confirmed the block', async t => {
  const gateway = await startConsole(t)
  const admin = await gateway.login({ name: 'ops', password: PASSWORD })
  // Acts like a hanging gateway, which does not read later changes.
  const other = new KeyReader(join(dirname(gateway.file), 'data', 'keys.db'), 0)
  t.teardown(() => other.close())
  other.begin()
  t.equal((await admin.ask('/keys/test', { method: 'DELETE' })).status, 503)
  t.equal((await admin.ask('/keys/test', { method: 'DELETE' })).status, 503, 'still not confirmed')
  other.end()
  t.equal((await admin.ask('/keys/test', { method: 'DELETE' })).status, 204)
})
