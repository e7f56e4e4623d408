import type { Route, Target } from '../../config/types.ts'
import type { RefusalReason } from '../../protocols/shared/refusal-reason.ts'

/** No refused request goes to another target. */
export const NO_REFUSAL_TARGETS: Map<RefusalReason, Target> = new Map()

/** Where the route sends requests that an upstream refuses for their content, by the reason. */
export function refusalTargets({ on }: Pick<Route, 'on'>): Map<RefusalReason, Target> {
  if (on.contextLength === null && on.contentFilter === null) return NO_REFUSAL_TARGETS
  const targets = new Map<RefusalReason, Target>()
  if (on.contextLength) targets.set('context_length', on.contextLength)
  if (on.contentFilter) targets.set('content_filter', on.contentFilter)
  return targets
}
