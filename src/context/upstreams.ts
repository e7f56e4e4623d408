import { readFileSync } from 'node:fs'
import { everyTarget } from '../config/routes.ts'
import type { Config, Upstream } from '../config/types.ts'
import { prefixOf } from '../proxy/address.ts'
import { createTransport } from '../proxy/transport.ts'
import type { Transport, TransportOptions } from '../proxy/transport.ts'

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
  readonly connections: Connections
}

/**
 * The connections to an upstream, which reloads keep as long as they do not concern them. They close when no
 * configuration uses them any more.
 */
export class Connections {
  readonly transport: Transport
  /** Identifies the address and the CA. */
  readonly connectionKey: string
  /** Milliseconds. */
  readonly timeout: number
  #holders = 0

  constructor(transport: Transport, connectionKey: string, timeout: number) {
    this.transport = transport
    this.connectionKey = connectionKey
    this.timeout = timeout
  }

  retain(): void {
    this.#holders++
  }

  release(): void {
    this.#holders--
    if (this.#holders === 0) void this.transport.close()
  }
}

/**
 * The upstreams of a configuration. Connections of `before` with the same address and CA are kept; no new ones are opened.
 *
 * @param simulatorSocket where the in-process simulator listens; null when no upstream needs it
 * @throws the system's error for a CA file that cannot be read
 */
export function liveUpstreams(
  config: Config, simulatorSocket: string | null, before: Iterable<LiveUpstream> = [],
): Map<string, LiveUpstream> {
  const known = new Map(Array.from(before, ({ config, connections }) => [config.name, connections]))
  return new Map(Array.from(config.upstreams, ([name, upstream]) => {
    const url = upstream.url ?? new URL('http://simulator')
    const socketPath = upstream.simulator ? simulatorSocket : null
    const connectTimeout = maxConnectTimeout(config, upstream)
    const options = { origin: url.origin, socketPath, connectTimeout, ca: upstream.ca }
    const connectionKey = connectionKeyOf(options)
    const old = known.get(name)
    const connections = old?.connectionKey === connectionKey && old.timeout === connectTimeout
      ? old
      : new Connections(createTransport(options), connectionKey, connectTimeout)
    const { transport } = connections
    return [name, { config: upstream, url, prefix: prefixOf(url), socketPath, transport, connections }]
  }))
}

/** Milliseconds. The exchange's own deadline comes first; this one ends connections that no exchange awaits any more. */
function maxConnectTimeout({ routes, timeouts }: Config, upstream: Upstream): number {
  const own = routes
    .filter(route => everyTarget(route).some(target => target.upstream === upstream))
    .map(route => route.timeouts.connect)
  return Math.max(timeouts.connect, ...own) + 1_000
}

/** It has the content of the CA file: a replaced file needs new connections. */
function connectionKeyOf({ origin, socketPath, ca }: TransportOptions): string {
  return JSON.stringify([origin, socketPath, ca && readFileSync(ca, 'utf8')])
}
