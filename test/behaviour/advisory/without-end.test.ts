import t from 'tap'
import type { Test } from 'tap'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'

/*
 * Well-formed bodies with many small parts, each of which takes time to parse: a quadratic
 * parser would delay all other requests.
 */

/** A gateway that renames models. @returns a function that sends a request; `seen` = the bodies that the upstream gets */
async function setUp(t: Test) {
  const seen: string[] = []
  const upstream = await startUpstream(t, async (req, res) => {
    seen.push(String(await bodyOf(req)))
    res.writeHead(200, { 'content-type': 'application/json' }).end('{}')
  })
  const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: { upstream: up, model: renamed } }]
`)
  const ask = (path: string, body: string) => fetch(gateway.url + path, {
    method: 'POST', body, headers: { 'x-api-key': KEY, 'content-type': 'application/json' },
  })
  return { seen, ask }
}

t.test('a body that repeats a JSON member more than 100 times gets 400', async t => {
  const { seen, ask } = await setUp(t)
  const chat = (body: string) => ask('/v1/chat/completions', body)
  const times = (count: number, member: string) => `{${member.repeat(count)}"model":"m","messages":[]}`
  for (const member of ['"model":"m",', '"stream_options":{},', '"n":1,']) {
    const answer = await chat(times(500_000, member))
    t.equal(answer.status, 400, member)
    t.match(await answer.json(), { error: { code: 'invalid_json', message: /more than 100 times/ } })
  }
  t.equal(seen.length, 0)
  t.equal((await chat(times(99, '"model":"m",'))).status, 200)
  t.equal(seen[0], times(99, '"model":"renamed",').replace('"m"', '"renamed"'))
  const many = '"include_usage":false,'.repeat(200)
  const options = `"stream":true,"stream_options":{${many}"include_usage":true},`
  t.equal((await chat(times(1, options))).status, 200)
  t.match(seen[1], options, 'repeated members inside stream_options are forwarded unchanged')
})

t.test('a batch of more than 10,000 requests gets 400', async t => {
  const { seen, ask } = await setUp(t)
  const batch = (count: number) => ask(
    '/v1beta/models/m:batchEmbedContents',
    `{"requests":[${'{"model":"models/m"},'.repeat(count - 1)}{"model":"models/m"}]}`,
  )
  const refused = await batch(10_001)
  t.equal(refused.status, 400)
  t.match(await refused.json(), { error: { message: /more than 10000 requests/ } })
  t.equal(seen.length, 0)
  t.equal((await batch(10_000)).status, 200)
  t.equal(seen[0]?.match(/models\/renamed/g)?.length, 10_000)
})
