import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { loadConfig } from '../../../src/config/load/load.ts'
import { ConfigError } from '../../../src/config/problem.ts'

function load(t: Test, proxy: string, env: Record<string, string> = {}, own = '') {
  const file = join(t.testdir(), 'gateway.yaml')
  writeFileSync(file, `auth: open\n${proxy}\nupstreams: { a: { url: "https://api.example.com"${own} } }\nroutes: [{ to: a }]\n`)
  return loadConfig(file, env).config
}

function problemOf(t: Test, proxy: string, env: Record<string, string> = {}, own = ''): string {
  try {
    load(t, proxy, env, own)
    return ''
  } catch (error) {
    return (error as ConfigError).message.replaceAll(/^.*gateway\.yaml/gm, 'gateway.yaml')
  }
}

t.test('the proxy of the configuration', async t => {
  const { proxy, upstreams } = load(t, 'proxy: { url: "http://me:p%40ss@proxy:3128", except: [.internal, 10.0.0.0/8] }')
  const server = { protocol: 'http:', ca: null, hostname: 'proxy', port: 3128, authorization: 'Basic bWU6cEBzcw==' }
  t.strictSame(proxy, { http: server, https: server, except: ['.internal', '10.0.0.0/8'] })
  t.strictSame(upstreams.get('a')?.proxy, server)
})

t.test('an upstream has its own proxy, or none', async t => {
  t.equal(load(t, 'proxy: { url: "http://proxy:3128" }', {}, ', proxy: false').upstreams.get('a')?.proxy, null)
  t.match(load(t, '', {}, ', proxy: "https://[::1]:99"').upstreams.get('a')?.proxy, { protocol: 'https:', hostname: '::1', port: 99 })
  t.equal(load(t, 'proxy: { url: "http://proxy:3128", except: [example.com] }').upstreams.get('a')?.proxy, null)
})

t.test('without a proxy, the environment has it', async t => {
  const { proxy } = load(t, '', { HTTPS_PROXY: 'http://upper', https_proxy: 'lower:8080', HTTP_PROXY: 'http://plain', no_proxy: 'a.com, .b.com 10.0.0.0/8,%%' })
  t.match(proxy, {
    https: { hostname: 'lower', port: 8080 }, http: { hostname: 'plain', port: 80 }, except: ['a.com', '.b.com', '10.0.0.0/8'],
  })
  t.equal(load(t, 'proxy: false', { HTTPS_PROXY: 'http://upper' }).proxy, null)
  t.equal(load(t, '', { NO_PROXY: '*' }).proxy, null)
})

t.test('errors name the place and show no password', async t => {
  t.match(problemOf(t, 'proxy: { url: "socks5://me:secret1@proxy" }'), /gateway\.yaml:2:15: error: proxy\.url: the proxy is not an http or https URL/)
  t.match(problemOf(t, 'proxy: { url: "http://me:secret1@proxy/path" }'), /gateway\.yaml:2:15: error: proxy\.url: the URL of a proxy ends with its port/)
  t.match(problemOf(t, 'proxy: { url: "http://me:%E0%A4@proxy" }'), /percent-encoded/)
  t.match(problemOf(t, 'proxy: { url: "http://proxy", except: [10.0.0.0/99] }'), /gateway\.yaml:2:40: error: this is neither a host/)
  t.match(problemOf(t, 'proxy: { url: "http://proxy", exept: [] }'), /gateway\.yaml:2:31: .*"exept".*except/)
  t.match(problemOf(t, 'proxy: { except: [a] }'), /gateway\.yaml:2:.*url/)
  t.match(problemOf(t, 'proxy: true'), /write false/)
  t.match(problemOf(t, '', {}, ', proxy: true'), /write false/)
  t.match(problemOf(t, '', {}, ', proxy: "ftp://me:secret1@b"'), /upstreams\.a\.proxy: the proxy is not/)
  t.match(problemOf(t, 'proxy: { url: "http://proxy", ca: none.pem }'), /there is no such file/)
  t.match(problemOf(t, '', { HTTPS_PROXY: 'socks5://me:secret1@proxy' }), /HTTPS_PROXY of the environment: the proxy is not an http or https URL/)
  for (const [proxy, own] of [['proxy: { url: "socks5://me:secret1@proxy" }', ''], ['', ', proxy: "ftp://me:secret1@b"']] as const) {
    t.notMatch(problemOf(t, proxy, {}, own), 'secret1')
  }
})
