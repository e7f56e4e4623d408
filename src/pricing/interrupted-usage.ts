import type { StreamMeter } from '../protocols/events/stream-meter.ts'
import { blankUsage } from '../protocols/usage/usage.ts'
import { provisionalUsage } from './provisional.ts'
import { noCharge, settleUsage, type MeteredResponse, type SettledUsage, type SettleInput } from './settle-usage.ts'
import type { TokenCounter } from './token-counter.ts'

/**
 * The usage of a response that broke and that another target continues. Client and ledger must get the same numbers: the count or, if the
 * client gets its usage before the tokens are counted, the estimate.
 */
export class InterruptedUsage {
  readonly settled: Promise<SettledUsage>
  readonly #estimate: () => SettledUsage
  #known: SettledUsage | null = null

  /** @param estimate returns the usage so far without counting tokens */
  constructor(counting: Promise<SettledUsage>, estimate: () => SettledUsage) {
    this.#estimate = estimate
    this.settled = counting.then(counted => (this.#known ??= counted))
    // Prevent an unhandled rejection until settlement handles the rejection.
    this.settled.catch(() => {})
  }

  /** The usage to report to the client. */
  get reported(): SettledUsage {
    return (this.#known ??= this.#estimate())
  }
}

/** A response that broke, or an attempt that the gateway cancelled. */
export interface InterruptedResponse extends Pick<SettleInput, 'endpoint' | 'request'> {
  readonly response: MeteredResponse
  /** Input tokens by the estimate at admission; null = unknown. */
  readonly estimatedInput: number | null
}

export function createInterruptedUsage(counter: TokenCounter, { estimatedInput, ...input }: InterruptedResponse): InterruptedUsage {
  const meter = input.response.kind === 'stream' ? input.response.meter : null
  const counting = Promise.try(settleUsage, { ...input, end: 'other', abandoned: 'none' }, counter)
  // If no output was generated, nothing is billed.
  return new InterruptedUsage(counting, () => meter?.sawContent ? usageSoFar(meter, estimatedInput) : noCharge())
}

/** For an attempt that was cancelled before the client got any of its response. @param abandoned what the upstream bills then */
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
