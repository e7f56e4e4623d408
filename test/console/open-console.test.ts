import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { PASSWORD, YAML, startConsole } from '../behaviour/console/console.ts'
import { KEY } from '../support/gateway.ts'
import { H2Request, openSession } from '../support/http2.ts'
import { connect } from '../support/wire.ts'

t.test('the console is served only on the address in console.listen', async t => {
  const gateway = await startConsole(t)
  for (const path of ['/', '/console', '/?from=somewhere', '/console?x']) {
    const answer = await fetch(gateway.console + path, { redirect: 'manual' })
    t.equal(answer.status, 302, path)
    t.equal(answer.headers.get('location'), '/console/')
  }
  for (const path of ['/', '/console', '/console/', '/console/api/session']) {
    t.equal((await fetch(gateway.url + path, { redirect: 'manual' })).status, 404, path)
  }
  t.equal((await fetch(`${gateway.console}/`, { method: 'POST' })).status, 404, 'only GET is redirected to the console')
})

t.test('a malformed escape is redirected in the path of a page, and refused in the path of an API operation', async t => {
  const { browser } = await startConsole(t)
  const page = await browser().ask('/console/logs/%E0%A4%A')
  t.equal(page.status, 302)
  t.equal(page.headers.get('location'), '/console/')
  t.match(await browser().ask('/logs/%E0%A4%A'), { status: 400, json: { code: 'bad_request' } })
})

