import type { LimitedHolder } from '../auth/keyring.ts'
import { compileGlob } from '../config/glob.ts'
import type { Limits } from '../config/key-types.ts'
import type { LimitedKey, ScopeLimits } from '../limits/types.ts'

/** The holder of limits for a request. */
export type Holder = LimitedHolder | LimitedKey

/** Does a holder have a budget that can apply to the model? @param model null = any model */
export function hasBudgetFor(holder: Holder, defaults: Limits | null, model: string | null): boolean {
  return someLimit(holder, defaults, model, ({ budget }) => budget !== null)
}

/** Does a holder have token limits or a budget that can apply to the model? @param model null = any model */
export function limitsUse(holder: Holder, defaults: Limits | null, model: string | null): boolean {
  return someLimit(holder, defaults, model, ({ budget, tokensPerMinute }) => budget !== null || tokensPerMinute !== null)
}

function someLimit(
  { limits, groups = [] }: Holder, defaults: Limits | null, model: string | null, test: (limits: ScopeLimits) => boolean,
): boolean {
  return [limits, defaults, ...groups.map(group => group.limits)].some(each => each !== null && (
    test(each) || [...each.models].some(([glob, own]) => test(own) && (model === null || compileGlob(glob)(model)))
  ))
}
