import type { Exchange } from '../exchange/exchange.ts'
import type { UpstreamAttempt } from '../exchange/upstream-attempt.ts'
import type { SettledCost } from '../../pricing/settled-cost.ts'

/**
 * Settles the usage of each attempt with the limits of its upstream.
 *
 * @param tokens of the whole exchange; null = unknown, and the reservations stay
 * @param isBilled something was used
 */
export function settleUpstreamLimits({ attempts, servedBy }: Exchange, tokens: number | null, isBilled: boolean): void {
  let rest = tokens
  for (const attempt of attempts) {
    const { share, reservation } = attempt
    // Unbilled usage is not part of the tokens.
    if (share === null || !share.reported.billed) continue
    const used = tokensOf(share.reported)
    reservation?.settle({ tokens: used, pico: 0n })
    rest = rest === null || used === null ? null : Math.max(0, rest - used)
  }
  for (const attempt of attempts) settleAttempt(attempt, attempt === servedBy && isBilled, rest)
}

/** A reservation that is already settled does not change. */
function settleAttempt({ reservation }: UpstreamAttempt, isServing: boolean, tokens: number | null): void {
  if (isServing) reservation?.settle({ tokens, pico: 0n })
  else reservation?.release()
}

function tokensOf({ usage: { inputTokens, outputTokens } }: Pick<SettledCost, 'usage'>): number | null {
  return inputTokens === null && outputTokens === null ? null : (inputTokens ?? 0) + (outputTokens ?? 0)
}
