import { isPaidByClient } from '../../upstreams/attempt.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { UpstreamAttempt } from '../exchange/upstream-attempt.ts'
import { addCost } from '../../pricing/settled-cost.ts'

/** The cost of an attempt. */
export interface CostPart {
  /** null = there was none. */
  readonly attempt: Pick<UpstreamAttempt, 'target'> | null
  /** false = nothing was used. */
  readonly billed: boolean
  /** 1e-12 USD; null = unknown. */
  readonly costPico: bigint | null
}

export interface PaidCost {
  /** null = the operator pays at least a part, or there is nothing to pay. */
  readonly billed: 'client' | null
  /** What the operator pays; 1e-12 USD, null = unknown. */
  readonly costPico: bigint | null
}

/** Rows, sums and budgets have the operator's cost only: what a client pays is in the records of its attempts. @param parts at least one */
export function paidCost({ credentials }: Pick<Exchange, 'credentials'>, parts: readonly CostPart[]): PaidCost {
  // Without a credential of its own, a client pays for nothing.
  if (credentials === null) return { billed: null, costPico: parts.map(({ costPico }) => costPico).reduce(addCost) }
  const used = parts.filter(({ billed }) => billed)
  const operators = used.filter(({ attempt }) => attempt === null || !isPaidByClient(attempt.target.upstream))
  return {
    billed: used.length > 0 && operators.length === 0 ? 'client' : null,
    costPico: operators.map(({ costPico }) => costPico).reduce(addCost, 0n),
  }
}
