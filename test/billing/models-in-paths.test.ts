import t from 'tap'
import { KEY } from '../support/gateway.ts'
import { bodyOf, startUpstream } from '../support/upstream.ts'
import { openBooks, priced } from './books.ts'

t.test('a batch, a prediction and what became of them go and are billed by their model', async t => {
  const asked: string[] = []
  const upstream = await startUpstream(t, (req, res) => {
    asked.push(`${req.method} ${req.url}`)
    void bodyOf(req).then(() => {
      res.setHeader('content-type', 'application/json').end('{"name":"models/m1/operations/o"}')
    })
  })
  const books = await openBooks(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ model: m, to: { upstream: up, model: m1 } }, { model: [m1, other], to: up }]
keys: [{ name: some, key: ${KEY}, models: [m, m1] }]
${priced('m1')}`)
  const ask = async (method: string, path: string) => {
    const answer = await fetch(books.gateway.url + path, {
      method,
      headers: { 'x-goog-api-key': KEY, 'content-type': 'application/json' },
      ...method === 'POST' ? { body: '{"batch":{}}' } : {},
    })
    await answer.text()
    return answer.status
  }
  t.equal(await ask('POST', '/v1beta/models/m:predictLongRunning'), 200)
  t.equal(await ask('POST', '/v1/models/m:batchGenerateContent'), 200)
  t.equal(await ask('GET', '/v1beta/models/m1/operations/o'), 200)
  t.equal(await ask('POST', '/v1/models/other:batchGenerateContent'), 403)
  t.strictSame(asked, [
    'POST /v1beta/models/m1:predictLongRunning',
    'POST /v1/models/m1:batchGenerateContent',
    'GET /v1beta/models/m1/operations/o',
  ])
  const rows = [...(await books.close()).values()]
  t.strictSame(
    rows.map(({ endpoint, model, costPico }) => [endpoint, model, costPico]),
    [
      ['other', 'm', null],
      ['other', 'm', null],
      ['generate.operation', 'm1', 0n],
      ['other', 'other', 0n],
    ],
    'what they use nobody tells; to ask costs nothing',
  )
})
