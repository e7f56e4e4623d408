import { isIP } from 'node:net'
import type { Identity } from '../../auth/keyring.ts'
import { ExchangeMemory } from '../../pipeline/exchange/exchange-memory.ts'
import { Exchange } from '../../pipeline/exchange/exchange.ts'
import type { Gateway } from '../../pipeline/parts/gateway.ts'
import type { Client } from '../../pipeline/parts/mount.ts'
import type { ClientRequest, ClientResponse } from '../../proxy/client/client.ts'

const REQUEST_ID = /^[\w.:-]{8,128}$/

/**
 * Matches an IPv6 address in brackets, with or without a port, or an IPv4 address with a port. Azure's Application Gateway writes such
 * addresses: learn.microsoft.com/azure/application-gateway/how-application-gateway-works.
 */
const ADDRESS_WITH_PORT = /^(?:\[([^\]]+)\](?::\d{1,5})?|([\d.]+):\d{1,5})$/
/** Matches an IPv4 address that is written as an IPv6 address (RFC 4291 section 2.5.5.2). */
const IPV4_MAPPED = /^::ffff:([\d.]+)$/i

/** Creates an exchange. A trusted proxy may set the request id, unless another request used the same id in the same ms. */
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

/** The address of the peer of a connection; empty = the peer has disconnected. */
export function peerOf(socket: { readonly remoteAddress?: string | undefined }): string {
  return withoutIpv4Mapping(withoutZone(socket.remoteAddress ?? ''))
}

/** The client's address: the peer's address, or the address that a trusted proxy forwards. */
export function clientOf(gateway: Gateway, req: ClientRequest): Client {
  const peer = peerAddress(req)
  const trusted = peer !== '' && gateway.trusts(peer)
  const address = trusted ? forwardedFor(gateway, req, peer) : peer
  return { address: withoutIpv4Mapping(address), trustedPeer: trusted ? withoutIpv4Mapping(peer) : null }
}

/** The peer's address without the zone of a link-local address, because a zone has a meaning only on this machine. */
function peerAddress(req: ClientRequest): string {
  if (!('stream' in req)) return withoutZone(req.socket.remoteAddress ?? '')
  // Node throws if the session is destroyed.
  const { session } = req.stream
  return session && !session.destroyed ? withoutZone(session.socket.remoteAddress ?? '') : ''
}

function withoutZone(address: string): string {
  const zone = address.indexOf('%')
  return zone === -1 ? address : address.slice(0, zone)
}

/** Removes the IPv6 form of an IPv4 address: a dual-stack listener reports IPv4 clients as `::ffff:1.2.3.4`. */
function withoutIpv4Mapping(address: string): string {
  if (!address.startsWith('::')) return address
  const ipv4 = IPV4_MAPPED.exec(address)?.[1]
  return ipv4 !== undefined && isIP(ipv4) === 4 ? ipv4 : address
}

/**
 * The last address in X-Forwarded-For that is not a trusted proxy. The search, from the end, stops at an entry that is not an address,
 * because any client may have written that entry and the entries before it.
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

/** The address in an entry, without its port; null = the entry is not an address. */
function forwardedAddress(entry: string): string | null {
  const [, inBrackets, beforePort] = ADDRESS_WITH_PORT.exec(entry) ?? []
  const address = withoutZone(inBrackets ?? beforePort ?? entry)
  const family = isIP(address)
  return family === 0 || (inBrackets !== undefined && family === 4) ? null : address
}
