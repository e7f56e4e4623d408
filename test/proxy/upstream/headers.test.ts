import fc from 'fast-check'
import t from 'tap'
import type { Upstream } from '../../../src/config/types.ts'
import { appendVia, clientHeaders, headerRules, upstreamHeaders } from '../../../src/proxy/upstream/headers.ts'
import type { HeaderSource } from '../../../src/proxy/upstream/headers.ts'
import { headerValue } from '../../../src/proxy/http/raw-headers.ts'
import { PLAIN_UPSTREAM } from '../../support/upstream-address.ts'

const UPSTREAM: Upstream = {
  ...PLAIN_UPSTREAM, auth: { kind: 'static', headers: ['x-up-key'], value: 'secret' }, headers: { 'x-default': 'd' },
}
const OWN = { version: '1.2.3', requestId: 'id-1', limits: [] }
const FIXED = [
  'x-default', 'd', 'x-gateway-request-id', 'id-1', 'via', '1.1 model-gateway',
]

function up(
  raw: readonly string[], source: Partial<HeaderSource> = {}, { upstream = UPSTREAM, contentLength = null as number | null } = {},
): string[] {
  return upstreamHeaders(headerRules(upstream), { raw, requestId: 'id-1', ...source }, contentLength)
}

t.test('request headers: order, spelling and repetition are kept', async t => {
  t.strictSame(up(['X-B', '1', 'x-a', '2', 'X-B', '3']), ['X-B', '1', 'x-a', '2', 'X-B', '3', ...FIXED])
})

t.test('request headers: headers that Connection lists are dropped, in any case and spacing', async t => {
  const raw = [
    'Connection', 'close , X-One,x-TWO', 'X-One', '1', 'x-two', '2', 'X-Three', '3', 'Connection', 'x-three',
  ]
  t.strictSame(up(raw), FIXED)
})

t.test('Connection cannot drop content-type and content-encoding', async t => {
  const raw = [
    'Content-Type', 'application/json', 'Connection', 'content-type, Content-Encoding, x-one',
    'Content-Encoding', 'br', 'X-One', '1',
  ]
  t.strictSame(up(raw), ['Content-Type', 'application/json', 'Content-Encoding', 'br', ...FIXED])
  const down = clientHeaders(raw, { own: OWN, httpVersion: '1.1', dropContentLength: false })
  t.equal(headerValue(down, 'content-type'), 'application/json')
  t.equal(headerValue(down, 'content-encoding'), 'br')
  t.equal(headerValue(down, 'x-one'), null)
})

t.test('request headers: only the first of two content-type headers is forwarded', async t => {
  t.strictSame(
    up(['Content-Type', 'application/json', 'content-type', 'multipart/form-data; boundary=x']),
    ['Content-Type', 'application/json', ...FIXED],
  )
})

t.test('request headers: the gateway sets content-length, and sets accept-encoding if it reads the response', async t => {
  const out = up(['Content-Length', '999', 'Accept-Encoding', 'br', 'Content-Encoding', 'gzip'], {
    uncompressed: true, dropContentEncoding: true,
  }, { contentLength: 5 })
  t.equal(headerValue(out, 'content-length'), '5')
  t.equal(headerValue(out, 'accept-encoding'), 'identity')
  t.equal(headerValue(out, 'content-encoding'), null)
})

t.test('request headers: the gateway joins all via headers and appends its own entry', async t => {
  t.equal(
    headerValue(up(['Via', '1.0 a', 'via', '2.0 b'], { httpVersion: '2.0' }), 'via'),
    '1.0 a, 2.0 b, 2.0 model-gateway',
  )
})

t.test('request headers: the client can replace a default header, but not the credential', async t => {
  const out = up(['X-Default', 'mine', 'X-Up-Key', 'forged'])
  t.equal(headerValue(out, 'x-default'), 'mine')
  t.equal(headerValue(out, 'x-up-key'), null)
})

t.test('request headers: anthropic-version is sent once, under the name that the upstream uses', async t => {
  const upstream = { ...UPSTREAM, headers: { 'vendorb-version': 'd' }, versionHeader: 'vendorb-version' }
  const raw = ['Anthropic-Version', '2023-06-01', 'vendorb-version', '2026-10-21']
  const out = up(raw, {}, { upstream })
  t.equal(headerValue(out, 'vendorb-version'), '2023-06-01')
  t.equal(headerValue(out, 'anthropic-version'), null)
  t.equal(headerValue(up([], {}, { upstream }), 'vendorb-version'), 'd')
})

