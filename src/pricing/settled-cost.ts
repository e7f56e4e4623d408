import { formatUsd } from '../base/decimal.ts'
import type { Price } from '../config/price-types.ts'
import type { Endpoint, InputEstimate } from '../protocols/endpoint/protocol.ts'
import type { ServingModels } from '../protocols/usage/reported-usage.ts'
import type { StreamMeter } from '../protocols/events/stream-meter.ts'
import { blankUsage, type Usage } from '../protocols/usage/usage.ts'
import { cost } from './cost.ts'
import type { QuotedPrice } from './prices.ts'
import { provisional } from './provisional.ts'
import type { MeteredResponse, SettledUsage } from './settle-usage.ts'
import { priceFor } from './tier-price.ts'

export interface SettledCost extends SettledUsage {
  /** Cost in 1e-12 USD; null = unknown. */
  readonly costPico: bigint | null
}

/** The tokens and the cost of one attempt, which are added to its record. */
export interface AttemptShare {
  inputTokens?: number
  outputTokens?: number
  /** Cost in USD; absent = unknown or not billed. */
  costUsd?: string
}

/** The bill of one of the attempts that generated a response. */
export type AttemptCost = { readonly record: AttemptShare | undefined; readonly bill: SettledCost }

export function settleCost(settled: SettledUsage, quoted: QuotedPrice | null): SettledCost {
  const price = quoted?.price ?? null
  const { usage, unread, billed } = settled
  // If a part with a price was not read, the total cost is unknown.
  const isUnknown = unread && price !== null && hasUnreportedCost(usage, price)
  return { ...settled, costPico: !billed ? 0n : isUnknown ? null : cost(usage, price) }
}

/** The source of usage before the response has ended. @param meter null = not a stream */
export function provisionalSource(meter: StreamMeter | null, usage: Usage): SettledCost['source'] {
  if (meter?.reading()) return 'mixed'
  return Object.values(usage).some(count => count !== null) ? 'estimated' : 'none'
}

/**
 * The cost so far of a response in a session, without counting tokens.
 * @param inBackground true = the upstream generates the whole response even if the client disconnects
 */
export function provisionalCost(
  endpoint: Endpoint, response: MeteredResponse, estimate: InputEstimate | null, quoted: QuotedPrice | null, inBackground: boolean,
): SettledCost {
  const meter = response.kind === 'stream' ? response.meter : null
  const inputTokens = estimate?.inputTokens ?? null
  const { usage: known, unread } = provisional({ endpoint, response, inputTokens, request: null, inBackground, isCompressed: false })
  const isReported = (meter?.reading()?.usage.inputTokens ?? null) !== null
  const usage = isReported ? known : { ...known, ...estimate }
  const source = provisionalSource(meter, usage)
  return settleCost({ usage, source, billed: true, suspect: false, unread }, priceFor(quoted, response))
}

/** The bill of an attempt in which several models served, each at its own price. */
export function settleCostByModel(
  settled: SettledUsage, makers: ServingModels, quoted: QuotedPrice | null, priceOf: (model: string) => QuotedPrice | null,
): SettledCost {
  const { servingModels: _, ...own } = settled
  const bill = settleCost(own, quoted)
  const others = makers.others.map(({ model, usage }) => {
    const unread = usage.inputTokens === null || usage.outputTokens === null
    return settleCost({ ...own, usage, unread }, model === null ? null : priceOf(model))
  })
  return mergeCosts([bill, ...others].map(bill => ({ record: undefined, bill })))
}

function hasUnreportedCost({ images }: Usage, price: Price): boolean {
  const { output, reasoning, outputAudio, outputImage, perImage } = price
  const perToken = output ?? reasoning ?? outputAudio ?? outputImage
  return perToken !== undefined || (perImage !== undefined && images === null)
}

/** Adds the bills of all attempts. Adds the share of each attempt to its record. */
export function mergeCosts(parts: readonly AttemptCost[]): SettledCost {
  for (const { record, bill } of parts) if (record) noteCost(record, bill)
  const bills = parts.map(({ bill }) => bill)
  const sources = new Set(bills.map(({ source }) => source).filter(source => source !== 'none'))
  const [source = 'none'] = sources
  return {
    usage: bills.reduce((sum, { usage }) => addUsage(sum, usage), blankUsage()),
    source: sources.size > 1 ? 'mixed' : source,
    billed: bills.some(({ billed }) => billed),
    suspect: bills.some(({ suspect }) => suspect),
    unread: bills.some(({ unread }) => unread),
    costPico: bills.map(({ costPico }) => costPico).reduce(addCost),
  }
}

/** Adds each count. The sum of a known and an unknown count is the known count. */
export function addUsage(a: Usage, b: Usage): Usage {
  const sum = blankUsage()
  for (const name of Object.keys(sum) as (keyof Usage)[]) {
    const [x, y] = [a[name], b[name]]
    // Round, because seconds can have fractions of a millisecond.
    sum[name] = x === null ? y : y === null ? x : Math.round((x + y) * 1000) / 1000
  }
  return sum
}

/** @returns null = unknown, because at least one of the costs is unknown */
export function addCost(a: bigint | null, b: bigint | null): bigint | null {
  return a === null || b === null ? null : a + b
}

export function noteCost(record: AttemptShare, { usage, billed, costPico }: SettledCost): void {
  if (!billed) return
  const { inputTokens, outputTokens } = usage
  if (inputTokens !== null) record.inputTokens = inputTokens
  if (outputTokens !== null) record.outputTokens = outputTokens
  if (costPico !== null) record.costUsd = formatUsd(costPico)
}
