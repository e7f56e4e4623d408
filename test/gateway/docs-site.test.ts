import { once } from 'node:events'
import { request } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import t from 'tap'
import type { Test } from 'tap'
import { serveSite } from '../../src/gateway/docs-site.ts'

const PAGES = {
  'index.html': '<!doctype html><script>go()</script><h1>Home</h1>',
  '404.html': '<h1>Nothing here</h1>',
  'errors.html': '<h1>Errors</h1>',
  clients: { 'index.html': '<h1>Clients</h1>' },
  'faults.html': '<h1>Faults</h1>',
  faults: { 'drill.html': '<h1>Drill</h1>' },
  assets: { 'app.12345678.js': 'go = () => 1', 'app.12345678.js.br': 'compressed' },
}

async function start(t: Test, pages: object = PAGES): Promise<string> {
  const dir = t.testdir({ 'secret.txt': 'not for everybody', root: pages as never })
  const site = await serveSite({
    listen: { host: '127.0.0.1', port: 0 }, reusePort: false, maxConnections: 20, idle: 75_000, root: `${dir}/root`,
  })
  t.teardown(() => site.close())
  return site.url
}

t.test('a page is served with and without .html in the path', async t => {
  const url = await start(t)
  for (const [path, heading] of [
    ['/', 'Home'], ['/errors.html', 'Errors'], ['/errors', 'Errors'], ['/clients/', 'Clients'],
    ['/faults', 'Faults'], ['/faults?x=1', 'Faults'], ['/faults/drill', 'Drill'],
  ] as const) {
    const res = await fetch(url + path)
    t.equal(res.status, 200, path)
    t.match(res.headers.get('content-type'), /^text\/html/)
    t.match(await res.text(), heading)
  }
})

t.test('a client that accepts brotli gets the compressed version of a file', async t => {
  const url = new URL('/assets/app.12345678.js', await start(t))
  const asked = request(url, { headers: { 'accept-encoding': 'br' } }).end()
  const [res] = await once(asked, 'response') as [IncomingMessage]
  t.equal(res.headers['content-encoding'], 'br')
  t.equal(await text(res), 'compressed')
  t.equal(await (await fetch(url, { headers: { 'accept-encoding': 'identity' } })).text(), 'go = () => 1')
})

t.test('an unknown path gets the 404 page of the site', async t => {
  const url = await start(t)
  const res = await fetch(`${url}/no/such/page`)
  t.equal(res.status, 404)
  t.equal(await res.text(), PAGES['404.html'])
  t.equal((await fetch(url, { method: 'POST' })).status, 404)
})

t.test('no file outside of the root directory is served', async t => {
  const url = new URL(await start(t))
  for (
    const path of ['/../secret.txt', '/%2e%2e/secret.txt', '/..%2fsecret.txt', '/assets/..\\..\\secret.txt']
  ) {
    const socket = connect(Number(url.port), url.hostname)
    socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`)
    const answer = await text(socket)
    t.match(answer, /^HTTP\/1\.1 4\d\d /, path)
    t.notMatch(answer, 'not for everybody', path)
  }
})

t.test('a page of the documentation cannot load data or scripts from other hosts', async t => {
  const res = await fetch(await start(t))
  const policy = res.headers.get('content-security-policy') ?? ''
  t.match(policy, "default-src 'none'")
  t.match(policy, /script-src 'self' 'sha256-[\w+/=]+';/)
  t.match(policy, "frame-ancestors 'none'")
  t.notMatch(policy, /https?:|\*/)
  t.equal(res.headers.get('x-content-type-options'), 'nosniff')
  t.equal(res.headers.get('strict-transport-security'), null)
})

t.test('files with a hash in their name are cached; pages are revalidated', async t => {
  const url = await start(t)
  t.match((await fetch(`${url}/assets/app.12345678.js`)).headers.get('cache-control'), 'immutable')
  const page = await fetch(`${url}/errors.html`)
  t.equal(page.headers.get('cache-control'), 'no-cache')
  const etag = page.headers.get('etag') ?? ''
  // Not with fetch, which adds `cache-control: no-cache`.
  const asked = request(`${url}/errors.html`, { headers: { 'if-none-match': etag } }).end()
  const [again] = await once(asked, 'response') as [IncomingMessage]
  t.equal(again.resume().statusCode, 304)
})

t.test('if the pages are not built, the response says how to build the pages', async t => {
  const dir = t.testdir({})
  const listen = { host: '127.0.0.1', port: 0 }
  const site = await serveSite({ listen, reusePort: false, maxConnections: 20, idle: 75_000, root: dir })
  t.teardown(() => site.close())
  t.equal(site.built, false)
  const res = await fetch(site.url)
  t.equal(res.status, 503)
  t.match(await res.text(), 'npm run build:docs')
})

t.test('serveSite rejects if the address is in use', async t => {
  const url = new URL(await start(t))
  const listen = { host: '127.0.0.1', port: Number(url.port) }
  const options = { listen, reusePort: false, maxConnections: 20, idle: 75_000, root: t.testdirName }
  await t.rejects(serveSite(options), { code: 'EADDRINUSE' })
})

t.test('with `reusePort` two servers can listen on the same address', async t => {
  const listen = { host: '127.0.0.1', port: 0 }
  const options = { listen, reusePort: true, maxConnections: 20, idle: 75_000, root: t.testdir(PAGES) }
  const first = await serveSite(options)
  t.teardown(() => first.close())
  const second = await serveSite({
    ...options, listen: { host: '127.0.0.1', port: Number(new URL(first.url).port) },
  })
  t.teardown(() => second.close())
  t.equal(second.url, first.url)
})

t.test('close does not wait for idle connections', async t => {
  const site = await serveSite({
    listen: { host: '127.0.0.1', port: 0 }, reusePort: false, maxConnections: 20, idle: 75_000, root: t.testdir(PAGES),
  })
  const { port, hostname } = new URL(site.url)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
  await once(socket, 'data')
  const ended = once(socket.resume(), 'close')
  await site.close()
  await ended
})
