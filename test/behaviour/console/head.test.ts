import { request } from 'node:http'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { buffer } from 'node:stream/consumers'
import type { IncomingMessage } from 'node:http'
import t from 'tap'
import { KEY } from '../../support/gateway.ts'
import { startConsole } from './console.ts'

t.test('HEAD of a CSV file gets 404, so that the file is not generated', async t => {
  const { login } = await startConsole(t)
  const holder = await login({ key: KEY })
  for (const path of ['/logs.csv', '/billing.csv']) {
    t.equal((await holder.ask(path, { method: 'HEAD' })).status, 404, path)
    t.equal((await holder.ask(path)).status, 200, path)
  }
  t.equal((await holder.ask('/panel', { method: 'HEAD' })).status, 200)
})

t.test('a CSV file is sent as an attachment with a file name', async t => {
  const { login } = await startConsole(t)
  const holder = await login({ key: KEY })
  for (const [path, name] of [
    ['logs.csv', 'logs.csv'],
    ['billing.csv?from=2026-02-01T00:00:00Z&to=2026-03-01T00:00:00Z', 'billing-2026-02.csv'],
    ['billing.csv?from=2026-02-01T00:00:00Z&to=2026-02-08T00:00:00Z', 'billing-2026-02-01--2026-02-07.csv'],
    ['billing.csv?from=2026-02-03T00:00:00Z&to=2026-02-03T12:00:00Z', 'billing-2026-02-03.csv'],
  ]) {
    const { headers } = await holder.ask(`/${path}`)
    t.equal(headers.get('content-disposition'), `attachment; filename="${name}"`)
    t.equal(headers.get('content-type'), 'text/csv; charset=utf-8')
  }
})

t.test('JSON is compressed with a coding that the client accepts', async t => {
  const { login, console: origin } = await startConsole(t)
  const { cookie } = await login({ key: KEY })
  const ask = async (encoding: string) => {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    const headers = { cookie: cookie ?? '', 'accept-encoding': encoding }
    request(`${origin}/console/api/openapi.json`, { headers }, resolve).once('error', reject).end()
    const response = await promise
    return { coding: response.headers['content-encoding'], body: await buffer(response) }
  }
  const plain = await ask('identity')
  t.equal(plain.coding, undefined)
  const brotli = await ask('gzip, br')
  t.equal(brotli.coding, 'br')
  t.ok(brotli.body.length < plain.body.length / 3)
  t.strictSame(brotliDecompressSync(brotli.body), plain.body)
  const zipped = await ask('gzip')
  t.equal(zipped.coding, 'gzip')
  t.strictSame(gunzipSync(zipped.body), plain.body)
})
