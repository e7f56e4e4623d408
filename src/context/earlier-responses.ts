import { addUsage } from '../pricing/settled-cost.ts'
import { blankUsage } from '../protocols/shared/usage.ts'
import type { Usage } from '../protocols/shared/usage.ts'
import type { Exchange } from './exchange.ts'

/** The usage that interrupted responses have reported, for the client: to be called when it is reported. */
export function reportedUsageSoFar({ earlierResponses }: Exchange): () => Usage {
  const shares = earlierResponses.map(({ share }) => share)
  return () => shares.map(({ reported }) => reported.usage).reduce(addUsage, blankUsage())
}

/** Has the client been sent anything that was generated? */
export function hasGeneratedOutput(exchange: Exchange): boolean {
  return [exchange, ...exchange.earlierResponses]
    .some(({ response }) => response?.kind === 'stream' && response.meter.sawContent)
}
