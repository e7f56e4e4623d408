import { createServer, type IncomingMessage, type Server } from 'node:http'
import { serveExchange } from './exchange.ts'
import { identifiers } from './identifiers.ts'
import type { SimulatorContext } from './simulator-context.ts'
import { countExchanges, type Stats } from './stats.ts'
import { upgrader } from './websockets/upgrade.ts'

export interface SimulatorOptions {
  /** Returns ms since 1970; absent = the machine's clock. */
  readonly now?: () => number
  /** Logs each request once, after the request has ended. A pino logger fits. */
  readonly log?: { info(details: object, message: string): void }
}

/**
 * An HTTP server that counts its requests. It emits `aborted` with `{ method, path, model }` of the request when a client disconnects
 * before the end of a response.
 */
export interface Simulator extends Server {
  readonly stats: Readonly<Stats>
}

/**
 * Creates a provider that needs no key, and that misbehaves as docs/simulator.md describes. The server does not listen yet: the caller
 * chooses a port or a Unix socket. No timeout of the server ends a slow upload or a long stream.
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
    // Node does not list upgraded connections, so close them here.
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
