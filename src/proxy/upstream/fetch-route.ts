import { isDeepStrictEqual } from 'node:util'
import { Agent, getGlobalDispatcher, setGlobalDispatcher } from 'undici'
import { proxyFor, type ProxyRules, type ProxyServer } from '../../base/outgoing-proxy.ts'
import type { Connector } from './connector.ts'
import { DiallingAgent } from './dialling-agent.ts'
import { createRoute } from './tunnel.ts'

/** ms for connecting; callers have their own deadlines. */
const CONNECT_TIMEOUT = 10_000

/** The connections of the runtime's `fetch`, by the rules. */
class RoutedAgent extends Agent {
  readonly rules: ProxyRules | null

  constructor(rules: ProxyRules | null) {
    super({ connect: connectorBy(rules) })
    this.rules = rules
  }
}

/**
 * Sends the requests of the runtime's `fetch` by the rules, in the whole process: libraries for tokens and logins use it. Without rules,
 * now and before, it changes nothing. Running requests keep their connections.
 */
export function routeFetch(rules: ProxyRules | null): void {
  const current = getGlobalDispatcher()
  const before = current instanceof RoutedAgent ? current.rules : null
  if (isDeepStrictEqual(before, rules)) return
  setGlobalDispatcher(new RoutedAgent(rules))
  // Ignore the error: connections that do not close in order are closed by their peers.
  if (current instanceof RoutedAgent) current.close().catch(() => {})
}

/** For libraries that use node's own client. @param protocol with its colon */
export function agentBy(rules: ProxyRules, protocol: string): DiallingAgent {
  return new DiallingAgent(protocol, connectorBy(rules))
}

/** A connector that decides at each connection. Reads the CA file of a proxy at the first connection. */
function connectorBy(rules: ProxyRules | null): Connector {
  const routes = new Map<ProxyServer | null, Connector>()
  return (target, callback) => {
    const proxy = proxyFor(rules, target)
    try {
      const route = routes.get(proxy) ?? createRoute(proxy, { socketPath: null, connectTimeout: CONNECT_TIMEOUT, trust: null, http2: false })
      routes.set(proxy, route)
      route(target, callback)
    } catch (error) {
      callback(error as Error, null)
    }
  }
}
