import t from 'tap'
import { callerOf, checkSite, isSafeMethod } from '../../../src/console/http/caller.ts'
import type { MountHost } from '../../../src/pipeline/parts/mount.ts'
import type { ClientRequest } from '../../../src/proxy/client/client.ts'

type Headers = Readonly<Record<string, string | string[]>>
const requestOf = (method: string, headers: Headers) => ({ method, headers }) as unknown as ClientRequest
const callerWith = (headers: Headers, trustedPeer: string | null = null) =>
  callerOf({ clientOf: () => ({ address: '192.0.2.1', trustedPeer }) } as unknown as MountHost, requestOf('GET', headers))

const CALLERS: readonly (readonly [what: string, headers: Headers, isTrusted: boolean, expected: object])[] = [
  ['the Host header', { host: 'a.example:81' }, false, { host: 'a.example:81', secure: false }],
  ['HTTP/2', { ':authority': 'b.example', host: 'a.example' }, false, { host: 'b.example' }],
  ['no host', {}, false, { host: '' }],
  ['forwarding headers of an untrusted peer', { host: 'a.example', 'x-forwarded-proto': 'https', 'x-forwarded-host': 'b.example' }, false, { host: 'a.example', secure: false }],
  ['a trusted proxy', { host: '10.0.0.1', 'x-forwarded-proto': 'HTTPS', 'x-forwarded-host': 'b.example' }, true, { host: 'b.example', secure: true }],
  ['a trusted proxy without TLS', { host: 'a.example', 'x-forwarded-proto': 'http' }, true, { host: 'a.example', secure: false }],
  ['two proxies', { host: 'a.example', 'x-forwarded-proto': 'https, http', 'x-forwarded-host': 'b.example , c.example' }, true, { host: 'b.example', secure: true }],
  ['repeated headers of a proxy', { host: 'a.example', 'x-forwarded-proto': ['https', 'http'] }, true, { secure: true }],
]

for (const [what, headers, isTrusted, expected] of CALLERS) {
  t.test(`host and scheme of the browser are found with ${what}`, async t => t.match(callerWith(headers, isTrusted ? '10.0.0.2' : null), { address: '192.0.2.1', ...expected }))
}

const CALLER = { address: '192.0.2.1', trustedPeer: null, secure: false, host: 'a.example:81' }
const SITES: readonly (readonly [method: string, headers: Headers, isAccepted: boolean])[] = [
  ['POST', {}, true], ['POST', { 'sec-fetch-site': 'same-origin', origin: 'http://a.example:81' }, true], ['POST', { origin: 'HTTP://A.example:81' }, true], ['POST', { origin: 'https://a.example:81' }, false], ['POST', { origin: 'http://a.example' }, false],
  ['POST', { origin: 'null' }, false], ['POST', { 'sec-fetch-site': 'none' }, false], ['GET', { 'sec-fetch-site': 'none' }, true], ['GET', { 'sec-fetch-site': 'cross-site' }, false], ['GET', { 'sec-fetch-site': 'same-site' }, false],
  ['GET', { origin: 'http://other.example' }, true], ['HEAD', { origin: 'http://other.example' }, true], ['DELETE', { origin: 'http://other.example' }, false], ['get', { origin: 'http://other.example' }, false],
]

for (const [method, headers, isAccepted] of SITES) {
  t.test(`${method} with ${JSON.stringify(headers)} is ${isAccepted ? 'accepted' : 'refused as a request from another site'}`, async t => {
    if (isAccepted) t.doesNotThrow(() => checkSite(requestOf(method, headers), CALLER))
    else t.throws(() => checkSite(requestOf(method, headers), CALLER), { code: 'forbidden' })
  })
}

t.test('an https origin is accepted on a TLS connection', async t => {
  t.doesNotThrow(() => checkSite(requestOf('POST', { origin: 'https://a.example:81' }), { ...CALLER, secure: true }))
})

t.test('only GET, HEAD and OPTIONS are safe methods', async t => {
  t.strictSame(['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE', ''].map(isSafeMethod), [true, true, true, false, false, false, false, false])
})
