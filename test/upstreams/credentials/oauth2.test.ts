import t from 'tap'
import { fetchOAuth2Token } from '../../../src/upstreams/credentials/oauth2.ts'
import { freePort } from '../../support/free-port.ts'
import { sendJson, startTokenServer } from '../../support/token-server.ts'

const REQUEST = { method: 'POST', path: '/', headers: [], body: null }
const NEVER = new AbortController().signal

t.test('client credentials give a token', async t => {
  const server = await startTokenServer(t)
  const fetched = await fetchOAuth2Token({ ...AUTH, tokenUrl: server.url, scope: 'models' }, NEVER)
  t.strictSame(fetched.authorization.headersFor(REQUEST, new URL(server.url)), ['authorization', 'Bearer token-1'])
  t.equal(fetched.lifetimeMs, 3_600_000)
  const [{ headers, body }] = server.requests as [typeof server.requests[0]]
  t.equal(headers.authorization, `Basic ${Buffer.from('me%3Aus:s%2Fecret').toString('base64')}`)
  t.strictSame([...body], [['scope', 'models'], ['grant_type', 'client_credentials']])
})

const AUTH = {
  kind: 'oauth2', headers: ['authorization'], tokenUrl: '', clientId: 'me:us', clientSecret: 's/ecret', scope: null,
} as const

for (const [what, fault, reason] of [
  ['refuses the client', res => sendJson(res, 401, { error: 'invalid_client', error_description: 's/ecret' }), 'the token server responded 401 (invalid_client)'],
  ['repeats the secret as its error', res => sendJson(res, 400, { error: 'Secret s/ecret' }), 'the token server responded 400'],
  ['is down', res => sendJson(res, 503, 'down'), 'the token server responded 503'],
  ['sends a page', res => res.writeHead(200, { 'content-type': 'text/html' }).end('<p>s/ecret'), 'the token server sent no valid token'],
  ['sends no token', res => sendJson(res, 200, { token_type: 'Bearer' }), 'the token server sent no valid token'],
  ['sends a token with a line break', res => sendJson(res, 200, { token_type: 'Bearer', access_token: 'a\nb' }), 'the secret has a character that is not allowed in a header'],
  ['redirects', res => res.writeHead(302, { location: '/other' }).end(), 'the token server responded 302'],
  ['sends without end', res => endless(res), 'the response of the token server is too long'],
  ['hangs up', res => res.destroy(), /cannot be reached: /],
] as readonly (readonly [string, (res: import('node:http').ServerResponse) => void, string | RegExp])[]) {
  t.test(`a token server that ${what} gives no token`, async t => {
    const server = await startTokenServer(t)
    server.fault = fault
    const error = await fetchOAuth2Token({ ...AUTH, tokenUrl: server.url }, NEVER).catch((error: unknown) => error) as Error
    t.match(error, { code: 'credential_unavailable', cause: { message: reason } })
    t.notMatch(`${error.stack}${String(error.cause)}`, 's/ecret')
  })
}

t.test('an unreachable token server is reported', async t => {
  const tokenUrl = `http://127.0.0.1:${await freePort()}/token`
  await t.rejects(fetchOAuth2Token({ ...AUTH, tokenUrl }, NEVER), { cause: { message: 'the token server cannot be reached: ECONNREFUSED' } })
})

function endless(res: import('node:http').ServerResponse): void {
  res.writeHead(200, { 'content-type': 'application/json' })
  const more = (): void => {
    while (!res.destroyed && res.write('x'.repeat(16_384)));
  }
  res.on('drain', more)
  more()
}
