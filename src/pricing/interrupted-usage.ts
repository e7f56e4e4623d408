import type { StreamMeter } from '../protocols/events/stream-meter.ts'
import { blankUsage } from '../protocols/usage/usage.ts'
import { provisionalUsage } from './provisional.ts'
import { noCharge, settleUsage, type MeteredResponse, type SettledUsage, type SettleInput } from './settle-usage.ts'
import type { TokenCounter } from './token-counter.ts'

/**
 * The usage of a response that broke and that another target continues. The ledger must have the numbers that the client gets:
 * the count, or the estimate if the client gets its usage before the count is known.
 */
export class InterruptedUsage {
  readonly settled: Promise<SettledUsage>
  readonly #estimate: () => SettledUsage
  #known: SettledUsage | null = null

  /** @param estimate returns the usage so far without counting */
  constructor(counting: Promise<SettledUsage>, estimate: () => SettledUsage) {
    this.#estimate = estimate
    this.settled = counting.then(counted => (this.#known ??= counted))
    // The settlement handles a rejection later; prevent an unhandled one until then.
    this.settled.catch(() => {})
  }

  /** The usage for the client. */
  get reported(): SettledUsage {
    return (this.#known ??= this.#estimate())
  }
}

/** A response that broke, or that the gateway cancelled. */
export interface InterruptedResponse extends Pick<SettleInput, 'endpoint' | 'request'> {
  readonly response: MeteredResponse
  /** Tokens as estimated at admission. */
  readonly estimatedInput: number | null
}

export function createInterruptedUsage(counter: TokenCounter, { estimatedInput, ...input }: InterruptedResponse): InterruptedUsage {
  const meter = input.response.kind === 'stream' ? input.response.meter : null
  const counting = Promise.try(settleUsage, { ...input, end: 'other', abandoned: 'none' }, counter)
  // Without generated output nothing is billed.
  return new InterruptedUsage(counting, () => meter?.sawContent ? usageSoFar(meter, estimatedInput) : noCharge())
}

/** For an attempt that was cancelled before the client got any of its response. @param abandoned what is billed for such a request */
export function createAbandonedUsage(
  counter: TokenCounter, { estimatedInput, ...input }: InterruptedResponse, abandoned: 'prompt' | 'none',
): InterruptedUsage {
  const meter = input.response.kind === 'stream' ? input.response.meter : null
  const counting = Promise.try(settleUsage, { ...input, end: 'client_gone', abandoned }, counter)
  return new InterruptedUsage(counting, () => {
    if (meter !== null && (meter.sawContent || (meter.reading()?.usage.inputTokens ?? 0) > 0)) return usageSoFar(meter, estimatedInput)
    if (abandoned === 'none' || estimatedInput === null) return noCharge()
    const usage = { ...blankUsage(), inputTokens: estimatedInput, outputTokens: 0 }
    return { usage, source: 'estimated', billed: true, suspect: false, unread: false }
  })
}

function usageSoFar(meter: StreamMeter, estimatedInput: number | null): SettledUsage {
  const reading = meter.reading()
  const usage = provisionalUsage(meter, estimatedInput)
  return { usage, source: reading ? 'mixed' : 'estimated', billed: true, suspect: reading?.suspect ?? false, unread: false }
}
