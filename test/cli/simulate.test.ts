import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { gateway, listening } from './command.ts'

t.test('simulate serves until SIGTERM, and logs each request', async t => {
  const { child, base, lines, ended } = await listening(t, ['simulate', '--listen', '127.0.0.1:0'])
  const answer = await fetch(`${base}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'sim', messages: [{ role: 'user', content: 'hello' }] }),
  })
  t.equal(answer.status, 200)
  t.match(await answer.json(), { object: 'chat.completion', model: 'sim' })
  child.kill('SIGTERM')
  t.match(await ended, { code: 0, signal: null, stderr: '' })
  t.equal(lines.length, 2)
})

t.test('simulate exits with 2 if its address is malformed', async t => {
  const listenOn = (address: string) => gateway(['simulate', '--listen', address])
  t.match(await listenOn('::1:80'), { code: 2, stderr: /--listen ::1:80: an IPv6 address needs brackets/ })
  t.match(await listenOn('localhost'), { code: 2, stderr: /the port is missing/ })
})

t.test('simulate exits with 1 if its address is in use', async t => {
  const other = createServer().listen(0, '127.0.0.1')
  t.teardown(() => other.close())
  await once(other, 'listening')
  const { port } = other.address() as AddressInfo
  const taken = await gateway(['simulate', '--listen', `127.0.0.1:${port}`])
  t.match(taken, { code: 1, stderr: `cannot listen on 127.0.0.1:${port}` })
})
