import { GatewayError } from '../base/errors.ts'
import type { Route, Target } from '../config/types.ts'
import type { Exchange } from './exchange/exchange.ts'
import type { Gateway } from './parts/gateway.ts'

/**
 * The route without the targets whose model has a smaller context than the prompt (`fit: check`). If none is left, the target for prompts
 * that are too long is asked, if its model has room.
 * @throws GatewayError context_length_exceeded
 */
export async function fittingRoute(gateway: Gateway, exchange: Exchange, route: Route): Promise<Route> {
  const { classified: { endpoint: { prompt, tokenCount } }, request: { body } } = exchange
  // A request that only counts tokens may have any length.
  if (prompt === null || tokenCount !== null || body === null || body.json === null) return route
  const { targets, on: { contextLength } } = route
  const contexts = new Map([...targets, ...contextLength === null ? [] : [contextLength]].map(target => [target, contextOf(gateway, exchange, target)]))
  // A token has at least one byte, so most prompts need not be counted.
  if (Math.min(...contexts.values()) >= body.bytes.length) return route
  const tokens = await gateway.accounts.counter.prompt(prompt, body.bytes)
  exchange.throwIfStopped()
  if (tokens === null) return route
  const fits = (target: Target) => tokens <= (contexts.get(target) ?? Infinity)
  const fitting = targets.filter(fits)
  if (fitting.length > 0) return { ...route, targets: fitting }
  if (contextLength !== null && fits(contextLength)) return { ...route, targets: [contextLength] }
  // Claude Code reads these words, and Codex reads the code. Both make the conversation shorter then.
  throw new GatewayError('context_length_exceeded', `prompt is too long: ${tokens} tokens > ${Math.max(...contexts.values())} maximum`)
}

/** @returns Infinity = unknown */
function contextOf({ accounts: { prices } }: Gateway, { request: { model: named } }: Exchange, { model, upstream: { url } }: Target): number {
  const name = model ?? named
  return name === null ? Infinity : prices.sizeOf(url, name, named ?? name).context ?? Infinity
}