t.test('request headers: forwarding headers are accepted only from a trusted peer', async t => {
  const raw = [
    'X-Forwarded-For', '9.9.9.9', 'X-Forwarded-Proto', 'https', 'X-Forwarded-Host', 'a', 'X-Forwarded-Port', '1',
    'Forwarded', 'for=9.9.9.9', 'X-Real-IP', '9.9.9.9',
  ]
  t.strictSame(up(raw), FIXED)
  t.strictSame(up(raw, { trustedPeer: '10.0.0.1' }), [
    'X-Forwarded-For', '9.9.9.9, 10.0.0.1', 'X-Forwarded-Proto', 'https', 'X-Forwarded-Host', 'a',
    'X-Forwarded-Port', '1', 'Forwarded', 'for=9.9.9.9', 'X-Real-IP', '9.9.9.9',
    ...FIXED,
  ])
})

const FORBIDDEN_UP = [
  'connection', 'keep-alive', 'proxy-authenticate',
  'proxy-authorization', 'proxy-connection', 'te', 'trailer',
  'transfer-encoding', 'upgrade', 'http2-settings', 'host', 'proxy-authentication-info',
  'expect', 'authorization', 'x-api-key', 'x-goog-api-key', 'api-key', 'sec-websocket-protocol',
  'cookie', 'cookie2', 'forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-port', 'x-forwarded-proto',
  'x-real-ip',
]
/** Headers with special rules. */
const SEEN_TO = new Set([
  'via', 'content-length', 'content-type', 'x-up-key',
  'x-gateway-request-id', 'anthropic-version', 'vendorb-version',
])
const token = fc.stringMatching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,20}$/)
const anyCase = (name: string) => fc.array(fc.boolean(), { minLength: name.length, maxLength: name.length })
  .map(flags => [...name].map((letter, i) => (flags[i] ? letter.toUpperCase() : letter)).join(''))

t.test('request headers: forbidden headers are dropped in any spelling, and all other headers are kept', async () => {
  const forbidden = fc.constantFrom(...FORBIDDEN_UP).chain(anyCase)
  const pair = fc.tuple(fc.oneof(token, forbidden), fc.stringMatching(/^[\x21-\x7e]{0,20}$/))
  fc.assert(fc.property(fc.array(pair, { maxLength: 20 }), pairs => {
    // Without Connection, whose names another test covers.
    const raw = pairs.filter(([name]) => name.toLowerCase() !== 'connection').flat()
    const out = up([...raw, 'Connection', 'keep-alive'])
    const names = out.filter((_each, i) => i % 2 === 0).map(name => name.toLowerCase())
    const kept = raw.filter((name, i) => i % 2 === 0 && !FORBIDDEN_UP.includes(name.toLowerCase())
      && !SEEN_TO.has(name.toLowerCase()))
    return !names.some(name => FORBIDDEN_UP.includes(name)) && kept.every(name => out.includes(name))
  }), { numRuns: 500 })
})

t.test('response headers: hop-by-hop headers are dropped, and X-Gateway headers of the upstream are replaced', async t => {
  const raw = [
    'Connection', 'close, x-hop', 'X-Hop', '1', 'Upgrade', 'h2', 'Alt-Svc', 'h3', 'Via', '1.1 edge',
    'X-Gateway-Version', 'forged',
    ':status', '200', 'X-Kept', '1', 'Set-Cookie', 'a', 'Set-Cookie', 'b', 'Content-Length', '2',
  ]
  const out = clientHeaders(raw, { own: OWN, httpVersion: '1.1', dropContentLength: false })
  t.strictSame(out.slice(0, 8), ['X-Kept', '1', 'Set-Cookie', 'a', 'Set-Cookie', 'b', 'Content-Length', '2'])
  t.equal(headerValue(out, 'x-gateway-version'), '1.2.3')
  t.equal(headerValue(out, 'x-gateway-request-id'), 'id-1')
  t.equal(headerValue(out, 'via'), '1.1 edge, 1.1 model-gateway')
  t.equal(headerValue(out, 'x-hop'), null)
})

