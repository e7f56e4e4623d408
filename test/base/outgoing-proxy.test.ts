import t from 'tap'
import { isException, proxyFor, proxyHref, proxyName, type ProxyServer } from '../../src/base/outgoing-proxy.ts'

const PROXY: ProxyServer = { protocol: 'http:', hostname: 'proxy', port: 3128, authorization: null, ca: null }

function isDirect(url: string, ...except: string[]): boolean {
  return proxyFor({ http: PROXY, https: PROXY, except }, new URL(url)) === null
}

t.test('exceptions match hosts, suffixes, addresses, blocks and ports', async t => {
  const cases: [url: string, except: string, direct: boolean][] = [
    ['https://example.com', 'example.com', true],
    ['https://EXAMPLE.com.', 'Example.COM', true],
    ['https://api.example.com', 'example.com', true],
    ['https://badexample.com', 'example.com', false],
    ['https://example.com', '.example.com', false],
    ['https://api.example.com', '.example.com', true],
    ['https://a.b.example.com', '*.example.com', true],
    ['https://example.com', 'example.com:443', true],
    ['http://example.com', 'example.com:443', false],
    ['https://example.com:8443', 'example.com:8443', true],
    ['https://10.1.2.3', '10.0.0.0/8', true],
    ['https://11.1.2.3', '10.0.0.0/8', false],
    ['https://10.1.2.3:99', '10.1.2.3:99', true],
    ['https://[fd00::1]', 'fd00::/8', true],
    ['https://[fd00::1]:99', '[fd00::1]:99', true],
    ['https://[fd00::1]', '10.0.0.0/8', false],
    ['https://x.constructor', '__proto__', false],
    ['https://anything', '*', true],
  ]
  for (const [url, except, direct] of cases) {
    t.ok(isException(except), except)
    t.equal(isDirect(url, except), direct, `${url} ${except}`)
  }
})

t.test('loopback and link-local addresses are direct', async t => {
  for (const host of ['localhost', 'a.localhost', '127.0.0.2', '[::1]', '[::ffff:127.0.0.1]', '169.254.169.254', 'metadata.google.internal']) {
    t.ok(isDirect(`http://${host}:8080`), host)
  }
  t.notOk(isDirect('http://localhost.example.com'))
})

t.test('texts that are no exceptions', async t => {
  for (const text of ['', 'a b', 'http://a', '10.0.0.0/33', 'fd00::/129', '10.0.0.0/8/8', 'a/8', 'a:b', 'a:99999', '[a]', 'a..*', 'x'.repeat(300)]) {
    t.notOk(isException(text), text)
    t.notOk(isDirect('https://a', text), text)
  }
})

t.test('the protocol of the URL chooses the proxy', async t => {
  const rules = { http: null, https: PROXY, except: [] }
  t.equal(proxyFor(rules, new URL('http://a')), null)
  t.equal(proxyFor(rules, new URL('https://a')), PROXY)
  t.equal(proxyFor(null, new URL('https://a')), null)
})

t.test('the name of a proxy has no credential', async t => {
  const proxy = { ...PROXY, hostname: 'fd00::1', authorization: `Basic ${Buffer.from('me:p@s:s').toString('base64')}` }
  t.equal(proxyName(proxy), 'http://[fd00::1]:3128')
  t.equal(proxyHref(proxy), 'http://me:p%40s%3As@[fd00::1]:3128/')
  t.equal(proxyHref(PROXY), 'http://proxy:3128/')
})
