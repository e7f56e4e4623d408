import t from 'tap'
import type { Target } from '../../../src/config/types.ts'
import { Exchange } from '../../../src/pipeline/exchange/exchange.ts'
import { NOT_DELIVERED } from '../../../src/pipeline/exchange/upstream-attempt.ts'
import type { ResponseContent, UpstreamAttempt } from '../../../src/pipeline/exchange/upstream-attempt.ts'
import { InterruptedUsage } from '../../../src/pricing/interrupted-usage.ts'
import { noCharge } from '../../../src/pricing/settle-usage.ts'
import type { ClientRequest, ClientResponse } from '../../../src/proxy/client/client.ts'
import { UncarriedAttempt } from '../../support/upstream-attempt.ts'

function newExchange() {
  return new Exchange({
    id: 'x', req: {} as ClientRequest, res: {} as ClientResponse, startedAt: 0, startedWall: 0,
    clientAddress: '', trustedPeer: null, awaitsContinue: false,
  })
}

function newAttempt(upstream: string, sentBody: Buffer | null = null): UpstreamAttempt {
  const record = { upstream, model: null, outcome: 'ok', ms: 0, atMs: 0 }
  const sent = { sentBody, hidesUsage: false, dropped: [], translated: null }
  return new UncarriedAttempt({ model: null } as Target, { record, sent, ownInput: 3 })
}

function bodyOf(text: string): ResponseContent {
  return { metered: { kind: 'body', body: Buffer.from(text) }, encoding: null, errorBody: null }
}

t.test('the estimated input is that of the reservation, and after an attempt begins that of the attempt', async t => {
  const exchange = newExchange()
  const { quoted, estimatedInput, response } = exchange
  t.strictSame({ quoted, estimatedInput, response }, {
    quoted: null, estimatedInput: null, response: null,
  })
  exchange.reserved = { reservation: null, estimatedInput: 7, tokens: 7 }
  t.equal(exchange.estimatedInput, 7)
  exchange.begin(newAttempt('a'))
  t.equal(exchange.estimatedInput, 3)
  exchange.begin(newAttempt('b', Buffer.from('"the body that was sent"')))
  t.equal(exchange.estimatedInput, 6)
})

t.test('fail replaces the response by the given settlement basis, or by null', async t => {
  const exchange = newExchange()
  const attempt = newAttempt('a')
  exchange.begin(attempt)
  attempt.deliver(bodyOf('{}'))
  t.match(exchange.response, { kind: 'body' })
  attempt.fail(null)
  t.equal(exchange.response, null)
  attempt.fail(NOT_DELIVERED)
  t.strictSame(exchange.response, { kind: 'none', delivered: false })
})

t.test('an attempt that another attempt continues is settled separately, as an interrupted attempt', async t => {
  const exchange = newExchange()
  const first = newAttempt('a')
  exchange.begin(first)
  first.deliver(bodyOf('one'))
  first.share = new InterruptedUsage(Promise.resolve(noCharge()), noCharge)
  t.equal(exchange.response, null)
  t.strictSame(exchange.interruptedAttempts, [first])
  const second = newAttempt('b', Buffer.from('continue'))
  exchange.begin(second)
  second.deliver(bodyOf('two'))
  t.match(exchange.response, { kind: 'body', body: Buffer.from('two') })
  t.match(exchange.prompt, Buffer.from('continue'))
  t.strictSame(exchange.attempts, [first, second])
  exchange.releaseBody()
  t.equal(exchange.prompt, null)
})
