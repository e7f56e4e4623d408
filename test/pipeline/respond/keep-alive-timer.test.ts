import { once } from 'node:events'
import * as http from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { pino } from 'pino'
import t from 'tap'
import type { Test } from 'tap'
import { loadConfig } from '../../../src/config/load/load.ts'
import { buildGateway } from '../../../src/gateway/build-gateway.ts'
import { newExchange } from '../../../src/gateway/listen/new-exchange.ts'
import { handle } from '../../../src/pipeline/pipeline.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { STREAM_HEAD, chunk, connect, post, startWireUpstream } from '../../support/wire.ts'
import type { Wire } from '../../support/wire.ts'

const EVENT = 'data: {"id":"1","choices":[{"index":0,"delta":{"content":"one"}}]}\n\n'
const SIGN = /: keep-alive\n\n/

/** The pipeline on a clock that stands still, and the wire of each request that reaches an upstream. */
async function startStill(t: Test) {
  const waiting: ((wire: Wire) => void)[] = []
  const asked = () => new Promise<Wire>(resolve => waiting.push(resolve))
  const { url } = await startWireUpstream(t, async wire => {
    await wire.request()
    waiting.shift()?.(wire)
  })
  const file = join(t.testdir({
    'gateway.yaml': `
upstreams: { up: { url: "${url}", usage: as_is } }
routes:
  - to: [up, { upstream: up, model: b, prefill: true }, { upstream: up, model: c, prefill: true }]
    resume: continue
auth: open
server: { hosts: [gateway] }
`,
  }), 'gateway.yaml')
  const clock = new FakeClock()
  const gateway = buildGateway(
    loadConfig(file, {}).config, { version: '0', clock, log: pino({ enabled: false }) }, null,
  )
  const server = http.createServer((req, res) => void handle(gateway, newExchange(gateway, req, res, false), null))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { clock, asked, client: await connect(t, `http://127.0.0.1:${port}`) }
}

t.test('a client gets keep-alive comments each time it waits for a continuation', async t => {
  const { clock, asked, client } = await startStill(t)
  const first = asked()
  client.send(post('/v1/chat/completions', {
    model: 'm', stream: true, messages: [{ role: 'user', content: 'count' }],
  }))
  let upstream = await first
  for (const _ of ['once', 'and again']) {
    upstream.send(STREAM_HEAD + chunk(EVENT))
    await client.until(/"one"/)
    clock.advance(60_000)
    client.clear()
    const next = asked()
    upstream.socket.end()
    upstream = await next
    clock.advance(10_000)
    t.notMatch(await client.until(SIGN), /"one"/, 'no keep-alive while the stream runs')
    client.clear()
    clock.advance(10_000)
    await client.until(SIGN)
  }
  upstream.send(`${STREAM_HEAD}${chunk(EVENT)}${chunk('data: [DONE]\n\n')}0\r\n\r\n`)
  await client.until(/\[DONE\]/)
})
