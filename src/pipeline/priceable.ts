import type { LimitedHolder } from '../auth/keyring.ts'
import { GatewayError } from '../base/errors.ts'
import { compileGlob } from '../config/glob.ts'
import type { Limits } from '../config/key-types.ts'
import { callsModel, type Exchange, type Writes } from './exchange/exchange.ts'
import type { Gateway } from './parts/gateway.ts'
import type { LimitedKey, ScopeLimits } from '../limits/types.ts'
import type { QuotedPrice } from '../pricing/prices.ts'
import { isMetered } from '../pricing/metering.ts'
import { isPricedByRequest } from '../pricing/tier-price.ts'
import { classifyPath, isApiPath } from '../protocols/classify-path.ts'
import { costsNothing } from '../protocols/free-paths.ts'

/**
 * Refuses a request of unknown cost to an unmetered endpoint if the key has a budget. Sessions, free requests and models with a price per
 * request pass. @param quotes of each model in the request, at each target @throws GatewayError model_unpriced
 */
export function checkPriceable(
  gateway: Gateway, exchange: Writes<'refusedBy'>, quotes: readonly (QuotedPrice | null)[], holder: Holder, isUpgrade: boolean,
): void {
  const { classified: { endpoint }, req: { method = '' }, target: { path }, request: { model } } = exchange
  if (isPriceable(exchange, isUpgrade) || (!endpoint.isBatch && !isUpgrade && model !== null && quotes.every(isPricedByRequest))) return
  // The models of a batch are in the requests inside the batch, so check the budgets for any model.
  if (!hasBudgetFor(holder, gateway.config.limits, endpoint.isBatch ? null : model)) return
  exchange.refusedBy = 'unpriced'
  const isBatch = endpoint.isBatch && method === 'POST' && callsModel(exchange)
  const what = isBatch ? 'start a batch' : isUpgrade ? `open a WebSocket on ${path}` : `use ${method} ${path}`
  throw new GatewayError('model_unpriced', `a key with a budget cannot ${what}, because its cost is unknown; `
    + 'the operator can serve it to a key without a budget'
    + (isBatch || isUpgrade ? '' : ', or set a price with per_request alone for the model that the request names'))
}

/** @returns true = the cost of the request is known if the price of the model is known */
function isPriceable({ classified: { endpoint }, req, target: { path }, request: { body } }: Exchange, isUpgrade: boolean): boolean {
  // The gateway meters the messages of a WebSocket only on endpoints with a session.
  if (isUpgrade) return endpoint.session !== null
  return endpoint.tokenCount !== null || costsNothing(req, path, body !== null)
}

/** An example of a path that a route serves and where a POST has an unknown cost; null = none. @param glob path; null = any path */
export function unpricedPath(glob: string | null): string | null {
  if (glob === null) return EXAMPLE
  const examples = glob.includes('*') ? [EXAMPLE, ...OTHER_ENDS.map(end => glob.replaceAll('*', end))] : [glob]
  return examples.find(path => compileGlob(glob)(path) && isApiPath(path) && isUnpricedPath(path)) ?? null
}

const EXAMPLE = '/v1/videos'
/** Replacements for the star of a glob that make the path unmetered. */
const OTHER_ENDS = ['other', 'v1/other', 'm:predict', 'm/other']

function isUnpricedPath(path: string): boolean {
  const { endpoint } = classifyPath(path)
  const { ownResponse, session, tokenCount } = endpoint
  return !isMetered(endpoint) && ownResponse === null && session === null && tokenCount === null
    && !costsNothing({ method: 'POST', headers: {} }, path, true)
}

export type Holder = LimitedHolder | LimitedKey

/** @param model null = any model */
export function hasBudgetFor(holder: Holder, defaults: Limits | null, model: string | null): boolean {
  return someLimit(holder, defaults, model, ({ budget }) => budget !== null)
}

/** @returns true = the holder has a token limit or a budget that applies to the model @param model null = any model */
export function limitsUse(holder: Holder, defaults: Limits | null, model: string | null): boolean {
  return someLimit(holder, defaults, model, ({ budget, tokensPerMinute }) => budget !== null || tokensPerMinute !== null)
}

function someLimit(
  { limits, groups = [] }: Holder, defaults: Limits | null, model: string | null, test: (limits: ScopeLimits) => boolean,
): boolean {
  return [limits, defaults, ...groups.map(group => group.limits)].some(each => each !== null && (
    test(each) || [...each.models].some(([glob, own]) => test(own) && (model === null || compileGlob(glob)(model)))
  ))
}
