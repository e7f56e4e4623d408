import { basename } from 'node:path'
import { GatewayError } from '../base/errors.ts'
import { nextTurn } from '../base/next-turn.ts'
import { placeOf } from '../config/problem.ts'
import type { Exchange } from './exchange/exchange.ts'
import type { Gateway } from './parts/gateway.ts'
import { callerFormat } from '../protocols/classify-path.ts'
import type { ModelCard } from '../protocols/endpoint/protocol.ts'
import { PROTOCOLS } from '../protocols/index.ts'
import { estimateTokens } from '../protocols/request/request-estimate.ts'
import { candidateOf } from '../routing/candidate.ts'
import { sendJson } from './gateway-response.ts'

/** GET /api/status. Needs no key, but only users of the console get the upstreams, and error messages with names of keys and files. */
export function sendStatus(gateway: Gateway, exchange: Exchange): void {
  const { version, sharedState } = gateway
  const { shutdown } = sharedState
  const isReady = shutdown === null || shutdown === 'hand_over'
  const { loadedAt, failure, pending } = sharedState.reloads
  const errors = failure?.problems.filter(({ severity }) => severity === 'error').map(problem => {
    const place = placeOf({ ...problem, file: basename(problem.file) })
    return exchange.isOperator ? `${place}: ${problem.message}` : place
  })
  const body = {
    success: isReady,
    version,
    status: shutdown === null ? 'ok' : isReady ? 'handing_over' : 'draining',
    ...sharedState.worker !== undefined && { worker: sharedState.worker },
    running: sharedState.activeExchanges.size - 1,
    body_bytes: sharedState.bodyMemory.reservedBytes,
    config: {
      loaded_at: new Date(loadedAt).toISOString(),
      error: errors?.join('\n') ?? null,
      failed_at: failure ? new Date(failure.at).toISOString() : null,
      restart_needed: pending,
    },
    ledger: ledgerStatus(gateway, exchange.isOperator),
    ...exchange.isOperator ? { upstreams: upstreamHealth(gateway) } : {},
  }
  sendJson(gateway, exchange, isReady ? 200 : 503, JSON.stringify(body), { 'cache-control': 'no-store' })
}

/** @returns null = no ledger is configured */
function ledgerStatus({ accounts: { ledger } }: Gateway, inFull: boolean) {
  if (ledger === null) return null
  const { healthy, waiting, lost, lastError } = ledger.stats()
  const failure = healthy ? null : lastError
  const error = failure && (inFull ? `${failure.code}: ${failure.message}` : failure.code)
  return { healthy, waiting, lost, error }
}

/** The health of each model at each upstream, if the model was used there; times in ms. */
function upstreamHealth({ health }: Gateway) {
  return health.conditions().map(([id, condition]) => {
    const [upstream, model] = candidateOf(id)
    const { circuit, opensIn, inFlight, firstByteMs } = condition
    return {
      upstream,
      model,
      circuit,
      reason: circuit === 'closed' ? null : health.causeOf(id).last?.reason ?? null,
      opens_in_ms: opensIn === Infinity ? null : Math.round(opensIn),
      in_flight: inFlight,
      first_byte_ms: firstByteMs === null ? null : Math.round(firstByteMs),
    }
  })
}

/** GET /v1/models and the equivalent paths of other protocols, in the client's format. @throws GatewayError model_not_found */
export async function sendModels(gateway: Gateway, exchange: Exchange): Promise<void> {
  const { classified, identity, req, target } = exchange
  const format = callerFormat(classified.endpoint, req.headers, target.isGoogles)
  if (classified.endpoint.ownResponse === 'model_list') {
    const models = listedModels(gateway).filter(name => identity.allows(name))
    const cards: ModelCard[] = []
    for (const [at, name] of models.entries()) {
      if (at % CARDS_PER_TURN === CARDS_PER_TURN - 1) await nextTurn()
      cards.push(cardOf(gateway, name))
    }
    exchange.throwIfStopped()
    sendJson(gateway, exchange, 200, format.modelList(cards))
    return
  }
  const model = classified.pathModel as string
  const isServed = gateway.routes.listsModel(model) || listedModels(gateway).includes(model)
  if (!isServed || !identity.allows(model)) {
    throw new GatewayError('model_not_found', `the model '${model}' does not exist or the key may not use it`, { param: 'model' })
  }
  sendJson(gateway, exchange, 200, format.modelCard(cardOf(gateway, model)))
}

/** The size of a model is searched in the catalogue, which takes up to 0.3 ms. */
const CARDS_PER_TURN = 100

/** A model has the size of the smallest target that its text requests can use, so that no client sends more than each of them takes. */
function cardOf({ routes, accounts: { prices } }: Gateway, name: string): ModelCard {
  const route = TEXT_PATHS.values().map(path => routes.match(path(name), name)).find(found => found !== null)
  const sizes = route?.targets.map(({ upstream, model }) => prices.sizeOf(upstream.url, model ?? name, name)) ?? []
  return { name, context: smallest(sizes.map(({ context }) => context)), output: smallest(sizes.map(({ output }) => output)) }
}

const TEXT_PATHS = PROTOCOLS.flatMap(({ textPath }) => textPath ?? [])

/** @returns null = none is known */
function smallest(figures: readonly (number | null)[]): number | null {
  const known = figures.filter(figure => figure !== null)
  return known.length === 0 ? null : Math.min(...known)
}

/** The names without wildcards in the `models` of routes, and the names in the top-level `models` that a route serves. */
export function listedModels(gateway: Gateway): string[] {
  const names = new Set<string>()
  for (const route of gateway.config.routes) {
    for (const glob of route.models ?? []) if (!glob.includes('*')) names.add(glob)
  }
  for (const name of gateway.config.models.keys()) if (gateway.routes.servesModel(name)) names.add(name)
  return [...names]
}

/** Counts the tokens of the prompt and sends the number. The endpoint must have a `tokenCount`. */
export async function sendTokenCount(gateway: Gateway, exchange: Exchange): Promise<void> {
  const { classified: { endpoint: { prompt, tokenCount } }, request } = exchange
  const body = request.body?.bytes ?? Buffer.alloc(0)
  const tokens = await gateway.accounts.counter.prompt(prompt, body) ?? estimateTokens(body)
  exchange.throwIfStopped()
  // If attempts were made, all of them failed: the gateway itself responds.
  exchange.serve(null)
  sendJson(gateway, exchange, 200, tokenCount?.(tokens) ?? '', { 'x-gateway-estimated': 'true' })
}
