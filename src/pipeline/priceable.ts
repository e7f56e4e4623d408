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
 * Under a budget, refuses a request to an endpoint without metering if its cost is unknown. Sessions, free requests and models with a price
 * per request pass. @param quotes of each model that the request names, at each target @throws GatewayError model_unpriced
 */
export function checkPriceable(
  gateway: Gateway, exchange: Writes<'refusedBy'>, quotes: readonly (QuotedPrice | null)[], holder: Holder, isUpgrade: boolean,
): void {
  const { classified: { endpoint }, req: { method = '' }, target: { path }, request: { model } } = exchange
  if (isPriceable(exchange, isUpgrade) || (!endpoint.isBatch && !isUpgrade && model !== null && quotes.every(isPricedByRequest))) return
  // The requests inside a batch name its models.
  if (!hasBudgetFor(holder, gateway.config.limits, endpoint.isBatch ? null : model)) return
  exchange.refusedBy = 'unpriced'
  const isBatch = endpoint.isBatch && method === 'POST' && callsModel(exchange)
  const what = isBatch ? 'start a batch' : isUpgrade ? `open a WebSocket on ${path}` : `use ${method} ${path}`
  throw new GatewayError('model_unpriced', `a key with a budget cannot ${what}, because its cost is unknown; `
    + 'the operator can serve it to a key without a budget'
    + (isBatch || isUpgrade ? '' : ', or set a price with per_request alone for the model that the request names'))
}

/** If the price of the model is known, is the cost of the request known too? */
function isPriceable({ classified: { endpoint }, req, target: { path }, request: { body } }: Exchange, isUpgrade: boolean): boolean {
  // Only messages of a session are read.
  if (isUpgrade) return endpoint.session !== null
  return endpoint.tokenCount !== null || costsNothing(req, path, body !== null)
}

/** A path on the route whose writes have an unknown cost; null = none. @param glob null = any path */
export function unpricedPath(glob: string | null): string | null {
  if (glob === null) return EXAMPLE
  const examples = glob.includes('*') ? [EXAMPLE, ...OTHER_ENDS.map(end => glob.replaceAll('*', end))] : [glob]
  return examples.find(path => compileGlob(glob)(path) && isApiPath(path) && isUnpricedPath(path)) ?? null
}

const EXAMPLE = '/v1/videos'
/** Replacements for the star of a glob that make the path an unmetered one. */
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

/** Does a holder have token limits or a budget that can apply to the model? @param model null = any model */
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
