import { BlockList, isIPv6 } from 'node:net'
import type { Logger } from 'pino'
import { openAccounts } from './accounts.ts'
import type { Accounts } from './accounts.ts'
import { Keyring } from './auth/keyring.ts'
import type { Clock } from './clock.ts'
import { compileGlobs } from './config/glob.ts'
import type { Config, Upstream } from './config/types.ts'
import { createProxy } from './proxy/attempt.ts'
import type { ProxyServer } from './proxy/attempt.ts'
import { createTransport } from './proxy/transport.ts'
import type { Transport } from './proxy/transport.ts'
import { Running } from './running.ts'
import { RouteTable } from './routing/table.ts'

/** An upstream with its connections. */
export interface LiveUpstream {
  readonly config: Upstream
  /** Origin and path prefix. */
  readonly url: URL
  /** The prefix without a final slash: what goes in front of a path. */
  readonly prefix: string
  /** For the in-process simulator: where it listens. */
  readonly socketPath: string | null
  readonly transport: Transport
}

/** Everything that the pipeline works with, built once from a configuration. */
export interface Gateway {
  readonly config: Config
  readonly version: string
  readonly clock: Clock
  readonly log: Logger
  readonly keyring: Keyring
  readonly routes: RouteTable
  readonly proxy: ProxyServer
  readonly accounts: Accounts
  readonly upstreams: ReadonlyMap<string, LiveUpstream>
  /** Exchanges under way, WebSockets included. */
  readonly running: Running
  /** May this peer set x-forwarded-* and the request id? */
  trusts(address: string): boolean
  /** It takes no new exchanges. */
  draining: boolean
}

export interface GatewayParts {
  readonly version: string
  readonly clock: Clock
  readonly log: Logger
  /** Where the in-process simulator listens; null when no upstream needs it. */
  readonly simulatorSocket: string | null
}

export function buildGateway(config: Config, parts: GatewayParts): Gateway {
  const trusted = blockList(config.server.trustedProxies)
  return {
    config,
    version: parts.version,
    clock: parts.clock,
    log: parts.log,
    keyring: new Keyring(config.keys, compileGlobs),
    routes: new RouteTable(config.routes, compileGlobs),
    proxy: createProxy(),
    accounts: openAccounts(config, parts.clock, parts.log),
    upstreams: new Map([...config.upstreams].map(([name, upstream]) => [name, connect(upstream, config, parts)])),
    running: new Running(),
    trusts: address => trusted.check(address, isIPv6(address) ? 'ipv6' : 'ipv4'),
    draining: false,
  }
}

function connect(upstream: Upstream, config: Config, parts: GatewayParts): LiveUpstream {
  const url = upstream.url ?? new URL('http://simulator')
  const connectTimeouts = config.routes
    .filter(route => route.targets.some(target => target.upstream === upstream))
    .map(route => route.timeouts.connect)
  const socketPath = upstream.simulator ? parts.simulatorSocket : null
  const transport = createTransport({
    origin: url.origin,
    socketPath,
    // The exchange's own deadline comes first; this one ends the attempt that nobody waits for any more.
    connectTimeout: Math.max(config.timeouts.connect, ...connectTimeouts) + 1_000,
    ca: upstream.ca,
  })
  return { config: upstream, url, prefix: url.pathname.replace(/\/+$/, ''), socketPath, transport }
}

function blockList(addresses: readonly string[]): BlockList {
  const list = new BlockList()
  for (const entry of addresses) {
    const [address = '', bits] = entry.split('/')
    const family = isIPv6(address) ? 'ipv6' : 'ipv4'
    if (bits === undefined) list.addAddress(address, family)
    else list.addSubnet(address, Number(bits), family)
  }
  return list
}
