import { createServer, type IncomingMessage, type Server } from 'node:http'
import { serveExchange } from './exchange.ts'
import { identifiers } from './identifiers.ts'
import type { SimulatorContext } from './simulator-context.ts'
import { countExchanges, type Stats } from './stats.ts'
import { upgrader } from './websockets/upgrade.ts'

export interface SimulatorOptions {
  /** Milliseconds since 1970; the machine's clock unless given. */
  readonly now?: () => number
  /** Hears of each request once, when it has ended. A pino logger is one. */
  readonly log?: { info(details: object, message: string): void }
}

/**
 * An HTTP server that counts its requests. It emits `aborted` with the request's
 * `{ method, path, model }` when a client disconnects before the end of a response.
 */
export interface Simulator extends Server {
  readonly stats: Readonly<Stats>
}

/**
 * A provider that needs no key and misbehaves on demand, as docs/simulator.md
 * says. It is not listening yet: the caller chooses a port or a Unix socket. No
 * timeout of the server cuts a slow upload or a long stream short.
 */
export function createSimulator(options: SimulatorOptions = {}): Simulator {
  const server = createServer({
    keepAlive: true,
    noDelay: true,
    requestTimeout: 0,
    keepAliveTimeout: 75_000,
    // Other upgrade requests get an HTTP response.
    shouldUpgradeCallback: incoming => isWebSocket(incoming),
  })
  const counter = countExchanges(request => server.emit('aborted', request), options.log)
  const surroundings: SimulatorContext = {
    now: options.now ?? Date.now,
    id: identifiers(),
    turns: new Map(),
    counter,
  }
  const websockets = upgrader(surroundings)
  server.on('request', (incoming, res) => serveExchange(surroundings, incoming, res))
  server.on('upgrade', (incoming, socket, head) => websockets.upgrade(incoming, socket, head))
  const closeAll = server.closeAllConnections.bind(server)
  return Object.assign(server, {
    stats: counter.stats,
    // Node does not track upgraded connections.
    closeAllConnections: () => {
      websockets.closeAll()
      closeAll()
    },
  })
}

function isWebSocket(incoming: IncomingMessage): boolean {
  const path = incoming.url?.split('?')[0]
  return incoming.headers.upgrade?.toLowerCase() === 'websocket'
    && (path === '/v1/realtime' || path === '/v1/responses')
}
