import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:net'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { PASSWORD, startConsole } from './console.ts'
import type { TestConsole } from './console.ts'

const PATH = '/console/api/playground/v1/chat/completions'
const BODY = JSON.stringify({ model: 'demo', messages: [{ role: 'user', content: 'hello' }], stream: true })

/** Sends a request without its end. @returns a function that disconnects the client */
type Begin = (gateway: TestConsole, headers: Readonly<Record<string, string>>) => Promise<() => void>

const overHttp1: Begin = async ({ console: url }, headers) => {
  const { hostname, port, host } = new URL(url)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  const fields = Object.entries({ host, ...headers, 'content-length': BODY.length + 1 })
  const head = fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  socket.write(`POST ${PATH} HTTP/1.1\r\n${head}\r\n${BODY}`)
  return () => socket.destroy()
}

const overHttp2: Begin = async ({ console: url }, headers) => {
  const session = connectHttp2(url)
  await once(session, 'connect')
  session.request({ ':method': 'POST', ':path': PATH, ...headers }).on('error', () => {}).write(BODY)
  return () => session.destroy()
}

for (const [version, begin] of [['HTTP/1.1', overHttp1], ['HTTP/2', overHttp2]] as const) {
  t.test(`${version}: no request is left running if a client of the playground disconnects before it is authenticated`, async t => {
    const gateway = await startConsole(t)
    const admin = await gateway.login({ name: 'ops', password: PASSWORD })
    await admin.ask('/live')
    // The console writes the last use of the session, which waits for the lock of another process.
    gateway.clock.advance(40_000)
    const lock = new DatabaseSync(join(dirname(gateway.file), 'data', 'console.db'))
    t.teardown(() => lock.close())
    lock.exec('BEGIN IMMEDIATE')
    const { cookie, csrf } = admin
    const leave = await begin(gateway, {
      'content-type': 'application/json', 'cookie': cookie ?? '', 'x-csrf-token': csrf ?? '',
    })
    // Pages need no session. After their responses the earlier request has arrived too.
    for (let i = 0; i < 3; i++) await admin.ask('/console/')
    leave()
    for (let i = 0; i < 5; i++) await admin.ask('/console/')
    lock.exec('COMMIT')
    t.equal((await admin.ask('/session')).status, 200)
    t.match((await admin.ask('/live')).json, { running: 0, exchanges: { length: 0 } })
  })
}
