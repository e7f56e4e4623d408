import t from 'tap'
import { rawRequest } from '../../support/upstream.ts'
import { YAML, startConsole } from './console.ts'
import type { TestConsole } from './console.ts'

function get({ console }: TestConsole, path: string, host: string): Promise<string> {
  return rawRequest(console, `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
}

t.test('a request to the console with an unknown Host header gets 403', async t => {
  const gateway = await startConsole(t)
  for (const path of ['/console/', '/console/api/session', '/']) {
    const answer = await get(gateway, path, 'evil.example')
    t.match(answer, /^HTTP\/1\.1 403 /, path)
    t.match(answer, /server\.hosts/)
    t.notMatch(await get(gateway, path, 'localhost:8081'), /^HTTP\/1\.1 403 /, path)
  }
})

t.test('the console serves requests with a Host header of server.hosts', async t => {
  const gateway = await startConsole(t, YAML.replace('server: { ', 'server: { hosts: [Console.example.com], '))
  t.match(await get(gateway, '/console/api/session', 'console.example.com'), /^HTTP\/1\.1 200 /)
  t.match(await get(gateway, '/console/api/session', 'other.example.com'), /^HTTP\/1\.1 403 /)
})
