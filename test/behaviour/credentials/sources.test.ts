import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { WebSocketServer } from 'ws'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'

t.test('a secret from a file is sent as bearer token or in a header, instead of the key of the client', async t => {
  const folder = folderWith(t, { bearer: 'sk-file\n', value: 'sk-value' })
  const { gateway, seen } = await start(t, `
  bearer: { url: URL, auth: { bearer: { file: ${folder}/bearer } } }
  value: { url: URL, auth: { header: x-api-key, value: { file: ${folder}/value } } }
`, `
  - { model: bearer, to: bearer }
  - { model: value, to: value }
`)
  await ask(gateway, 'bearer')
  await ask(gateway, 'value')
  t.match(seen[0], { authorization: 'Bearer sk-file', 'x-api-key': undefined })
  t.match(seen[1], { authorization: undefined, 'x-api-key': 'sk-value' })
})

t.test('after a 401, the request is sent again with the new secret if the secret file has changed', async t => {
  const folder = folderWith(t, { key: 'sk-old' })
  const file = join(folder, 'key')
  const { gateway, seen, accept } = await start(t, `
  up: { url: URL, auth: { bearer: { file: ${file} } } }
`)
  accept('Bearer sk-new')
  writeFileSync(file, 'sk-new')
  const { status, headers } = await ask(gateway)
  t.equal(status, 200)
  t.ok(seen.length <= 2)
  t.equal(headers.get('x-gateway-attempts'), String(seen.length))
  t.equal((await ask(gateway)).headers.get('x-gateway-attempts'), '1')
})

t.test('a command runs once for all waiting requests, and once more after a 401', async t => {
  const folder = folderWith(t, { runs: '', secret: 'sk-1', 'print.sh': '#!/bin/sh\ncd "$(dirname "$0")"; echo run >> runs; cat secret\n' })
  chmodSync(join(folder, 'print.sh'), 0o755)
  const { gateway, seen, accept } = await start(t, `
  up: { url: URL, auth: { bearer: { command: [${folder}/print.sh] } } }
`)
  accept('Bearer sk-1')
  t.strictSame((await Promise.all(Array.from({ length: 20 }, () => ask(gateway)))).map(({ status }) => status), Array(20).fill(200))
  t.equal(runs(folder), 1)
  accept('Bearer sk-2')
  writeFileSync(join(folder, 'secret'), 'sk-2')
  t.strictSame((await Promise.all(Array.from({ length: 20 }, () => ask(gateway)))).map(({ status }) => status), Array(20).fill(200))
  t.equal(runs(folder), 2, 'one run of the command for all refused requests')
  accept('nobody')
  seen.length = 0
  for (let i = 0; i < 5; i++) t.equal((await ask(gateway)).status, 502)
  t.ok(runs(folder) <= 3, 'a credential that is always refused does not run the command for each request')
})

t.test('if the source of a credential fails, the next target responds', async t => {
  const { gateway } = await start(t, `
  broken: { url: URL, auth: { bearer: { command: [sh, -c, "echo sk-secret; exit 7"] } } }
  up: { url: URL, auth: { bearer: sk-static } }
`, '\n  - { to: [broken, up] }\n')
  const { status, headers } = await ask(gateway)
  t.equal(status, 200)
  t.equal(headers.get('x-gateway-upstream'), 'up')
  t.match(await gateway.waitForLog(({ msg }) => msg === 'attempt failed'), {
    upstream: 'broken', outcome: 'credential_unavailable', next: 'up',
  })
  t.match(gateway.logged.find(({ level }) => level === 50), { upstream: 'broken', msg: 'credentials: the command ended with exit code 7' })
})

t.test('if the source of the only credential fails, the client gets an error without details of the source', async t => {
  const { gateway, seen } = await start(t, `
  up: { url: URL, auth: { bearer: { file: /does/not/exist } } }
`)
  const { status, body } = await ask(gateway)
  t.equal(status, 502)
  t.match(JSON.parse(body), { error: { code: 'credential_unavailable', message: 'the gateway has no valid credential for the upstream' } })
  t.equal(seen.length, 0)
})

