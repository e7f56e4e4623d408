import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { constants, deflateRawSync } from 'node:zlib'
import { pino } from 'pino'
import t from 'tap'
import type { Test } from 'tap'
import { loadConfig } from '../../../src/config/load/load.ts'
import { Exchange } from '../../../src/pipeline/exchange/exchange.ts'
import { buildGateway } from '../../../src/gateway/build-gateway.ts'
import { MeteredSession } from '../../../src/pipeline/respond/metered-session.ts'
import { createTokenCounter } from '../../../src/pricing/token-counter.ts'
import { classifyPath } from '../../../src/protocols/classify-path.ts'
import type { ClientRequest, ClientResponse } from '../../../src/proxy/client/client.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { UncarriedAttempt } from '../../support/upstream-attempt.ts'

const SILENT = new URL('../../pricing/threads/silent.ts', import.meta.url)

/** A text message of a server, of less than 126 bytes. */
function message(value: object): Buffer {
  const text = Buffer.from(JSON.stringify(value))
  return Buffer.concat([Buffer.from([0x81, text.length]), text])
}

/** A session of /v1/responses, with a token counter that does not respond. */
function openSession(t: Test, extensions: string | null = null) {
  const dir = t.testdir({
    'gateway.yaml': `
auth: open
upstreams: { up: { url: "http://127.0.0.1:1", websocket: true } }
routes: [{ to: up }]
models: { m: { price: { input: 1, output: 1 } } }`,
  })
  const { config } = loadConfig(join(dir, 'gateway.yaml'), {})
  const clock = new FakeClock()
  const counter = createTokenCounter({ clock, queue: 4, timeout: 1_000, script: SILENT })
  t.teardown(() => counter.close())
  const gateway = buildGateway(config, { version: '0', clock, log: pino({ enabled: false }) }, null)
  const exchange = new Exchange({
    id: 'x', req: {} as ClientRequest, res: {} as ClientResponse, startedAt: 0, startedWall: 0,
    clientAddress: '', trustedPeer: null, awaitsContinue: false,
  })
  const classified = classifyPath('/v1/responses')
  exchange.classified = classified
  const target = config.routes[0]!.targets[0]!
  const attempt = new UncarriedAttempt(target)
  const accounts = { ...gateway.accounts, counter }
  const session = new MeteredSession({ ...gateway, accounts }, exchange, attempt, classified.endpoint.session!, extensions)
  return { clock, session }
}

t.test('a client that responds to a close frame does not count as disconnected, even while a message is inflated', async t => {
  const created = deflateRawSync(JSON.stringify({ type: 'response.created', response: { model: 'm' } }), {
    finishFlush: constants.Z_SYNC_FLUSH,
  }).subarray(0, -4)
  const { session } = openSession(t, 'permessage-deflate')
  session.receiveFromUpstream(Buffer.concat([Buffer.from([0xc1, created.length]), created, Buffer.from([0x88, 0])]))
  session.receiveFromClient(Buffer.from([0x88, 0x80, 0, 0, 0, 0]))
  t.match(await session.connectionClosed('client'), { code: 'upstream_cut' })
  await session.end(null)
})

t.test('responses that do not fit in the queue of the token counter are estimated by their bytes', async t => {
  const { clock, session } = openSession(t)
  const said = [
    message({ type: 'response.output_text.delta', delta: 'eight by' }),
    message({ type: 'response.completed', response: { model: 'm' } }),
  ]
  for (let n = 0; n < 20; n++) for (const one of said) session.receiveFromUpstream(one)
  await setImmediate()
  t.equal(session.knownUsage.tokens, 2 * 16, 'the other responses by their bytes')
  const soFar = { usage: { outputTokens: 2 * 20 }, source: 'estimated', costPico: 40_000_000n, model: 'm' }
  t.match(session.usageSoFar(), soFar, 'waiting responses are included in the checkpoint')

  const bill = session.end(null)
  clock.advance(1_000)
  t.match(await bill, { usage: { outputTokens: 2 * 20 }, source: 'estimated', costPico: 40_000_000n })
})
