import { addUsage } from '../../pricing/settled-cost.ts'
import { blankUsage } from '../../protocols/usage/usage.ts'
import type { Usage } from '../../protocols/usage/usage.ts'
import type { Exchange } from './exchange.ts'

/**
 * @returns a function that reads the usage of the attempts interrupted so far; call it when the client gets the usage
 */
export function reportedUsageSoFar({ interruptedAttempts }: Exchange): () => Usage {
  const shares = interruptedAttempts.flatMap(({ share }) => share ?? [])
  return () => shares.map(({ reported }) => reported.usage).reduce(addUsage, blankUsage())
}

/** Was the client sent any generated output? */
export function hasGeneratedOutput({ attempts }: Exchange): boolean {
  return attempts.some(({ metered }) => metered?.kind === 'stream' && metered.meter.sawContent)
}
