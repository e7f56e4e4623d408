import { limitsToJson } from '../auth/key-record.ts'
import { keyNameError } from '../config/sections/key-name.ts'
import type { Limits } from '../config/key-types.ts'
import { effectiveLimits } from '../limits/effective-limits.ts'
import type { Limits as PlainLimits } from './api/keys.ts'
import { ConsoleProblem } from './http/console-problem.ts'

/** The same limits as in the schema of gateway.yaml. */
const MAX_COUNT = 1_000_000_000_000
const MAX_USD = 1_000_000_000
const MAX_GLOB_LENGTH = 1_024

/** @throws ConsoleProblem bad_request if the name is invalid */
export function checkName(name: string): string {
  const fault = keyNameError(name)
  if (fault !== null) throw invalidField('name', fault)
  return name
}

/** @throws ConsoleProblem bad_request if the owner or note is not one line of text */
export function checkDescription<T extends { readonly owner?: string | null | undefined, readonly note?: string | null | undefined }>(described: T): T {
  for (const name of ['owner', 'note'] as const) {
    // oxlint-disable-next-line no-control-regex -- control characters are refused
    if (/[\x00-\x1f\x7f]|^\s*$/.test(described[name] ?? '-')) throw invalidField(name, 'must be a line of text')
  }
  return described
}

/** @param now ms since 1970 @returns ms since 1970 @throws ConsoleProblem bad_request if the time is in the past */
export function expiryOf(timestamp: string, now: number): number {
  const at = Date.parse(timestamp)
  if (at > now) return at
  throw invalidField('expires_at', 'must be in the future')
}

/** @throws ConsoleProblem bad_request */
export function checkModels(globs: readonly string[]): string[] {
  for (const glob of globs) checkGlob(glob, 'models')
  return [...new Set(globs)]
}

/** @throws ConsoleProblem bad_request */
export function limitsOf({ models = {}, ...own }: PlainLimits): Limits {
  return {
    ...limitValuesOf(own, 'limits'),
    models: new Map(Object.entries(models).map(([glob, figures]) => {
      checkGlob(glob, 'limits.models')
      return [glob, limitValuesOf(figures, `limits.models.${glob}`)]
    })),
  }
}

export function toPlainLimits(limits: Limits | null): PlainLimits | null {
  return limits === null ? null : limitsToJson(limits)
}

/** The limits of a key, with defaults for limits that the key does not set; null = no limits. */
export function effectivePlainLimits(own: Limits | null, defaults: Limits | null): PlainLimits | null {
  if (own === null && defaults === null) return null
  const { whole, models } = effectiveLimits(own, defaults)
  return toPlainLimits({ ...whole, models })
}

function limitValuesOf(
  { requests_per_minute, tokens_per_minute, concurrent, budget }: Omit<PlainLimits, 'models'>, at: string,
): Omit<Limits, 'models'> {
  const count = (value: number | undefined, name: string): number | null => {
    if (value === undefined) return null
    if (value >= 1 && value <= MAX_COUNT) return value
    throw invalidField(`${at}.${name}`, `must be a whole number from 1 to ${MAX_COUNT}`)
  }
  return {
    requestsPerMinute: count(requests_per_minute, 'requests_per_minute'),
    tokensPerMinute: count(tokens_per_minute, 'tokens_per_minute'),
    concurrent: count(concurrent, 'concurrent'),
    budget: budget === undefined ? null : { usd: amount(budget.usd, `${at}.budget.usd`), per: budget.per },
  }
}

function amount(usd: string, at: string): string {
  if (/^\d{1,10}(\.\d{1,12})?$/.test(usd) && Number(usd) <= MAX_USD) return usd
  throw invalidField(at, `must be an amount of USD up to ${MAX_USD}, such as 50 or 0.25`)
}

function checkGlob(glob: string, at: string): void {
  if (glob.trim() === '' || glob.length > MAX_GLOB_LENGTH) {
    throw invalidField(at, 'must be names or globs of models, such as gpt-*')
  }
}

function invalidField(field: string, what: string): ConsoleProblem {
  return new ConsoleProblem('bad_request', `${field} ${what}.`, { field })
}
