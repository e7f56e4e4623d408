import { wantsEventStream } from './exchange/exchange.ts'
import type { Exchange, Plan } from './exchange/exchange.ts'
import type { Gateway } from './parts/gateway.ts'
import type { Estimate } from '../limits/types.ts'
import { isMetered, isUnmetered } from '../pricing/metering.ts'
import type { QuotedPrice } from '../pricing/prices.ts'
import { addCost } from '../pricing/settled-cost.ts'
import { hasCacheWriteRate, highestCost, isPricedByRequest } from '../pricing/tier-price.ts'
import { visitModels } from '../protocols/request/named-models.ts'
import { cacheWriteField, estimateItems, estimateRequest, maxOutputTokens, unboundedOutput } from '../protocols/request/request-estimate.ts'
import { blankUsage } from '../protocols/usage/usage.ts'
import type { Usage } from '../protocols/usage/usage.ts'
import { withoutResourcePrefix } from './admit.ts'
import { translatedBounds } from './attempt/translated-bounds.ts'

/** The most that the request can use. */
export interface RequestEstimate extends Estimate {
  /** Tokens of the request; null = unknown. */
  readonly inputTokens: number | null
  /** The first member that bounds the output but is not a whole number from 0 on; null = none. */
  readonly fault: string | null
}

/**
 * Estimates the worst case of a request: the most expensive of all targets that it can reach, and the one that can
 * generate the most. A request that is translated is estimated as it is sent.
 *
 * @param others prices of the other models that the request names, for each target; null = unpriced
 */
export function estimate(
  gateway: Gateway, exchange: Exchange, plan: Plan, others: readonly (readonly (QuotedPrice | null)[])[] = [],
): RequestEstimate {
  const { classified: { endpoint }, request: { body, model } } = exchange
  const { quotes, reachable, route, hedgeAfter } = plan
  // The usage of a WebSocket is not known in advance.
  if (body === null && endpoint.session !== null) {
    const isPriced = (model === null && !endpoint.session.required) || !quotes.includes(null)
    return { inputTokens: null, tokens: 1, pico: isPriced ? 1n : null, fault: null }
  }
  if (!isMetered(endpoint) || body === null) {
    const perRequest = quotes.every(isPricedByRequest) ? highestCost([blankUsage()], quotes) : null
    return { inputTokens: null, tokens: 0, pico: perRequest ?? 0n, fault: null }
  }
  const { inputTokens, mediaTokens, output } = estimateRequest(endpoint, body.bytes, body.json)
  const input = inputTokens ?? 0
  const { assumedOutput, abandoned } = gateway.config.billing
  const unbounded = unboundedOutput(endpoint, assumedOutput)
  const responses = output?.responses ?? body.form?.count ?? 1
  const used = {
    ...blankUsage(), ...estimateItems(endpoint, body.bytes, responses), inputTokens: input, inputImageTokens: mediaTokens || null,
  }
  const write = quotes.some(hasCacheWriteRate) ? cacheWriteField(body.bytes) : null
  // It is unknown whether media are written to the cache too.
  const usages = write === null ? [used] : [input, input - mediaTokens].map(tokens => ({ ...used, [write]: tokens }))
  // A second attempt may run beside the first: its prompt is billed too.
  const prompts = hedgeAfter === null || abandoned === 'none' ? 1 : 2
  const outputs = reachable.map(target => {
    if (output === null) return unbounded * responses
    const live = gateway.targets.at(target, endpoint, model)
    const translated = live.isSpoken ? null : translatedBounds(gateway, exchange, live, route.translate)
    return maxOutputTokens(translated ?? output, unbounded)
  })
  const pricesAt = (at: number): (QuotedPrice | null)[] => [quotes[at] ?? null, ...others[at] ?? []]
  const costs = outputs.map((outputTokens, at) => attemptsCost(usages, pricesAt(at), outputTokens, prompts))
  const most = Math.max(...outputs)
  const further = continuations(exchange, plan)
  // Each continuation reads the prompt and the text so far, and can write as much as the first attempt.
  const continued = further === 0 ? 0n : costs.map((_, at) => highestCost(usages.map(usage => ({ ...usage, inputTokens: input + most, outputTokens: most })), pricesAt(at))).reduce(higher)
  return {
    inputTokens,
    tokens: Math.max(1, prompts * input + most + further * (input + 2 * most)),
    pico: addCost(costs.reduce(higher), continued === null ? null : BigInt(further) * continued),
    fault: output?.fault ?? body.form?.fault ?? null,
  }
}

/** How many further attempts may continue the stream of a request after it broke (`resume: continue`). */
function continuations(exchange: Exchange, { route: { resume, retries } }: Plan): number {
  const isAllowed = resume === 'continue' || resume === 'continue_or_hold'
  return isAllowed && exchange.classified.endpoint.streams !== null && wantsEventStream(exchange) ? retries : 0
}

/** @param prompts number of attempts whose prompt is billed; one of them has output */
function attemptsCost(
  usages: readonly Usage[], quotes: readonly (QuotedPrice | null)[], outputTokens: number, prompts: number,
): bigint | null {
  const cost = highestCost(usages.map(usage => ({ ...usage, outputTokens })), quotes)
  return prompts === 1 ? cost : addCost(cost, highestCost(usages.map(usage => ({ ...usage, outputTokens: 0 })), quotes))
}

/** The higher cost; null = unknown if either cost is unknown. */
function higher(a: bigint | null, b: bigint | null): bigint | null {
  return a === null || b === null ? null : a > b ? a : b
}

/**
 * The prices of the models that a request names in addition to its own, at each target that it can reach.
 *
 * @returns for each target, in the order of the plan; null = unpriced, or the server chooses the model
 */
export function otherQuotes(gateway: Gateway, exchange: Exchange, { reachable }: Plan): (QuotedPrice | null)[][] {
  const { classified: { endpoint }, request: { body, model: own }, startedWall } = exchange
  const names = new Set<string | null>()
  if (body?.json) {
    visitModels(body.bytes, { isKnown: !isUnmetered(endpoint), skipsOwn: true }, ({ model }) => {
      const name = model === null ? null : withoutResourcePrefix(model)
      if (name !== own) names.add(name)
    })
  }
  const at = new Date(startedWall)
  return reachable.map(({ upstream: { url } }) => (
    [...names].map(name => name === null ? null : gateway.accounts.prices.priceOf(url, name, at, name))
  ))
}