t.test('a request ends if its client disconnects while the gateway fetches a credential', async t => {
  const { gateway, seen } = await start(t, `
  up: { url: URL, auth: { bearer: { command: [sleep, "1000"] } } }
`)
  const controller = new AbortController()
  const asking = ask(gateway, 'm', controller.signal)
  while (gateway.logged.length === 0 && !controller.signal.aborted) {
    await new Promise(resolve => setTimeout(resolve, 20))
    controller.abort()
  }
  await t.rejects(asking)
  t.match(await gateway.waitForLog(({ msg }) => msg === 'exchange'), { status: 499, end: 'client_gone' })
  t.equal(seen.length, 0)
})

t.test('a WebSocket handshake is repeated with a new credential after a 401', async t => {
  const folder = folderWith(t, { key: 'sk-old' })
  const seen: (string | undefined)[] = []
  const upstream = await startUpstream(t, (_req, res) => res.writeHead(404).end())
  const sockets = new WebSocketServer({ noServer: true })
  upstream.server.on('upgrade', (req, socket, head) => {
    seen.push(req.headers.authorization)
    if (req.headers.authorization !== 'Bearer sk-new') {
      socket.end('HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n')
      return
    }
    sockets.handleUpgrade(req, socket, head, ws => ws.send('hello'))
  })
  const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${upstream.url}", websocket: true, auth: { bearer: { file: ${folder}/key } } } }
routes: [{ to: up }]
`)
  writeFileSync(join(folder, 'key'), 'sk-new')
  const { WebSocket } = await import('ws')
  const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}/v1/realtime?model=m`, { headers: { authorization: `Bearer ${KEY}` } })
  const message = await new Promise<string>((resolve, reject) => {
    socket.on('message', data => resolve(String(data))).on('error', reject)
  })
  t.equal(message, 'hello')
  t.equal(seen.at(-1), 'Bearer sk-new')
  socket.close()
})

t.test('a reload keeps the credential if auth is unchanged, and replaces it otherwise', async t => {
  const folder = folderWith(t, { runs: '', secret: 'sk-1', 'print.sh': '#!/bin/sh\ncd "$(dirname "$0")"; echo run >> runs; cat secret\n' })
  chmodSync(join(folder, 'print.sh'), 0o755)
  const { gateway, seen, yaml } = await start(t, `
  up: { url: URL, auth: { bearer: { command: [${folder}/print.sh] } } }
`)
  await ask(gateway)
  t.match(await gateway.change(`${yaml}\nlimits: { concurrent: 7 }\n`), { applied: true })
  await ask(gateway)
  t.equal(runs(folder), 1)
  t.match(await gateway.change(yaml.replace(`[${folder}/print.sh]`, `[${folder}/print.sh, again]`)), { applied: true })
  await ask(gateway)
  t.equal(runs(folder), 2)
  t.equal(seen.length, 3)
})

async function start(t: Test, upstreams: string, routes = '\n  - { to: up }\n') {
  const seen: Record<string, unknown>[] = []
  let accepted: string | null = null
  const upstream = await startUpstream(t, (req, res) => {
    seen.push(req.headers)
    const isAccepted = accepted === null || req.headers.authorization === accepted
    void bodyOf(req).then(() => {
      res.writeHead(isAccepted ? 200 : 401, { 'content-type': 'application/json' })
      res.end(JSON.stringify(isAccepted ? { choices: [{ message: { content: 'Hi' } }] } : { error: { message: 'bad key' } }))
    })
  })
  const yaml = `upstreams:${upstreams.replaceAll('URL', `"${upstream.url}"`)}\nroutes:${routes}`
  const gateway = await startTestGateway(t, yaml)
  return { gateway, seen, yaml, accept: (value: string) => { accepted = value } }
}

/** A new folder, because the configuration of the gateway uses that of the test. */
function folderWith(t: Test, files: Record<string, string>): string {
  const folder = mkdtempSync(join(tmpdir(), 'credentials-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  return folder
}

function runs(folder: string): number {
  return readFileSync(join(folder, 'runs'), 'utf8').split('\n').length - 1
}

async function ask(gateway: TestGateway, model = 'm', signal: AbortSignal | null = null) {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hi' }] }),
    signal,
  })
  return { status: response.status, headers: response.headers, body: await response.text() }
}
