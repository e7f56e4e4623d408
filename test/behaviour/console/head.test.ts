import t from 'tap'
import { KEY } from '../../support/gateway.ts'
import { startConsole } from './console.ts'

t.test('no table is made for somebody who wants its head alone', async t => {
  const { login } = await startConsole(t)
  const holder = await login({ key: KEY })
  for (const path of ['/logs.csv', '/billing.csv']) {
    t.equal((await holder.ask(path, { method: 'HEAD' })).status, 404, path)
    t.equal((await holder.ask(path)).status, 200, path)
  }
  t.equal((await holder.ask('/panel', { method: 'HEAD' })).status, 200)
})

t.test('a table comes as a file to keep, under its name', async t => {
  const { login } = await startConsole(t)
  const holder = await login({ key: KEY })
  for (const name of ['logs.csv', 'billing.csv']) {
    const { headers } = await holder.ask(`/${name}`)
    t.equal(headers.get('content-disposition'), `attachment; filename="${name}"`)
    t.equal(headers.get('content-type'), 'text/csv; charset=utf-8')
  }
})
