import { dirname, join } from 'node:path'
import t from 'tap'
import { KeyReader } from '../../../src/auth/key-reader.ts'
import { PASSWORD, startConsole } from './console.ts'

t.test('a block of a key that a gateway has not confirmed stays unconfirmed when the block is repeated', async t => {
  const gateway = await startConsole(t)
  const admin = await gateway.login({ name: 'ops', password: PASSWORD })
  // As a gateway that hangs: it holds the state of before.
  const other = new KeyReader(join(dirname(gateway.file), 'data', 'keys.db'), 0)
  t.teardown(() => other.close())
  other.begin()
  t.equal((await admin.ask('/keys/test', { method: 'DELETE' })).status, 503)
  t.equal((await admin.ask('/keys/test', { method: 'DELETE' })).status, 503, 'nor is it by now')
  other.end()
  t.equal((await admin.ask('/keys/test', { method: 'DELETE' })).status, 204)
})
