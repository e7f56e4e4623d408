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
  ['api-key, with a foreign key in Authorization', '', { 'authorization': 'Bearer foreign', 'api-key': KEY }],
  ['?key=', `?a=1&key=${KEY}&b=2`, {}],
  ['?key=, escaped', `?%6bey=${KEY.replace('-', '%2D')}&a=1&b=2`, {}],
  ['x-api-key, with a token of another vendor in Authorization', '', {
    'authorization': 'Bearer ey.x', 'x-api-key': KEY,
  }],
  ['Authorization, with a foreign x-api-key', '', {
    'authorization': `Bearer ${KEY}`, 'x-api-key': 'foreign',
  }],
  ['a WebSocket subprotocol of a request that opens no WebSocket', '', {
    'sec-websocket-protocol': `realtime, openai-insecure-api-key.${KEY}`,
  }],
] as const) {
  t.test(`hazard: a key in ${place} is accepted, and is not forwarded`, async t => {
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

for (const [place, query, headers] of [
  ['x_api_key', '', { x_api_key: KEY }],
  ['any header', '', { 'x-mine': KEY }],
  ['any header, with a scheme', '', { 'x-mine': `Token ${KEY}` }],
  ['any header, with other values around the key', '', { 'x-mine': `a=1; key="${KEY}"` }],
  ['?KEY=', `&KEY=${KEY}`, {}],
  ['?api_key=', `&api_key=${KEY}`, {}],
  ['any parameter', `&mine=${KEY}`, {}],
  ['any parameter, escaped', `&mine=${KEY.replace('-', '%2D')}`, {}],
  ['any parameter, with other text before the key', `&mine=Bearer+${KEY}`, {}],
  ['the name of a parameter', `&${KEY}`, {}],
] as const) {
  t.test(`hazard: a second copy of the key in ${place} is not forwarded`, async t => {
    for (const [name, value] of [['authorization', `Bearer ${KEY}`], ['x-api-key', KEY]] as const) {
      seen = null
      const response = await fetch(`${gateway.url}/v1/files?a=1${query}&b=2`, { headers: { ...headers, [name]: value, 'x-other': 'stays' } })
      t.equal(response.status, 200)
      t.equal(seen!.url, '/v1/files?a=1&b=2')
      t.equal(seen!.headers['x-other'], 'stays')
      t.notMatch(JSON.stringify(seen), /sk-test/)
    }
  })
}

t.test('hazard: with auth: open, headers and parameters named like a key are not forwarded', async t => {
  const open = await startTestGateway(t, `
auth: open
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
`)
  for (const [query, headers] of [
    [`&KEY=${KEY}`, {}], [`&api_key=${KEY}`, {}], [`&Api-Key=${KEY}`, {}], [`&x_api_key=${KEY}`, {}], [`&apikey=${KEY}`, {}],
    ['', { x_api_key: KEY }], ['', { api_key: KEY }], ['', { apikey: KEY }], ['', { 'x-apikey': KEY }],
  ] as const) {
    seen = null
    const response = await fetch(`${open.url}/v1/files?a=1${query}&monkey=2`, { headers })
    t.equal(response.status, 200)
    t.equal(seen!.url, '/v1/files?a=1&monkey=2')
    t.notMatch(JSON.stringify(seen), /sk-test/)
  }
})

t.test('a short word sent as a key does not remove equal values elsewhere in the request', async t => {
  const open = await startTestGateway(t, `
auth: open
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
`)
  await fetch(`${open.url}/v1/files?alt=json&a=json-1`, {
    headers: { 'authorization': 'Bearer json', 'x-api-key': '1', 'x-format': 'json', 'x-retries': '1' },
  })
  t.equal(seen!.url, '/v1/files?alt=json&a=json-1')
  t.match(seen!.headers, { 'x-format': 'json', 'x-retries': '1' })
})

t.test('hazard: if a request has two keys, no copy of either key is forwarded', async t => {
  const wrong = 'sk-wrong-0123456789'
  const response = await fetch(`${gateway.url}/v1/files?a=1&b=${wrong}&c=${KEY}`, {
    headers: { 'authorization': `Bearer ${wrong}`, 'x-api-key': KEY, 'x-mine': wrong, 'x-yours': KEY },
  })
  t.equal(response.status, 200)
  t.equal(seen!.url, '/v1/files?a=1')
  t.notMatch(JSON.stringify(seen), /sk-(?:test|wrong)/)
})

t.test('hazard: a media type sent as a key does not select one of two content-type headers', async t => {
  seen = null
  const client = await connect(t, gateway.url)
  client.send([
    'POST /v1/files HTTP/1.1', 'host: gateway', `authorization: Bearer ${KEY}`, 'x-api-key: application/json', 'connection: close',
    'content-type: application/json', 'content-type: text/plain', 'content-length: 2', '', '{}',
  ].join('\r\n'))
  await client.until(/ 200 OK/)
  t.equal(seen!.headers['content-type'], undefined)
})

t.test('of two valid keys, Authorization takes precedence over x-api-key, and x-api-key over the query', async t => {
  const answer = await fetch(`${gateway.url}/v1/files`, {
    headers: { 'authorization': `Bearer ${KEY}`, 'x-api-key': OTHER },
  })
  t.equal(answer.status, 200)
  const other = await fetch(`${gateway.url}/v1/files?key=${KEY}`, { headers: { 'x-api-key': OTHER } })
  t.equal(other.status, 403)
})

t.test('a request with a wrong and a valid key in the same header is refused', async t => {
  const client = await connect(t, gateway.url)
  client.send(
    `GET /v1/files HTTP/1.1\r\nHost: x\r\nX-Api-Key: wrong\r\nX-Api-Key: ${KEY}\r\nConnection: close\r\n\r\n`,
  )
  t.match(await client.until(/\}\}$/), /^HTTP\/1\.1 401 /)
})

t.test('with an empty list of keys, every request for a model gets 401', async t => {
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

t.test('with auth: open, any client is accepted, and the key of the client is not forwarded', async t => {
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
  t.equal(limited.status, 403, 'a configured key keeps its limits')
})

// Ends the test file, because the shared gateway keeps the process alive.
t.end()
