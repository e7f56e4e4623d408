import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { pino } from 'pino'
import t from 'tap'
import { loadConfig } from '../../src/config/load.ts'
import { Exchange } from '../../src/exchange.ts'
import { buildGateway } from '../../src/gateway.ts'
import { createTokenCounter } from '../../src/metering/estimate.ts'
import { classifyPath } from '../../src/protocols/endpoint.ts'
import type { ClientRequest, ClientResponse } from '../../src/proxy/client.ts'
import { MeteredSession } from '../../src/settlement/session.ts'
import { FakeClock } from '../support/fake-clock.ts'

const SILENT = new URL('../metering/threads/silent.ts', import.meta.url)

/** A text message of a server, of less than 126 bytes. */
function message(value: object): Buffer {
  const text = Buffer.from(JSON.stringify(value))
  return Buffer.concat([Buffer.from([0x81, text.length]), text])
}

t.test('of the responses that nobody reported no more wait to be counted than the counter lets', async t => {
  const dir = t.testdir({
    'gateway.yaml': `
auth: open
upstreams: { up: { url: "http://127.0.0.1:1", websocket: true } }
routes: [{ to: up }]
models: { m: { price: { input: 1, output: 1 } } }`,
  })
  const { config } = loadConfig(join(dir, 'gateway.yaml'), {})
  const clock = new FakeClock()
  const counter = createTokenCounter({ clock, queue: 4, patience: 1_000, script: SILENT })
  t.teardown(() => counter.close())
  const gateway = buildGateway(config, { version: '0', clock, log: pino({ enabled: false }) }, null)
  const exchange = new Exchange({
    id: 'x', req: {} as ClientRequest, res: {} as ClientResponse, startedAt: 0, startedWall: 0,
    clientAddress: '', trustedPeer: null, awaitsContinue: false,
  })
  exchange.classified = classifyPath('/v1/responses')
  exchange.candidate = config.routes[0]?.targets[0] ?? null
  const session = new MeteredSession(
    { ...gateway, accounts: { ...gateway.accounts, counter } }, exchange, null,
  )

  const said = [
    message({ type: 'response.output_text.delta', delta: 'eight by' }),
    message({ type: 'response.completed', response: { model: 'm' } }),
  ]
  for (let n = 0; n < 20; n++) for (const one of said) session.heard(one)
  await setImmediate()
  t.equal(session.known.tokens, 2 * 16, 'the others by bytes, at once')

  const bill = session.end(null)
  clock.advance(1_000)
  t.match(await bill, { usage: { outputTokens: 2 * 20 }, source: 'estimated', costPico: 40_000_000n })
})
