import { InvalidArgumentError } from 'commander'
import { faultOfKeyName } from '../config/key-name.ts'
import { didYouMean } from '../config/nearest.ts'
import type { Budget, Limits } from '../config/types.ts'

type Figures = { -readonly [figure in keyof Omit<Limits, 'models'>]: Limits[figure] }

/** What the command line gives as limits, one after the other. */
export interface GivenLimits extends Figures {
  readonly models: Map<string, Figures>
}

const COUNTS = {
  requests_per_minute: 'requestsPerMinute',
  tokens_per_minute: 'tokensPerMinute',
  concurrent: 'concurrent',
} as const
const NAMES = [...Object.keys(COUNTS), 'budget']
const PERIODS = ['day', 'month', 'total'] as const
/** As in the schema of gateway.yaml. */
const MOST_COUNT = 1_000_000_000_000
const MOST_USD = 1_000_000_000
const LONGEST_GLOB = 1_024

/**
 * The name of a key.
 * @throws InvalidArgumentError
 */
export function parseName(text: string): string {
  const fault = faultOfKeyName(text)
  if (fault !== null) throw new InvalidArgumentError(`It ${fault}.`)
  return text
}

/**
 * Adds globs to those that were given before.
 * @param text globs, separated by commas
 * @throws InvalidArgumentError
 */
export function parseModels(text: string, before: readonly string[] = []): string[] {
  const globs = text.split(',').map(glob => glob.trim())
  if (globs.some(glob => glob === '' || glob.length > LONGEST_GLOB)) {
    throw new InvalidArgumentError('Models are names or globs, separated by commas, such as "gpt-*,fast".')
  }
  return [...new Set([...before, ...globs])]
}

/**
 * Adds a limit to those that were given before.
 * @param text NAME=VALUE, or GLOB:NAME=VALUE for the models that the glob matches
 * @throws InvalidArgumentError
 */
export function parseLimit(
  text: string, before: GivenLimits = { ...noFigures(), models: new Map() },
): GivenLimits {
  const [, glob, name, value] = /^(?:(.+):)?([^:=]+)=(.*)$/s.exec(text) ?? []
  if (name === undefined || value === undefined) {
    throw new InvalidArgumentError(`A limit is NAME=VALUE, where NAME is ${NAMES.join(', ')}.`)
  }
  let figures: Figures = before
  if (glob !== undefined) {
    figures = before.models.get(glob) ?? noFigures()
    before.models.set(glob, figures)
  }
  if (name === 'budget') {
    once(figures.budget, text)
    figures.budget = parseBudget(value)
  } else if (Object.hasOwn(COUNTS, name)) {
    const figure = COUNTS[name as keyof typeof COUNTS]
    once(figures[figure], text)
    figures[figure] = parseCount(value)
  } else {
    throw new InvalidArgumentError(
      `There is no limit "${name}"${didYouMean(name, NAMES) || `; there is ${NAMES.join(', ')}`}`,
    )
  }
  return before
}

function noFigures(): Figures {
  return { requestsPerMinute: null, tokensPerMinute: null, concurrent: null, budget: null }
}

function once(before: unknown, text: string): void {
  if (before !== null) {
    throw new InvalidArgumentError(`${text.slice(0, text.lastIndexOf('='))} is given twice.`)
  }
}

function parseCount(text: string): number {
  const count = Number(text)
  if (/^\d+$/.test(text) && count >= 1 && count <= MOST_COUNT) return count
  throw new InvalidArgumentError(`It takes a whole number from 1 to ${MOST_COUNT}.`)
}

function parseBudget(text: string): Budget {
  const [, usd, per] = /^(\d{1,10}(?:\.\d{1,12})?)\/(.*)$/s.exec(text) ?? []
  if (usd === undefined || per === undefined || Number(usd) > MOST_USD) {
    throw new InvalidArgumentError('A budget is an amount of USD and a period, such as 50/month or 0.25/day.')
  }
  const period = PERIODS.find(known => known === per)
  if (period !== undefined) return { usd, per: period }
  const hint = didYouMean(per, PERIODS) || `; there is ${PERIODS.join(', ')}`
  throw new InvalidArgumentError(`A budget has no period "${per}"${hint}`)
}
