import fc from 'fast-check'
import t from 'tap'
import { GatewayError } from '../../../src/base/errors.ts'
import { parseTarget } from '../../../src/protocols/request/target.ts'

t.test('a request target is split into path, query and key', async t => {
  const cases: [string, string, string, string | null][] = [
    ['/v1/models', '/v1/models', '', null],
    ['/v1/messages?beta=true', '/v1/messages', '?beta=true', null],
    ['/v1/x?', '/v1/x', '?', null],
    ['/v1/x?key=a', '/v1/x', '', 'a'],
    ['/v1/x?key=a&alt=sse', '/v1/x', '?alt=sse', 'a'],
    ['/v1/x?alt=sse&key=a', '/v1/x', '?alt=sse', 'a'],
    ['/v1/x?a=1&key=one&b=%20&key=two', '/v1/x', '?a=1&b=%20', 'one'],
    ['/v1/x?%6b%65%79=a%2Fb', '/v1/x', '', 'a/b'],
    ['/v1/x?a=1&api-key=one&key=two&b=%20', '/v1/x', '?a=1&b=%20', 'one'],
    ['/v1/x?key', '/v1/x', '', null],
    ['/v1/x?key=', '/v1/x', '', ''],
    ['/v1/x?key=%zz', '/v1/x', '', '%zz'],
    ['/v1/x?monkey=a&keys=b', '/v1/x', '?monkey=a&keys=b', null],
    ['/v1/x?a=%zz&&=', '/v1/x', '?a=%zz&&=', null],
    ['/v1/x?a=?b', '/v1/x', '?a=?b', null],
    ['http://host/v1/x?a=1', '/v1/x', '?a=1', null],
    ['HTTPS://user.example:8080/v1/x', '/v1/x', '', null],
    ['http://[::1]:80/v1/x', '/v1/x', '', null],
    ['/v1/x?a=\u00e9', '/v1/x', '?a=\u00e9', null],
    ['http://host', '/', '', null],
    ['http://host?a=1', '/', '?a=1', null],
    ['//v1///x//', '/v1/x/', '', null],
    ['/v1/models/a%2Fb', '/v1/models/a%2Fb', '', null],
    ['/v1/chat/complet%69ons', '/v1/chat/completions', '', null],
    ['/v1/models/gpt%2D4%2e1', '/v1/models/gpt-4.1', '', null],
    ['/v1/models/%E4%B8%AD', '/v1/models/%E4%B8%AD', '', null],
    ['/v1/x/...', '/v1/x/...', '', null],
    ['/v1/x/.hidden', '/v1/x/.hidden', '', null],
    ['/v1/models/m:streamGenerateContent', '/v1/models/m:streamGenerateContent', '', null],
  ]
  for (const [raw, path, query, queryKey] of cases) {
    const isGoogles = queryKey !== null && !raw.includes('api-key=one')
    t.strictSame(parseTarget(raw), { path, query, queryKey, isGoogles }, raw)
  }
})

t.test('a request target that parsers read differently is refused', async t => {
  for (const raw of [
    '', '*', 'v1/x', 'ftp://host/v1', 'http://', 'http:///v1',
    'http://[/', 'http://a@b/v1', '?a=1', ' /v1', '/v1 x',
    '/v1/./x', '/v1/../x', '/..', '/v1/..', '/v1/x/.', '/v1/%2e/x',
    '/v1/%2E%2e/x', '/v1/.%2e', '/v1/..%2fx', '/v1%2f..%2fx',
    '/v1/a\\b', '/v1/a%5cb', '/v1/%', '/v1/%z', '/v1/%1', '/v1/%00',
    '/v1/%0a', '/v1/%0d%0a', '/v1/%7f', '/v1/%c3%28', '/v1/%ff',
    '/v1/x#y', '/v1/x?a#b', '/v1/\u00e9', '/v1/x\t', '/v1/x\u0000', '/v1/x?a=\u0000', '/v1/x?a b',
    '/v1/x?a\tb', '/v1/x?a\u007f',
    '/v1/x?a=\u4e2d', 'http://a b/v1', 'http://a\\b/v1', 'http://[::1/v1', 'http://a:b/v1',
  ]) {
    t.throws(() => parseTarget(raw), { code: 'bad_request_target', status: 400 }, JSON.stringify(raw))
  }
})

const piece = fc.oneof(
  fc.constantFrom(
    '/', '//', '.', '..', '%2e', '%2E', '%2f', '%5c', '%00',
    '%25', '%', '%6b', 'v1', 'a', '\\', '?', '&', '=', 'key', ';',
    ':', '#',
  ),
  fc.string({ maxLength: 3 }),
)
const target = fc.array(piece, { maxLength: 12 }).map(parts => `/${parts.join('')}`)

t.test('property: a parsed request target is normalized, and parses to itself', async () => {
  fc.assert(fc.property(target, raw => {
    let parsed
    try {
      parsed = parseTarget(raw)
    } catch (error) {
      return error instanceof GatewayError && error.code === 'bad_request_target'
    }
    const { path, query } = parsed
    const again = parseTarget(path + query)
    const segments = decodeURIComponent(path).split('/')
    return again.path === path && again.query === query && again.queryKey === null
      && path.startsWith('/') && !path.includes('//')
      && !segments.includes('.') && !segments.includes('..')
      && /^[\x21-\x7e]*$/.test(path) && /^[\x21-\x7e\x80-\xff]*$/.test(query)
      // A second URL parse returns the same path.
      && new URL(path, 'http://x').pathname
        === new URL(new URL(path, 'http://x').pathname, 'http://x').pathname
  }), { numRuns: 3_000 })
})

t.test('property: no key is left in the query', async () => {
  const name = fc.constantFrom('key', 'k%65y', '%6Bey', 'api-key', 'api%2Dkey', 'a', 'keys')
  const pair = fc.tuple(name, fc.webQueryParameters())
  fc.assert(fc.property(fc.array(pair, { maxLength: 5 }), pairs => {
    const query = pairs.map(([name, value]) => `${name}=${value.replaceAll(/[&#]/g, '')}`).join('&')
    const parsed = parseTarget(`/v1/x?${query}`)
    const left = new URLSearchParams(parsed.query)
    return !left.has('key') && !left.has('api-key')
      && (parsed.queryKey !== null) === pairs.some(([name]) => /^(api-)?key$/.test(decodeURIComponent(name)))
  }), { numRuns: 500 })
})
