import t from 'tap'
import { KEY, startTestGateway } from '../support/gateway.ts'
import { startUpstream } from '../support/upstream.ts'
import { connect } from '../support/wire.ts'

const OTHER = 'sk-other-0123456789abcdef'
let seen: { url: string | undefined; headers: NodeJS.Dict<string | string[]> } | null = null
const upstream = await startUpstream(t, (req, res) => {
  seen = { url: req.url, headers: req.headers }
  res.end('{}')
})
const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${upstream.url}", auth: { bearer: up-secret } } }
routes: [{ to: up }]
keys: [{ name: test, key: ${KEY} }, { name: other, key: ${OTHER}, models: [x] }]
`)

for (const [place, query, headers] of [
  ['Authorization: Bearer', '', { authorization: `Bearer ${KEY}` }],
  ['authorization in another case', '', { authorization: `bEARER   ${KEY} ` }],
  ['x-api-key', '', { 'x-api-key': KEY }],
  ['x-goog-api-key', '', { 'x-goog-api-key': KEY }],
  ['api-key', '', { 'api-key': KEY }],
  ['?api-key=', `?a=1&api%2Dkey=${KEY}&b=2`, {}],
  ['api-key, with a foreign one in Authorization', '', { 'authorization': 'Bearer foreign', 'api-key': KEY }],
  ['?key=', `?a=1&key=${KEY}&b=2`, {}],
  ['?key=, escaped', `?%6bey=${KEY.replace('-', '%2D')}&a=1&b=2`, {}],
  ['x-api-key, with something of another vendor in Authorization', '', {
    'authorization': 'Bearer ey.x', 'x-api-key': KEY,
  }],
  ['Authorization, with a foreign x-api-key', '', {
    'authorization': `Bearer ${KEY}`, 'x-api-key': 'foreign',
  }],
  ['a WebSocket subprotocol, though no WebSocket is asked for', '', {
    'sec-websocket-protocol': `realtime, openai-insecure-api-key.${KEY}`,
  }],
] as const) {
  t.test(`hazard: a key in ${place} is known, and does not go up`, async t => {
    seen = null
    const answer = await fetch(`${gateway.url}/v1/files${query}`, { headers })
    t.equal(answer.status, 200)
    t.equal(seen!.headers.authorization, 'Bearer up-secret')
    t.equal(seen!.headers['x-api-key'], undefined)
    t.equal(seen!.headers['x-goog-api-key'], undefined)
    t.equal(seen!.headers['api-key'], undefined)
    t.equal(seen!.url, query === '' ? '/v1/files' : '/v1/files?a=1&b=2')
    t.notMatch(JSON.stringify(seen), /sk-test|foreign/)
    const line = await gateway.waitForLog(each => each.request === answer.headers.get('x-gateway-request-id'))
    t.equal(line.key, 'test')
    t.notMatch(JSON.stringify(gateway.logged), /sk-test|up-secret|foreign/)
  })
}

t.test('of two valid keys the one that the specification names first counts', async t => {
  const answer = await fetch(`${gateway.url}/v1/files`, {
    headers: { 'authorization': `Bearer ${KEY}`, 'x-api-key': OTHER },
  })
  t.equal(answer.status, 200)
  const other = await fetch(`${gateway.url}/v1/files?key=${KEY}`, { headers: { 'x-api-key': OTHER } })
  t.equal(other.status, 403)
})

t.test('two keys in one kind of place are no way round a refusal', async t => {
  const client = await connect(t, gateway.url)
  client.send(
    `GET /v1/files HTTP/1.1\r\nHost: x\r\nX-Api-Key: wrong\r\nX-Api-Key: ${KEY}\r\nConnection: close\r\n\r\n`,
  )
  t.match(await client.until(/\}\}$/), /^HTTP\/1\.1 401 /)
})

t.test('no keys: nobody gets in', async t => {
  const closed = await startTestGateway(
    t, `upstreams: { up: { url: "${upstream.url}" } }\nroutes: [{ to: up }]\nkeys: []\n`,
  )
  for (
    const headers of [{}, { 'x-api-key': KEY }, { authorization: 'Bearer' }, { authorization: 'Bearer ' }]
  ) {
    t.equal((await fetch(`${closed.url}/v1/files`, { headers })).status, 401)
  }
  t.equal((await fetch(`${closed.url}/api/status`)).status, 200)
})

t.test('auth: open lets anybody in, and still takes their credentials off', async t => {
  const open = await startTestGateway(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
auth: open
keys: [{ name: limited, key: ${OTHER}, models: [x] }]
`)
  for (const headers of [{}, { authorization: 'Bearer whatever' }]) {
    seen = null
    t.equal((await fetch(`${open.url}/v1/files`, { headers })).status, 200)
    t.equal(seen!.headers.authorization, undefined)
  }
  const limited = await fetch(`${open.url}/v1/files`, { headers: { authorization: `Bearer ${OTHER}` } })
  t.equal(limited.status, 403, 'a known key keeps its limits')
})

// The gateway that all share keeps the process alive until then.
t.end()
