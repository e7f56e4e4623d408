import { plainLimits } from '../auth/key-record.ts'
import { faultOfKeyName } from '../config/key-name.ts'
import type { Limits } from '../config/types.ts'
import type { Limits as PlainLimits } from './api/keys.ts'
import { ConsoleProblem } from './problem.ts'

type PlainFigures = Omit<PlainLimits, 'models'>
type Figures = Omit<Limits, 'models'>

/** As in the schema of gateway.yaml. */
const MOST_COUNT = 1_000_000_000_000
const MOST_USD = 1_000_000_000
const LONGEST_GLOB = 1_024

/** @throws ConsoleProblem bad_request for a name that no key may have */
export function checkName(name: string): string {
  const fault = faultOfKeyName(name)
  if (fault !== null) throw wrong('name', fault)
  return name
}

/** @throws ConsoleProblem bad_request */
export function checkModels(globs: readonly string[]): string[] {
  for (const glob of globs) checkGlob(glob, 'models')
  return [...new Set(globs)]
}

/**
 * Limits as the API has them, as the gateway has them.
 *
 * @throws ConsoleProblem bad_request
 */
export function limitsOf({ models = {}, ...own }: PlainLimits): Limits {
  return {
    ...figuresOf(own, 'limits'),
    models: new Map(Object.entries(models).map(([glob, figures]) => {
      checkGlob(glob, 'limits.models')
      return [glob, figuresOf(figures, `limits.models.${glob}`)]
    })),
  }
}

/** Limits as the gateway has them, as the API has them. */
export function plainOf(limits: Limits | null): PlainLimits | null {
  return limits === null ? null : plainLimits(limits)
}

function figuresOf(
  { requests_per_minute, tokens_per_minute, concurrent, budget }: PlainFigures, at: string,
): Figures {
  const count = (value: number | undefined, name: string): number | null => {
    if (value === undefined) return null
    if (value >= 1 && value <= MOST_COUNT) return value
    throw wrong(`${at}.${name}`, `must be a whole number from 1 to ${MOST_COUNT}`)
  }
  return {
    requestsPerMinute: count(requests_per_minute, 'requests_per_minute'),
    tokensPerMinute: count(tokens_per_minute, 'tokens_per_minute'),
    concurrent: count(concurrent, 'concurrent'),
    budget: budget === undefined ? null : { usd: amount(budget.usd, `${at}.budget.usd`), per: budget.per },
  }
}

function amount(usd: string, at: string): string {
  if (/^\d{1,10}(\.\d{1,12})?$/.test(usd) && Number(usd) <= MOST_USD) return usd
  throw wrong(at, `must be an amount of USD up to ${MOST_USD}, such as 50 or 0.25`)
}

function checkGlob(glob: string, at: string): void {
  if (glob.trim() === '' || glob.length > LONGEST_GLOB) {
    throw wrong(at, 'must be names or globs of models, such as gpt-*')
  }
}

function wrong(field: string, what: string): ConsoleProblem {
  return new ConsoleProblem('bad_request', `${field} ${what}`, { field })
}