t.test('the address of the console also serves the API of the gateway', async t => {
  const gateway = await startConsole(t)
  t.equal((await fetch(`${gateway.console}/api/status`)).status, 200)
  const models = await fetch(`${gateway.console}/v1/models`, { headers: { authorization: `Bearer ${KEY}` } })
  t.equal(models.status, 200)
  t.equal((await fetch(`${gateway.console}/v1/models`)).status, 401)
  const chat = await fetch(`${gateway.console}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'demo', messages: [] }),
  })
  t.equal(chat.status, 200)
})

t.test('a route for / or /console replaces the redirect to the console', async t => {
  const gateway = await startConsole(
    t, YAML.replace('routes: [', 'routes: [{ path: /, to: sim }, { path: /console, to: sim }, '),
  )
  for (const path of ['/', '/console']) {
    t.not((await fetch(gateway.console + path, { redirect: 'manual' })).status, 302, path)
  }
  t.match(
    (await fetch(`${gateway.console}/console/api/session`)).status, 200, 'a path below /console/ still belongs to the console',
  )
})

t.test('the first request to the console loads the console', async t => {
  const gateway = await startConsole(t)
  const file = join(gateway.file, '..', 'data', 'console.db')
  await fetch(`${gateway.console}/api/status`)
  t.notOk(existsSync(file))
  const [first, second] = await Promise.all([
    gateway.browser().ask('/session'), gateway.browser().login({ key: KEY }),
  ])
  t.equal(first.status, 200, 'the first request waits until the console is loaded')
  t.equal(second.status, 201)
  t.ok(existsSync(file))
})

t.test('pages of the console load nothing from other hosts, and other sites cannot frame them', async t => {
  const gateway = await startConsole(t)
  for (const path of [
    '/console/', '/console/logs', '/console/api/session', '/console/api/nothing', '/console/assets/none.js',
  ]) {
    const { headers } = await gateway.browser().ask(path)
    const csp = headers.get('content-security-policy') ?? ''
    for (const directive of [
      `default-src 'none'`, `script-src 'self'`, `frame-ancestors 'none'`, `base-uri 'none'`,
    ]) {
      t.match(csp, directive, path)
    }
    t.notMatch(csp, /unsafe|http:|https:|\*/, path)
    t.match(Object.fromEntries(headers), {
      'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer',
      'permissions-policy': /camera=\(\)/,
      'cross-origin-opener-policy': 'same-origin', 'cross-origin-resource-policy': 'same-origin',
    }, path)
    t.equal(headers.get('strict-transport-security'), null, 'plain HTTP')
  }
})

t.test('each path below /console/ returns the page of the console, except a missing asset', async t => {
  const gateway = await startConsole(t)
  const pages = await Promise.all(
    ['/console/', '/console/logs/some-id'].map(path => gateway.browser().ask(path)),
  )
  for (const { status, headers, text } of pages) {
    if (status === 503) t.match(text, 'npm run build:console')
    else t.match(headers.get('content-type'), 'text/html')
    t.equal(headers.get('cache-control'), 'no-cache')
  }
  for (const path of [
    '/console/assets/none.js', '/console/assets/../../../package.json', '/console/..%2f..%2fpackage.json',
  ]) {
    const { text } = await gateway.browser().ask(path)
    t.notMatch(text, '"name": "model-gateway"', path)
  }
  t.equal((await gateway.browser().ask('/console/assets/none.js')).status, 404)
  t.match(await gateway.browser().ask('/console/api/%zz'), { status: 400, json: { code: 'bad_request' } })
  t.equal((await gateway.browser().ask('/console/', { method: 'POST', body: {} })).status, 404)
})

t.test('the console works over HTTP/2', async t => {
  const gateway = await startConsole(t)
  const session = await openSession(t, gateway.console)
  const page = new H2Request(session, 'GET', '/')
  t.match(await page.head, { ':status': 302, 'location': '/console/' })
  const login = new H2Request(session, 'POST', '/console/api/session', {
    'content-type': 'application/json', 'origin': gateway.console,
  }, false)
  login.stream.end(JSON.stringify({ name: 'ops', password: PASSWORD }))
  const head = await login.head
  t.equal(head[':status'], 201)
  await login.closed
  const { csrf } = JSON.parse(login.text) as { csrf: string }
  const cookie = String(head['set-cookie']).split(';')[0]
  const panel = new H2Request(session, 'GET', '/console/api/panel', { cookie })
  t.equal((await panel.head)[':status'], 200)
  await panel.closed
  t.match(JSON.parse(panel.text), { now: { figures: { requests: 0 } } })
  const foreign = new H2Request(session, 'DELETE', '/console/api/session', {
    cookie, 'x-csrf-token': csrf, 'origin': 'http://evil',
  })
  t.equal((await foreign.head)[':status'], 403)
  const tried = new H2Request(session, 'POST', '/console/api/playground/v1/chat/completions', {
    cookie, 'x-csrf-token': csrf, 'content-type': 'application/json',
  }, false)
  tried.stream.end(JSON.stringify({ model: 'demo', messages: [] }))
  t.match(await tried.head, { ':status': 200, 'x-gateway-upstream': 'sim' })
})

t.test('a client that sends Expect: 100-continue gets 100 Continue', async t => {
  const gateway = await startConsole(t)
  const wire = await connect(t, gateway.console)
  const body = JSON.stringify({ key: KEY })
  wire.send('POST /console/api/session HTTP/1.1\r\nHost: localhost\r\nexpect: 100-continue\r\n' +
    'content-type: application/json\r\n' +
    `content-length: ${body.length}\r\n\r\n`)
  await wire.until(/^HTTP\/1\.1 100 /)
  wire.send(body)
  t.match(await wire.until(/csrf/), /HTTP\/1\.1 201 /)
})

t.test('connections to the console do not delay the end of the gateway', async t => {
  for (const handsOver of [false, true]) {
    const gateway = await startConsole(
      t, YAML.replace('listen: 127.0.0.1:0 }', 'listen: 127.0.0.1:0, drain: 10m }'),
    )
    const asking = await gateway.login({ name: 'ops', password: PASSWORD })
    t.equal((await asking.ask('/live')).status, 200)
    const wire = await connect(t, gateway.console)
    wire.send('GET /console/api/session HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await wire.until(/csrf/)
    // An incomplete request, for which the gateway does not wait.
    wire.send('POST /console/api/session HTTP/1.1\r\nHost: localhost\r\ncontent-length: 10\r\n\r\n')
    t.equal(await gateway.drain(handsOver), 0, `hands over: ${handsOver}`)
    await t.rejects(fetch(`${gateway.console}/console/api/session`))
  }
})

t.test('a request whose body does not arrive times out, over HTTP/1.1 and HTTP/2', async t => {
  const gateway = await startConsole(t, YAML, {}, { bodyTimeout: 50 })
  const wire = await connect(t, gateway.console)
  wire.send('POST /console/api/session HTTP/1.1\r\nHost: localhost\r\n' +
    'content-type: application/json\r\ncontent-length: 10\r\n\r\n')
  await wire.ended
  const session = await openSession(t, gateway.console)
  const headers = { 'content-type': 'application/json', 'content-length': '10' }
  await new H2Request(session, 'POST', '/console/api/session', headers, false).closed
  t.pass('both have ended')
})

t.test('scripts and style sheets are compressed and cached', async t => {
  const gateway = await startConsole(t)
  const page = await (await fetch(`${gateway.console}/console/`)).text()
  const assets = page.match(/\/console\/assets\/[\w.-]+\.(js|css)/g) ?? []
  t.ok(
    assets.some(path => path.endsWith('.js')) && assets.some(path => path.endsWith('.css')),
    'the pages are built',
  )
  for (const path of assets) {
    const plain = await fetch(gateway.console + path, { headers: { 'accept-encoding': 'identity' } })
    t.equal(plain.headers.get('content-encoding'), null)
    for (const coding of ['br', 'gzip']) {
      const answer = await fetch(gateway.console + path, { headers: { 'accept-encoding': coding } })
      t.equal(answer.headers.get('content-encoding'), coding, path)
      t.equal(answer.headers.get('content-type'), plain.headers.get('content-type'))
      t.match(answer.headers.get('cache-control'), /immutable/)
      t.ok(Number(answer.headers.get('content-length')) < Number(plain.headers.get('content-length')))
    }
    await plain.arrayBuffer()
  }
})

t.test('an invalid console.db is named in the log; the console works after the file is removed', async t => {
  const gateway = await startConsole(t)
  const file = join(gateway.file, '..', 'data', 'console.db')
  writeFileSync(file, 'no database at all\n'.repeat(100))
  const { status } = await fetch(`${gateway.console}/console/api/session`)
  t.equal(status, 503)
  t.match(gateway.logged.at(-1), { msg: 'the console cannot be loaded', err: { message: file } })
  rmSync(file)
  t.equal((await fetch(`${gateway.console}/console/api/session`)).status, 200)
})
