import type { Price } from '../config/types.ts'
import { ZERO, add, formatDecimal, multiply, parseDecimal, shift, toUnits } from './decimal.ts'
import type { Decimal } from './decimal.ts'
import { rest, within } from './figures.ts'
import type { Usage } from './usage.ts'

/** One line of a bill: quantity x price / per = cost. */
export interface CostLine {
  /** What is paid for: `input`, `cached_input`, `cache_write_5m`, `output`, `second`, `request`, ... */
  readonly item: string
  readonly quantity: number
  /** USD for `per` of them, exact. */
  readonly price: string
  readonly per: 1 | 1_000_000
  /** USD, exact, not rounded. */
  readonly cost: string
}

type Rates = Omit<Price, 'tiers'>

interface Part {
  readonly item: string
  readonly quantity: number | null
  readonly rate: string | undefined
  readonly per: 1 | 1_000_000
}

interface Line {
  readonly part: Part
  readonly quantity: number
  readonly rate: string
  readonly amount: Decimal
}

const PICO = 12

/**
 * What the usage costs, in picodollars (10^-12 USD). Exact: the sum is rounded
 * once, at the end, halves up; at usual prices there is nothing to round.
 *
 * @returns null, not 0, when the price does not tell: no price at all, none for a
 *   direction in which tokens were used, or nothing known that it applies to
 */
export function cost(usage: Usage, price: Price | null): bigint | null {
  const lines = price && bill(usage, price)
  return lines ? toUnits(lines.reduce((sum, line) => add(sum, line.amount), ZERO), PICO) : null
}

/** The lines whose amounts add up to the cost, without those of quantity 0; empty where the cost is null. */
export function explainCost(usage: Usage, price: Price | null): CostLine[] {
  const lines = price && bill(usage, price)
  return (lines ?? [])
    .filter(line => line.quantity > 0)
    .map(({ part, quantity, rate, amount }) => ({
      item: part.item,
      quantity,
      price: formatDecimal(parseDecimal(rate)),
      per: part.per,
      cost: formatDecimal(amount),
    }))
}

/** Picodollars as exact decimal USD: 1_250_000_000n is `0.00125`. */
export function formatUsd(pico: bigint): string {
  return formatDecimal({ units: pico, scale: PICO })
}

/** The price's lines for what is known to be used; null when it does not cover that. */
function bill(usage: Usage, price: Price): Line[] | null {
  const lines: Line[] = []
  for (const part of parts(usage, ratesFor(usage, price))) {
    if (part.quantity === null) continue
    if (part.rate !== undefined) lines.push(line(part, part.quantity, part.rate))
    else if (part.per !== 1 && part.quantity > 0 && hasTokenRate(price)) return null
  }
  return lines.length === 0 ? null : lines
}

function line(part: Part, quantity: number, rate: string): Line {
  const amount = multiply(parseDecimal(rate), parseDecimal(String(quantity)))
  return { part, quantity, rate, amount: part.per === 1 ? amount : shift(amount, -6) }
}

function hasTokenRate(price: Price): boolean {
  return price.input !== undefined || price.output !== undefined
}

/**
 * The rates of the highest tier that the input is above, laid over the price's
 * own: a tier replaces what it names, for the whole request.
 */
function ratesFor(usage: Usage, price: Price): Rates {
  const { tiers = [], ...rates } = price
  const tier = tiers.findLast(({ above }) => usage.inputTokens !== null && usage.inputTokens > above)
  return tier ? { ...rates, ...tier.price } : rates
}

/** The usage in parts that do not overlap, each at its own rate or that of its kin. */
function parts(usage: Usage, rates: Rates): Part[] {
  const input = new Remainder(usage.inputTokens)
  const output = new Remainder(usage.outputTokens)
  const write5m = rates.cacheWrite5m ?? rates.input
  return [
    tokens('cached_input', input.take(usage.cachedInputTokens), rates.cachedInput ?? rates.input),
    tokens('cache_write_5m', input.take(usage.cacheWrite5mTokens), write5m),
    tokens('cache_write_1h', input.take(usage.cacheWrite1hTokens), rates.cacheWrite1h ?? write5m),
    tokens('input_audio', input.take(usage.inputAudioTokens), rates.inputAudio ?? rates.input),
    tokens('input_image', input.take(usage.inputImageTokens), rates.inputImage ?? rates.input),
    tokens('input', input.left, rates.input),
    tokens('reasoning', output.take(usage.reasoningTokens), rates.reasoning ?? rates.output),
    tokens('output_audio', output.take(usage.outputAudioTokens), rates.outputAudio ?? rates.output),
    tokens('output_image', output.take(usage.outputImageTokens), rates.outputImage ?? rates.output),
    tokens('output', output.left, rates.output),
    each('second', usage.seconds, rates.perSecond),
    each('character', usage.characters, rates.perCharacter),
    each('image', usage.images, rates.perImage),
    each('request', 1, rates.perRequest),
  ]
}

/** What is left of a total as its parts are taken out; a total that nobody knows gives whatever is asked. */
class Remainder {
  left: number | null

  constructor(total: number | null) {
    this.left = total
  }

  take(part: number | null): number | null {
    const taken = within(part, this.left)
    this.left = rest(this.left, taken)
    return taken
  }
}

function tokens(item: string, quantity: number | null, rate: string | undefined): Part {
  return { item, quantity, rate, per: 1_000_000 }
}

function each(item: string, quantity: number | null, rate: string | undefined): Part {
  return { item, quantity, rate, per: 1 }
}
