import { isIP } from 'node:net'
import { Exchange } from '../context/exchange.ts'
import type { Gateway } from '../context/gateway.ts'
import type { Client } from '../context/mount.ts'
import type { ClientRequest, ClientResponse } from '../proxy/client.ts'

/** What a request id may look like that a proxy in front has given. */
const REQUEST_ID = /^[\w.:-]{8,128}$/

/**
 * An IPv6 address in brackets, with a port or without, or an IPv4 address with a port, as Azure's Application
 * Gateway writes each. Source: learn.microsoft.com/azure/application-gateway/how-application-gateway-works.
 */
const ADDRESS_WITH_PORT = /^(?:\[([^\]]+)\](?::\d{1,5})?|([\d.]+):\d{1,5})$/

/** An IPv4 address that is written as an IPv6 one (RFC 4291 section 2.5.5.2). */
const IPV4_MAPPED = /^::ffff:([\d.]+)$/i

/**
 * Opens the exchange of a request. The id is the gateway's, unless a trusted
 * proxy in front has given one that no other request has which began with it.
 */
export function newExchange(
  gateway: Gateway, req: ClientRequest, res: ClientResponse, awaitsContinue: boolean,
): Exchange {
  const { address, trustedPeer } = clientOf(gateway, req)
  const given = trustedPeer === null ? undefined : req.headers['x-gateway-request-id']
  const startedWall = gateway.clock.wall()
  const isTaken = typeof given === 'string' && REQUEST_ID.test(given)
    && gateway.sharedState.givenIds.isFirst(given, startedWall)
  return new Exchange({
    id: isTaken ? given : gateway.newId(),
    req,
    res,
    startedAt: gateway.clock.monotonic(),
    startedWall,
    clientAddress: address,
    trustedPeer,
    awaitsContinue,
  })
}

/** Who is at the other end of a connection of which no request was read; empty = it is gone. */
export function peerOf(socket: { readonly remoteAddress?: string | undefined }): string {
  return withoutIpv4Mapping(withoutZone(socket.remoteAddress ?? ''))
}

/** Who asks: the peer, or whom a trusted proxy speaks for. */
export function clientOf(gateway: Gateway, req: ClientRequest): Client {
  const peer = peerAddress(req)
  const trusted = peer !== '' && gateway.trusts(peer)
  const address = trusted ? forwardedFor(gateway, req, peer) : peer
  return { address: withoutIpv4Mapping(address), trustedPeer: trusted ? withoutIpv4Mapping(peer) : null }
}

/** Without the zone of a link-local address, which says nothing to anybody else. */
function peerAddress(req: ClientRequest): string {
  if (!('stream' in req)) return withoutZone(req.socket.remoteAddress ?? '')
  // Node throws where the connection below has gone already.
  const { session } = req.stream
  return session && !session.destroyed ? withoutZone(session.socket.remoteAddress ?? '') : ''
}

function withoutZone(address: string): string {
  const zone = address.indexOf('%')
  return zone === -1 ? address : address.slice(0, zone)
}

/** An IPv4 address as such, which a listener for both families has as `::ffff:1.2.3.4`. */
function withoutIpv4Mapping(address: string): string {
  if (!address.startsWith('::')) return address
  const ipv4 = IPV4_MAPPED.exec(address)?.[1]
  return ipv4 !== undefined && isIP(ipv4) === 4 ? ipv4 : address
}

/**
 * The last address in X-Forwarded-For that no trusted proxy has. Behind
 * something that is no address, anybody may have written what they like.
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

/** The address of an entry, which some write with a port; null = it is none. */
function forwardedAddress(entry: string): string | null {
  const [, inBrackets, beforePort] = ADDRESS_WITH_PORT.exec(entry) ?? []
  const address = withoutZone(inBrackets ?? beforePort ?? entry)
  const family = isIP(address)
  return family === 0 || (inBrackets !== undefined && family === 4) ? null : address
}
