import t from 'tap'
import { KEY, startTestGateway } from '../support/gateway.ts'
import { bodyOf, startUpstream } from '../support/upstream.ts'

t.test('a key that a body gives without end is refused, and costs nothing', async t => {
  const seen: string[] = []
  const upstream = await startUpstream(t, async (req, res) => {
    seen.push(String(await bodyOf(req)))
    res.writeHead(200, { 'content-type': 'application/json' }).end('{}')
  })
  const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: { upstream: up, model: renamed } }]
`)
  const ask = (body: string) => fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST', body, headers: { 'x-api-key': KEY, 'content-type': 'application/json' },
  })
  const times = (count: number, member: string) => `{${member.repeat(count)}"model":"m","messages":[]}`
  for (const member of ['"model":"m",', '"stream_options":{},', '"n":1,']) {
    const answer = await ask(times(500_000, member))
    t.equal(answer.status, 400, member)
    t.match(await answer.json(), { error: { code: 'invalid_json', message: /more than 100 times/ } })
  }
  t.equal(seen.length, 0)
  t.equal((await ask(times(99, '"model":"m",'))).status, 200)
  t.equal(seen[0], times(99, '"model":"renamed",').replace('"m"', '"renamed"'))
  const many = '"include_usage":false,'.repeat(200)
  const options = `"stream":true,"stream_options":{${many}"include_usage":true},`
  t.equal((await ask(times(1, options))).status, 200)
  t.match(seen[1], options, 'left as it is')
})
