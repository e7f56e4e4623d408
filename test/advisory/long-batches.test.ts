import t from 'tap'
import { KEY, startTestGateway } from '../support/gateway.ts'
import { bodyOf, startUpstream } from '../support/upstream.ts'

t.test('a batch of more requests than anybody answers is refused, and holds up nobody', async t => {
  const seen: string[] = []
  const upstream = await startUpstream(t, async (req, res) => {
    seen.push(String(await bodyOf(req)))
    res.writeHead(200, { 'content-type': 'application/json' }).end('{}')
  })
  const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: { upstream: up, model: renamed } }]
`)
  const ask = (count: number) => fetch(`${gateway.url}/v1beta/models/m:batchEmbedContents`, {
    method: 'POST', headers: { 'x-goog-api-key': KEY, 'content-type': 'application/json' },
    body: `{"requests":[${'{"model":"models/m"},'.repeat(count - 1)}{"model":"models/m"}]}`,
  })
  const refused = await ask(10_001)
  t.equal(refused.status, 400)
  t.match(await refused.json(), { error: { message: /more than 10000 requests/ } })
  t.equal(seen.length, 0)
  t.equal((await ask(10_000)).status, 200)
  t.equal(seen[0]?.match(/models\/renamed/g)?.length, 10_000)
})
