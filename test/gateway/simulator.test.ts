import { existsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import t from 'tap'
import { startSimulator } from '../../src/gateway/simulator.ts'

t.test('the socket of the simulator is in a folder with the mode 0700, and close removes socket and folder', {
  skip: process.platform === 'win32' && 'Windows has pipes with names instead',
}, async t => {
  const { socketPath, close } = await startSimulator()
  const folder = dirname(socketPath)
  t.ok(statSync(socketPath).isSocket())
  t.equal(statSync(folder).mode & 0o777, 0o700)
  await close()
  t.notOk(existsSync(folder))
})
