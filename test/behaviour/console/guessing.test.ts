import t from 'tap'
import { KEY } from '../../support/gateway.ts'
import { PASSWORD, startConsole } from './console.ts'

t.test('a login by key does not reset the limit on failed passwords from the same address', async t => {
  const { browser, login } = await startConsole(t)
  await login({ name: 'ops', password: PASSWORD })
  const statuses: number[] = []
  for (let round = 0; round < 3; round++) {
    for (let i = 0; i < 4; i++) {
      const { status } = await browser().login({ name: 'ops', password: 'wrong' })
      statuses.push(status)
    }
    t.equal((await browser().login({ key: KEY })).status, 201, 'login by key is still possible')
  }
  t.equal(statuses.filter(status => status === 401).length, 5, 'after five failed passwords, logins have to wait')
})
