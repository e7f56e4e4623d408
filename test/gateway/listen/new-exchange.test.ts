import type { IncomingMessage, ServerResponse } from 'node:http'
import { BlockList } from 'node:net'
import t from 'tap'
import { ClientRequestIds, requestIds } from '../../../src/base/request-id.ts'
import type { Gateway } from '../../../src/pipeline/parts/gateway.ts'
import { newExchange } from '../../../src/gateway/listen/new-exchange.ts'
import { FakeClock } from '../../support/fake-clock.ts'

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

const newId = requestIds(() => Date.now())

/** Starts an exchange for a request with this peer and these headers. */
function begin(
  peer: string | undefined,
  headers: Record<string, string> = {},
  trusted: readonly [string, number][] = [['10.0.0.0', 8]],
  { clock = new FakeClock(), givenIds = new ClientRequestIds() } = {},
) {
  const list = new BlockList()
  for (const [net, bits] of trusted) list.addSubnet(net, bits, net.includes(':') ? 'ipv6' : 'ipv4')
  const gateway = {
    clock,
    newId,
    sharedState: { givenIds },
    config: { server: { bodyMemory: 1024 } },
    trusts: (address: string) => list.check(address, address.includes(':') ? 'ipv6' : 'ipv4'),
  } as unknown as Gateway
  const req = { socket: { remoteAddress: peer }, headers } as unknown as IncomingMessage
  return newExchange(gateway, req, {} as ServerResponse, false)
}

t.test('request ids are unique and ascending', async t => {
  const ids = Array.from({ length: 100 }, () => begin('1.2.3.4').id)
  for (const id of ids) t.match(id, UUID_V7)
  t.equal(new Set(ids).size, ids.length)
  t.strictSame(ids.toSorted(), ids)
  const wall = [5_000, 5_000, 5_001, 4_000, 4_999, 5_001, 5_002]
  const backwards = requestIds(() => wall.shift() ?? 0)
  const made = Array.from({ length: wall.length }, () => backwards())
  t.strictSame(made.toSorted(), made, 'ids are ascending even if the clock goes back')
})

t.test('only a trusted proxy can set the request id, and an invalid id is replaced', async t => {
  const given = { 'x-gateway-request-id': 'edge-0001.a:b_c' }
  t.equal(begin('10.1.1.1', given).id, 'edge-0001.a:b_c')
  t.match(begin('1.2.3.4', given).id, UUID_V7)
  for (const id of ['x'.repeat(8), 'x'.repeat(128)]) {
    t.equal(begin('10.1.1.1', { 'x-gateway-request-id': id }).id, id)
  }
  for (const id of ['shorter', 'x'.repeat(129), 'with space', 'line\nbreak', '<script>', 'quote"quote', '']) {
    t.match(begin('10.1.1.1', { 'x-gateway-request-id': id }).id, UUID_V7, JSON.stringify(id))
  }
})

t.test('an id that a proxy sets is used once per millisecond; further requests get a new id', async t => {
  const lasting = { clock: new FakeClock(), givenIds: new ClientRequestIds() }
  const id = () => begin('10.1.1.1', { 'x-gateway-request-id': 'edge-0001' }, undefined, lasting).id
  t.equal(id(), 'edge-0001')
  t.match(id(), UUID_V7)
  lasting.clock.advance(1)
  t.equal(id(), 'edge-0001')
})

t.test('the client address is the peer, or behind trusted proxies the last other hop', async t => {
  for (const [peer, forwarded, client, trustedPeer] of [
    ['1.2.3.4', undefined, '1.2.3.4', null],
    ['1.2.3.4', '9.9.9.9', '1.2.3.4', null],
    ['10.0.0.1', undefined, '10.0.0.1', '10.0.0.1'],
    ['10.0.0.1', '9.9.9.9', '9.9.9.9', '10.0.0.1'],
    ['10.0.0.1', '6.6.6.6, 9.9.9.9', '9.9.9.9', '10.0.0.1'],
    ['10.0.0.1', '6.6.6.6, 9.9.9.9, 10.0.0.2', '9.9.9.9', '10.0.0.1'],
    ['10.0.0.1', '10.0.0.3, 10.0.0.2', '10.0.0.3', '10.0.0.1'],
    ['10.0.0.1', 'unknown, _hidden, <script>', '10.0.0.1', '10.0.0.1'],
    ['10.0.0.1', '6.6.6.6, unknown', '10.0.0.1', '10.0.0.1'],
    ['10.0.0.1', '6.6.6.6, unknown, 10.0.0.2', '10.0.0.2', '10.0.0.1'],
    ['10.0.0.1', '2001:db8::1', '2001:db8::1', '10.0.0.1'],
    ['10.0.0.1', 'fe80::1%eth0', 'fe80::1', '10.0.0.1'],
    ['10.0.0.1', '9.9.9.9:51234', '9.9.9.9', '10.0.0.1'],
    ['10.0.0.1', '6.6.6.6:80, 9.9.9.9:51234, 10.0.0.2:443', '9.9.9.9', '10.0.0.1'],
    ['10.0.0.1', '[2001:db8::1]:51234', '2001:db8::1', '10.0.0.1'],
    ['10.0.0.1', '[2001:db8::1]', '2001:db8::1', '10.0.0.1'],
    ['10.0.0.1', '[fe80::1%eth0]:51234', 'fe80::1', '10.0.0.1'],
    ['10.0.0.1', '9.9.9.9:', '10.0.0.1', '10.0.0.1'],
    ['10.0.0.1', '9.9.9.9:x', '10.0.0.1', '10.0.0.1'],
    ['10.0.0.1', '[9.9.9.9]:80', '10.0.0.1', '10.0.0.1'],
    ['10.0.0.1', '[2001:db8::1', '10.0.0.1', '10.0.0.1'],
    ['::ffff:10.0.0.1', '9.9.9.9', '9.9.9.9', '10.0.0.1'],
    ['::ffff:10.0.0.1', undefined, '10.0.0.1', '10.0.0.1'],
    ['::ffff:1.2.3.4', undefined, '1.2.3.4', null],
    ['10.0.0.1', '6.6.6.6, ::ffff:9.9.9.9, ::FFFF:10.0.0.2', '9.9.9.9', '10.0.0.1'],
    ['10.0.0.1', '::ffff:', '10.0.0.1', '10.0.0.1'],
    ['fe80::1%eth0', '9.9.9.9', 'fe80::1', null],
    [undefined, '9.9.9.9', '', null],
  ] as const) {
    const exchange = begin(peer, forwarded === undefined ? {} : { 'x-forwarded-for': forwarded })
    t.equal(exchange.clientAddress, client, `${peer} ${forwarded}`)
    t.equal(exchange.trustedPeer, trustedPeer)
  }
  const mapped = begin('::ffff:10.0.0.1', { 'x-forwarded-for': '9.9.9.9' }, [['::ffff:10.0.0.0', 104]])
  t.equal(mapped.clientAddress, '9.9.9.9', 'an IPv4 proxy can be configured as an IPv6-mapped address')
  t.equal(begin('fe80::1%eth0', { 'x-forwarded-for': '9.9.9.9' }, [['fe80::', 10]]).clientAddress, '9.9.9.9')
})
