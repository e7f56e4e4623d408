import { copyFileSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { PASSWORD, chat, startConsole } from './console.ts'

t.test('after the file of the key store is replaced, a key can be revoked in the new file', async t => {
  const gateway = await startConsole(t)
  const admin = await gateway.login({ name: 'ops', password: PASSWORD })
  const made = await admin.ask('/keys', { method: 'POST', body: { name: 'leaked' } })
  const { key } = made.json as { key: string }
  const store = join(dirname(gateway.file), 'data', 'keys.db')
  // Restores the store as a user does: moves a complete copy into its place.
  for (const part of ['', '-wal']) copyFileSync(store + part, `${store}.copy${part}`)
  for (const part of ['-shm', '-wal']) rmSync(store + part)
  for (const part of ['-wal', '']) renameSync(`${store}.copy${part}`, store + part)
  t.equal((await chat(gateway, key)).status, 200)
  t.equal((await admin.ask('/keys/leaked', { method: 'DELETE' })).status, 204)
  t.equal((await chat(gateway, key)).status, 401)
})
