import { isIP } from 'node:net'
import type { Identity } from '../../auth/keyring.ts'
import { ExchangeMemory } from '../../pipeline/exchange/exchange-memory.ts'
import { Exchange } from '../../pipeline/exchange/exchange.ts'
import type { Gateway } from '../../pipeline/parts/gateway.ts'
import type { Client } from '../../pipeline/parts/mount.ts'
import type { ClientRequest, ClientResponse } from '../../proxy/client/client.ts'

const REQUEST_ID = /^[\w.:-]{8,128}$/

/**
 * An IPv6 address in brackets, with or without a port, or an IPv4 address with a port, as Azure's Application Gateway writes:
 * learn.microsoft.com/azure/application-gateway/how-application-gateway-works.
 */
const ADDRESS_WITH_PORT = /^(?:\[([^\]]+)\](?::\d{1,5})?|([\d.]+):\d{1,5})$/
/** An IPv4 address that is written as an IPv6 one (RFC 4291 section 2.5.5.2). */
const IPV4_MAPPED = /^::ffff:([\d.]+)$/i

/** A trusted proxy may set the request id, unless another request used the same id in the same millisecond. */
export function newExchange(
  gateway: Gateway, req: ClientRequest, res: ClientResponse, awaitsContinue: boolean, isManagement = false,
  preAuthenticated: Identity | null = null,
): Exchange {
  const { address, trustedPeer } = clientOf(gateway, req)
  const given = trustedPeer === null ? undefined : req.headers['x-gateway-request-id']
  const startedAt = gateway.clock.monotonic()
  const startedWall = gateway.clock.wall()
  const isTaken = typeof given === 'string' && REQUEST_ID.test(given) && gateway.sharedState.givenIds.isFirst(given, startedWall)
  return new Exchange({
    id: isTaken ? given : gateway.newId(),
    req, res, startedAt, startedWall,
    clientAddress: address,
    trustedPeer, awaitsContinue, isManagement, preAuthenticated,
    trace: gateway.sharedState.telemetry?.tracer?.start(req.headers) ?? null,
    memory: new ExchangeMemory(gateway.sharedState.bodyMemory, gateway.config.server.bodyMemory),
  })
}

/** The peer address of a connection without a request; empty = disconnected. */
export function peerOf(socket: { readonly remoteAddress?: string | undefined }): string {
  return withoutIpv4Mapping(withoutZone(socket.remoteAddress ?? ''))
}

/** The address of the peer, or the one that a trusted proxy forwards. */
export function clientOf(gateway: Gateway, req: ClientRequest): Client {
  const peer = peerAddress(req)
  const trusted = peer !== '' && gateway.trusts(peer)
  const address = trusted ? forwardedFor(gateway, req, peer) : peer
  return { address: withoutIpv4Mapping(address), trustedPeer: trusted ? withoutIpv4Mapping(peer) : null }
}

/** Without the zone of a link-local address, which has a meaning only on this machine. */
function peerAddress(req: ClientRequest): string {
  if (!('stream' in req)) return withoutZone(req.socket.remoteAddress ?? '')
  // Node throws when the session is already destroyed.
  const { session } = req.stream
  return session && !session.destroyed ? withoutZone(session.socket.remoteAddress ?? '') : ''
}

function withoutZone(address: string): string {
  const zone = address.indexOf('%')
  return zone === -1 ? address : address.slice(0, zone)
}

/** A dual-stack listener reports IPv4 clients as `::ffff:1.2.3.4`. */
function withoutIpv4Mapping(address: string): string {
  if (!address.startsWith('::')) return address
  const ipv4 = IPV4_MAPPED.exec(address)?.[1]
  return ipv4 !== undefined && isIP(ipv4) === 4 ? ipv4 : address
}

/**
 * The last address in X-Forwarded-For that is not a trusted proxy. Stops at an entry that is not an address: any client may have
 * written the entries before.
 */
function forwardedFor(gateway: Gateway, req: ClientRequest, peer: string): string {
  const header = req.headers['x-forwarded-for']
  if (typeof header !== 'string') return peer
  let client = peer
  for (const entry of header.split(',').toReversed()) {
    const hop = forwardedAddress(entry.trim())
    if (hop === null) break
    client = hop
    if (!gateway.trusts(hop)) break
  }
  return client
}

/** Without the port; null = not an address. */
function forwardedAddress(entry: string): string | null {
  const [, inBrackets, beforePort] = ADDRESS_WITH_PORT.exec(entry) ?? []
  const address = withoutZone(inBrackets ?? beforePort ?? entry)
  const family = isIP(address)
  return family === 0 || (inBrackets !== undefined && family === 4) ? null : address
}
