import { once } from 'node:events'
import type * as http from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import type { Test } from 'tap'
import { createSideServer } from '../../src/base/server-limits.ts'
import type { ServerTimeouts } from '../../src/base/server-limits.ts'
import { connect } from '../support/wire.ts'

const GET = 'GET /x HTTP/1.1\r\nHost: x\r\n\r\n'

async function start(t: Test, timeouts?: ServerTimeouts, handler: http.RequestListener = (_req, res) => void res.end('served')): Promise<string> {
  const server = createSideServer(handler, 3, timeouts)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.closeAllConnections())
  t.teardown(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

t.test('slow clients do not block other clients', async t => {
  for (const beginning of ['', 'GET /x HTTP/1.1\r\nHost: x\r\n', 'POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n1']) {
    const url = await start(t)
    const slow = await Promise.all(Array.from({ length: 3 }, () => connect(t, url)))
    for (const client of slow) client.send(beginning)
    const fast = await connect(t, url)
    fast.send(GET)
    t.match(await fast.until(/served$/), /^HTTP\/1\.1 200 /)
    await slow[0]?.ended
  }
})

t.test('a connection above the limit closes the connection whose last request is the oldest', async t => {
  const url = await start(t)
  const [used, idle] = [await connect(t, url), await connect(t, url)] as const
  for (const client of [used, idle, used]) {
    client.send(GET)
    await client.until(/served$/)
    client.clear()
  }
  await connect(t, url)
  await connect(t, url)
  await idle.ended
  used.send(GET)
  await used.until(/served$/)
})

t.test('a slow request head, a slow request body, an idle connection and an unread response each time out', async t => {
  const short = { headersTimeout: 100, requestTimeout: 200, keepAlive: 1_000 }
  for (const [title, request, response] of [
    ['nothing', '', /^HTTP\/1\.1 408 /],
    ['a head', 'GET /x HTTP/1.1\r\nHost: x\r\n', /^HTTP\/1\.1 408 /],
    ['a body', 'POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n1', /^HTTP\/1\.1 408 /],
    ['idle', GET, /served$/],
  ] as const) {
    const url = await start(t, short, (req, res) => {
      req.resume().once('end', () => res.end('served'))
    })
    const client = await connect(t, url)
    client.send(request)
    await client.ended
    t.match(client.text, response, title)
  }
  const closed = Promise.withResolvers<void>()
  const url = await start(t, short, (_req, res) => {
    res.once('close', closed.resolve).end(Buffer.alloc(64 * 1024 * 1024))
  })
  const unread = await connect(t, url)
  unread.socket.pause()
  unread.send(GET)
  await closed.promise
})
