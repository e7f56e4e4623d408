import { GatewayError } from '../base/errors.ts'
import { isPaidByClient } from '../upstreams/attempt.ts'
import type { Target, TranslateMode } from '../config/types.ts'
import { wantsEventStream, type Exchange, type Plan } from './exchange/exchange.ts'
import type { Gateway } from './parts/gateway.ts'
import type { Estimate } from '../limits/types.ts'
import { isMetered, isUnmetered } from '../pricing/metering.ts'
import type { QuotedPrice } from '../pricing/prices.ts'
import { addCost } from '../pricing/settled-cost.ts'
import { hasCacheWriteRate, highestCost, isPricedByRequest } from '../pricing/tier-price.ts'
import { jsonInspection } from '../protocols/request/inspect.ts'
import { visitModels } from '../protocols/request/named-models.ts'
import { outputMembers, readOutputBounds, type OutputBounds } from '../protocols/request/output-bounds.ts'
import { cacheWriteField, estimateItems, estimateRequest, maxOutputTokens, unboundedOutput } from '../protocols/request/request-estimate.ts'
import { blankUsage, type Usage } from '../protocols/usage/usage.ts'
import { acceptedBy, modelRules } from '../protocols/vendors/model-rules.ts'
import { translate } from '../protocols/translate.ts'
import type { LiveTarget } from '../upstreams/live-targets.ts'
import { withoutResourcePrefix } from './admit.ts'
import { translationHost, translatorFor } from './attempt/outgoing-request.ts'

export interface RequestEstimate extends Estimate {
  /** null = unknown. */
  readonly inputTokens: number | null
  /** The first member that should bound the output but is not a whole number from 0 on; null = none. */
  readonly fault: string | null
}

/** The worst case of all reachable targets, in cost (of those that the operator pays) and in output. @param others quotes of other named models, by target */
export function estimate(
  gateway: Gateway, exchange: Exchange, plan: Plan, others: readonly (readonly (QuotedPrice | null)[])[] = [],
): RequestEstimate {
  const { classified: { endpoint }, request: { body, model } } = exchange
  const { reachable, route, hedgeAfter } = plan
  const quotes = operatorQuotes(plan)
  if (body === null && endpoint.session !== null) {
    const isPriced = (model === null && !endpoint.session.required) || !quotes.includes(null)
    return { inputTokens: null, tokens: 1, pico: isPriced ? BigInt(quotes.length && 1) : null, fault: null }
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
  // It is unknown whether the upstream writes media to the cache too: estimate both cases.
  const usages = write === null ? [used] : [input, input - mediaTokens].map(tokens => ({ ...used, [write]: tokens }))
  // With `hedge` two attempts can run at once, and both prompts are billed.
  const prompts = hedgeAfter === null || abandoned === 'none' ? 1 : 2
  const outputs = reachable.map(target => {
    if (output === null) return unbounded * responses
    const live = gateway.targets.at(target, endpoint, model)
    const translated = live.isSpoken ? null : translatedBounds(gateway, exchange, live, route.translate)
    return maxOutputTokens(translated ?? output, unbounded)
  })
  const pricesAt = (at: number): (QuotedPrice | null)[] =>
    isPaidByClient((reachable[at] as Target).upstream) ? [] : [plan.quotes[at] ?? null, ...others[at] ?? []]
  const costs = outputs.map((outputTokens, at) => attemptsCost(usages, pricesAt(at), outputTokens, prompts))
  const most = Math.max(...outputs)
  const further = continuations(exchange, plan)
  // The prompt of a continuation includes the text so far. A continuation can write as much as the first attempt.
  const continued = further === 0 ? 0n : costs.map((_, at) => highestCost(usages.map(usage => ({ ...usage, inputTokens: input + most, outputTokens: most })), pricesAt(at))).reduce(higher)
  return {
    inputTokens,
    tokens: Math.max(1, prompts * input + most + further * (input + 2 * most)),
    pico: addCost(costs.reduce(higher), continued === null ? null : BigInt(further) * continued),
    fault: output?.fault ?? body.form?.fault ?? null,
  }
}

/** The prices at the reachable targets that the operator pays. */
export function operatorQuotes({ reachable, quotes }: Plan): readonly (QuotedPrice | null)[] {
  const isAll = !reachable.some(({ upstream }) => isPaidByClient(upstream))
  return isAll ? quotes : quotes.filter((_, at) => !isPaidByClient((reachable[at] as Target).upstream))
}

/** How many attempts may continue the stream (`resume: continue`). */
function continuations(exchange: Exchange, { route: { resume, retries } }: Plan): number {
  const isAllowed = resume === 'continue' || resume === 'continue_or_hold'
  return isAllowed && exchange.classified.endpoint.streams !== null && wantsEventStream(exchange) ? retries : 0
}

/** @param prompts number of attempts whose prompt is billed; the output of one attempt is billed too */
function attemptsCost(
  usages: readonly Usage[], quotes: readonly (QuotedPrice | null)[], outputTokens: number, prompts: number,
): bigint | null {
  const cost = highestCost(usages.map(usage => ({ ...usage, outputTokens })), quotes)
  return prompts === 1 ? cost : addCost(cost, highestCost(usages.map(usage => ({ ...usage, outputTokens: 0 })), quotes))
}

/** @returns null = unknown, because at least one of the costs is unknown */
function higher(a: bigint | null, b: bigint | null): bigint | null {
  return a === null || b === null ? null : a > b ? a : b
}

/** Prices of the further models that a request names, by target of the plan, none where the client pays; null = unpriced, or the server chooses the model. */
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
  return reachable.map(({ upstream }) => (
    (isPaidByClient(upstream) ? [] : [...names]).map(name => name === null ? null : gateway.accounts.prices.priceOf(upstream.url, name, at, name))
  ))
}

/** Translation can add output bounds, such as Anthropic's `max_tokens`. @returns null = the client's own bounds apply */
function translatedBounds(gateway: Gateway, exchange: Exchange, live: LiveTarget, mode: TranslateMode): OutputBounds | null {
  const { classified: { endpoint }, request: { body, model, stream } } = exchange
  if (!body?.json) return null
  const { upstream } = live
  try {
    const translator = translatorFor(endpoint, live.speaks, mode)
    if (translator === null || translator.embeddings !== null) return null
    const name = live.model ?? ''
    const { endpoint: sentTo, written } = translate(translator, outputMembers(body.bytes, body.json.fields), {
      model: name,
      accepts: acceptedBy(modelRules(upstream.config, translator.to, name, model)),
      host: translationHost(upstream),
      stream: stream || wantsEventStream(exchange),
      asksForUsage: false,
      isStrict: false,
      // Only the output bounds are needed, and no conversation is translated: no capsule is opened.
      capsules: { keys: gateway.sharedState.capsuleKeys.keys, reserve: () => undefined },
    })
    const bytes = Buffer.from(JSON.stringify(written.body))
    const scan = jsonInspection()
    scan.push(bytes)
    const json = scan.end()
    return json.ok ? readOutputBounds(sentTo, bytes, json.fields) : null
  } catch (error) {
    // The attempt at this target reports the error again.
    if (error instanceof GatewayError) return null
    throw error
  }
}
