import t from 'tap'
import { KEY } from '../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'
import { openBooks } from './books.ts'

t.test('embeddings have the price of the catalogue, also at an upstream with a private URL', async t => {
  const { url } = await startUpstream(t, async (req, res) => {
    await bodyOf(req)
    res.setHeader('content-type', 'application/json')
    res.end(JSON.stringify({ object: 'list', data: [], usage: { prompt_tokens: 1_000, total_tokens: 1_000 } }))
  })
  const books = await openBooks(t, `upstreams: { up: { url: "${url}" } }\nroutes: [{ to: up }]\n`)
  const response = await fetch(`${books.gateway.url}/v1/embeddings`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'text-embedding-3-small', input: 'x' }),
  })
  t.equal(response.status, 200)
  await response.text()
  const [row] = (await books.drain()).values()
  // 1,000 tokens at 0.02 USD per million.
  t.match(row, { endpoint: 'embeddings', costPico: 20_000_000n, source: 'reported' })
})
