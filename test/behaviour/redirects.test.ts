import t from 'tap'
import { startTestGateway } from '../support/gateway.ts'
import { startUpstream } from '../support/upstream.ts'

/*
 * A client that follows a redirect of the upstream to the host of the upstream bypasses the gateway and sends
 * the key of the gateway.
 */

/** A Location header of the upstream, and the expected Location at the gateway. */
interface Case {
  readonly said: (origin: string) => string
  readonly told: string | ((origin: string) => string)
}

const own = (path: string) => (origin: string) => origin + path
const plain = (value: string) => () => value

const SHARED: Record<string, Case> = {
  'another host': { said: plain('https://files.example/a?key=1#b'), told: 'https://files.example/a?key=1#b' },
  'the same host in another case': {
    said: origin => `${origin.replace('localhost', 'LocalHost')}/p/v1/files/a`, told: '/p/v1/files/a',
  },
  'an invalid address': { said: plain('http://['), told: 'http://[' },
  'a relative name': { said: plain('b?c=d'), told: 'b?c=d' },
  'a relative name, with a key': { said: plain('b?key=sk-up&c=d'), told: 'b?c=d' },
  'a query with a key': { said: plain('?key=sk-up#e'), told: '#e' },
  'another scheme': { said: plain('gs://files/a?key=1'), told: 'gs://files/a?key=1' },
  'an empty address': { said: plain(''), told: '' },
}

const PLACES: { readonly upstream: (origin: string) => string, readonly cases: Record<string, Case> }[] = [
  {
    upstream: origin => `{ url: "${origin}" }`,
    cases: {
      ...SHARED,
      'its own host': { said: own('/v1/files/a?alt=media'), told: '/v1/files/a?alt=media' },
      'its own host, with a key': { said: own('/v1/files/a?key=sk-up&alt=media#b'), told: '/v1/files/a?alt=media#b' },
      'its own host, with https instead of http': {
        said: origin => `${origin.replace('http:', 'https:')}/v1/files/a`, told: '/v1/files/a',
      },
      'its own host without a path': { said: own(''), told: '/' },
      'its own host without a scheme': { said: origin => `${origin.replace('http:', '')}/v1/a`, told: '/v1/a' },
      'a path without a host': { said: plain('/v1/files/a?alt=media'), told: '/v1/files/a?alt=media' },
      'a path that looks like a host': { said: origin => `${origin}//evil.example/v1`, told: '/evil.example/v1' },
      'another port': {
        said: plain('http://localhost:1/v1/files/a'), told: 'http://localhost:1/v1/files/a',
      },
      'its own host, with a user': {
        said: origin => `${origin.replace('//', '//u:p@')}/v1/files/a`, told: '/v1/files/a',
      },
    },
  },
  {
    upstream: origin => `{ url: "${origin}/api/", v1: /v4 }`,
    cases: {
      'a path below its prefix': { said: own('/api/v4/files/a?b=c'), told: '/v1/files/a?b=c' },
      'a path below its prefix, with another version': { said: own('/api/v5/files/a'), told: '/v5/files/a' },
      'its prefix and version only': { said: own('/api/v4'), told: '/v1' },
      'a path below its prefix, without a host': { said: plain('/api/v4/files/a'), told: '/v1/files/a' },
      'a path that only begins like its prefix': { said: own('/apis/v4/files/a'), told: '/apis/v4/files/a' },
      'a path outside its prefix': { said: own('/files/a'), told: '/files/a' },
    },
  },
]

for (const { upstream: entry, cases } of PLACES) {
  for (const [what, { said, told }] of Object.entries(cases)) {
    t.test(`the client gets a valid location if ${entry('…')} redirects to ${what}`, async t => {
      let origin = ''
      const upstream = await startUpstream(t, (_req, res) => {
        const address = said(origin)
        res.writeHead(302, {
          'Location': address, 'Content-Location': address, 'Operation-Location': address, 'X-Other': address,
        }).end()
      })
      origin = upstream.url.replace('127.0.0.1', 'localhost')
      const gateway = await startTestGateway(t, `
auth: open
upstreams: { up: ${entry(origin)} }
routes: [{ to: up }]
`)
      const { status, headers } = await fetch(`${gateway.url}/v1/files/x`, { redirect: 'manual' })
      t.equal(status, 302)
      const expected = typeof told === 'string' ? told : told(origin)
      for (const name of ['location', 'content-location', 'operation-location']) {
        t.equal(headers.get(name), expected, name)
      }
      t.equal(headers.get('x-other'), said(origin))
    })
  }
}

/** Redirects of an upstream to the address of the request. */
const BACK: Record<string, (origin: string, asked: string) => string> = {
  'its own address': (origin, asked) => origin + asked,
  'its own address in the other scheme': (origin, asked) => origin.replace('http:', 'https:') + asked,
  'its own path': (_origin, asked) => asked,
  'its own address, with a fragment': (origin, asked) => `${origin}${asked}#a`,
}

for (const [what, back] of Object.entries(BACK)) {
  t.test(`an upstream that redirects a request to ${what} gives 502`, async t => {
    const upstream = await startUpstream(t, (req, res) => {
      req.resume()
      res.writeHead(308, { location: back(`http://${req.headers.host}`, req.url ?? '') }).end()
    })
    const gateway = await startTestGateway(t, `
auth: open
upstreams:
  up: { url: "${upstream.url}/api", v1: /v4 }
  demo: { simulator: true }
routes: [{ model: both, to: [up, demo] }, { to: up }]
`)
    const ask = (model: string) => fetch(`${gateway.url}/v1/chat/completions?a=b%7cc|d`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model, messages: [] }),
      redirect: 'manual',
    })
    const answer = await ask('one')
    t.equal(answer.status, 502)
    t.match(await answer.json(), { error: { code: 'upstream_invalid' } })
    await gateway.waitForLog(line => line['msg'] === 'exchange')
    t.match(gateway.logged.find(line => line['msg'] === 'exchange'), {
      end: 'error', error: 'upstream_invalid', cause: /^308 to http.*\/api\/v4\/chat\/completions$/,
    })
    const other = await ask('both')
    t.equal(other.headers.get('x-gateway-upstream'), 'demo', 'the next target gets the request')
    await other.text()
  })
}

t.test('a redirect to another query of the same path, or with 303, is forwarded', async t => {
  const upstream = await startUpstream(t, (req, res) => {
    req.resume()
    const isSeeOther = req.method === 'POST'
    res.writeHead(isSeeOther ? 303 : 307, { location: `${req.url}${isSeeOther ? '' : '?page=2'}` }).end()
  })
  const gateway = await startTestGateway(t, `
auth: open
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
`)
  for (const [method, status] of [['GET', 307], ['POST', 303]] as const) {
    const answer = await fetch(`${gateway.url}/v1/files/x`, { method, redirect: 'manual' })
    t.equal(answer.status, status)
  }
})