t.test('response headers: content-length is dropped if the gateway removes events from the body', async t => {
  const out = clientHeaders(['Content-Length', '2'], { own: OWN, httpVersion: '1.1', dropContentLength: true })
  t.equal(headerValue(out, 'content-length'), null)
})

t.test('response headers: an upstream cannot forge X-Gateway headers', async t => {
  const raw = ['X-Gateway-Upstream', 'forged', 'X-Gateway-Attempts', '9', 'X-Gateway-Request-Id', 'forged']
  const served = { upstream: { ...UPSTREAM, name: 'h\u00f6her' }, attempts: 2 }
  const out = clientHeaders(raw, { own: { ...OWN, served }, httpVersion: '1.1', dropContentLength: false })
  t.equal(headerValue(out, 'x-gateway-upstream'), 'h%C3%B6her')
  t.equal(headerValue(out, 'x-gateway-attempts'), '2')
  t.equal(headerValue(out, 'x-gateway-request-id'), 'id-1')
  const unrevealed = { own: { ...OWN, served: { ...served, attempts: null } }, httpVersion: '1.1', dropContentLength: false }
  t.notMatch(clientHeaders(raw, unrevealed).join(), /x-gateway-(upstream|attempts)/i)
  const unserved = clientHeaders(raw, { own: OWN, httpVersion: '1.1', dropContentLength: false })
  t.equal(headerValue(unserved, 'x-gateway-upstream'), null)
  t.equal(headerValue(unserved, 'x-gateway-attempts'), null)
})

t.test('response headers: the upstream\'s rate limits are forwarded if the key has no limits', async t => {
  const raw = ['X-RateLimit-Remaining', '1', 'Anthropic-RateLimit-Requests-Limit', '2', 'Retry-After', '3']
  const names = (limits: string[]) =>
    clientHeaders(raw, { own: { ...OWN, limits }, httpVersion: '1.1', dropContentLength: false })
      .filter((_each, i) => i % 2 === 0).slice(0, 3)
  t.strictSame(names([]), ['X-RateLimit-Remaining', 'Anthropic-RateLimit-Requests-Limit', 'Retry-After'])
  t.equal(names(['x-ratelimit-limit-requests', '5'])[0], 'Retry-After')
})

t.test('response headers in the console: headers that change the browser\'s state are dropped, and the body is sandboxed', async t => {
  const kept = [
    'Set-Cookie', 'Set-Cookie2', 'Clear-Site-Data', 'Strict-Transport-Security', 'Link', 'Refresh', 'NEL',
    'Report-To', 'Reporting-Endpoints', 'Content-Security-Policy-Report-Only',
  ]
  const raw = ['X-Kept', '1', ...kept.flatMap(name => [name, 'x']), 'Content-Security-Policy', "default-src *"]
  const own = { ...OWN, inConsole: true }
  const down = clientHeaders(raw, { own, httpVersion: '1.1', dropContentLength: false })
  t.equal(headerValue(down, 'x-kept'), '1')
  for (const name of kept) t.equal(headerValue(down, name.toLowerCase()), null, name)
  t.equal(headerValue(down, 'content-security-policy'), "default-src 'none'; sandbox")
  t.equal(headerValue(down, 'x-content-type-options'), 'nosniff')
})

t.test('appendVia without a previous value returns only the entry of the gateway', async t => {
  t.equal(appendVia('', '2.0'), '2.0 model-gateway')
})

t.test('response headers: headers that name the operator\'s account are dropped', async t => {
  const named = [
    'openai-organization', 'OpenAI-Project', 'anthropic-organization-id', 'x-ms-deployment-name', 'x-account-id',
    'x-workspace', 'x-litellm-key-spend', 'x-litellm-model-api-base',
  ]
  const kept = [
    'x-request-id', 'request-id', 'retry-after', 'openai-processing-ms', 'openai-version', 'x-should-retry',
    'anthropic-ratelimit-requests-remaining', 'x-ratelimit-remaining-tokens', 'x-ratelimit-limit-project-tokens',
  ]
  const raw = [...named, ...kept].flatMap(name => [name, '1'])
  const out = clientHeaders(raw, { own: OWN, httpVersion: '1.1', dropContentLength: false })
  t.strictSame(out.slice(0, kept.length * 2), kept.flatMap(name => [name, '1']))
  t.strictSame(named.filter(name => out.includes(name)), [])
})
