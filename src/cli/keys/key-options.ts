import { InvalidArgumentError } from 'commander'
import { parseInstant } from '../../config/instant.ts'
import { keyNameError } from '../../config/sections/key-name.ts'
import type { Budget, Limits } from '../../config/key-types.ts'
import { didYouMean } from '../../config/nearest.ts'
import { parseDuration } from '../../config/units.ts'
import { isTagName } from '../../ledger/tags.ts'

type LimitValues = { -readonly [figure in keyof Omit<Limits, 'models'>]: Limits[figure] }

export interface ParsedLimits extends LimitValues { readonly models: Map<string, LimitValues> }

const COUNT_LIMITS = { requests_per_minute: 'requestsPerMinute', tokens_per_minute: 'tokensPerMinute', concurrent: 'concurrent' } as const
const LIMIT_NAMES = [...Object.keys(COUNT_LIMITS), 'budget']
const PERIODS = ['day', 'month', 'total'] as const
/** The same limits as in the schema of gateway.yaml. */
const MAX_COUNT = 1_000_000_000_000
const MAX_USD = 1_000_000_000
const MAX_GLOB_LENGTH = 1_024
const MAX_OWNER_LENGTH = 128
/** Maximum ms of a grace period. */
const MAX_GRACE = 365 * 86_400_000
/** The latest date that JavaScript supports, in ms since 1970. */
const MAX_TIME = 8_640_000_000_000_000

export function parseName(text: string): string {
  const fault = keyNameError(text)
  if (fault !== null) throw new InvalidArgumentError(`It ${fault}.`)
  return text
}

const MAX_NOTE_LENGTH = 512
const MAX_TAGS = 20

export function parseOwner(text: string): string {
  return parseLine(text, MAX_OWNER_LENGTH)
}

export function parseNote(text: string): string {
  return parseLine(text, MAX_NOTE_LENGTH)
}

function parseLine(text: string, maxLength: number): string {
  // oxlint-disable-next-line no-control-regex -- those are the ones to refuse
  if (text.trim() !== '' && text.length <= maxLength && !/[\x00-\x1f\x7f]/.test(text)) return text
  throw new InvalidArgumentError(`It needs 1 to ${maxLength} characters, and no control characters.`)
}

/** Adds a tag, NAME=VALUE, to those of earlier options. @throws InvalidArgumentError */
export function parseTag(text: string, previous: ReadonlyMap<string, string> = new Map()): ReadonlyMap<string, string> {
  const at = text.indexOf('=')
  const name = text.slice(0, Math.max(0, at))
  if (!isTagName(name)) throw new InvalidArgumentError('A tag is NAME=VALUE, such as project=alpha.')
  if (previous.has(name)) throw new InvalidArgumentError(`${name} is given twice.`)
  if (previous.size === MAX_TAGS) throw new InvalidArgumentError(`A key has at most ${MAX_TAGS} tags.`)
  return new Map([...previous, [name, parseLine(text.slice(at + 1), MAX_OWNER_LENGTH)]])
}

/** @param text a duration from now, or a date @param now ms since 1970 @returns ms since 1970 @throws InvalidArgumentError */
export function parseExpiry(text: string, now: number): number {
  const at = parseOr(() => now + parseDuration(text)) ?? parseOr(() => parseInstant(text))
  if (at === null) {
    throw new InvalidArgumentError('An expiry is a duration such as 30d, a date such as 2027-01-01, or a time such as 2027-01-01T12:00:00Z.')
  }
  if (at <= now) throw new InvalidArgumentError('It is in the past.')
  if (at > MAX_TIME) throw new InvalidArgumentError('It is too far in the future.')
  return at
}

/** @returns ms @throws InvalidArgumentError */
export function parseGrace(text: string): number {
  const ms = parseOr(() => parseDuration(text))
  if (ms === null || ms > MAX_GRACE) throw new InvalidArgumentError('A grace is a duration of at most 365d, such as 24h or 7d.')
  return ms
}

function parseOr(parse: () => number): number | null {
  try {
    return parse()
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    return null
  }
}

/** Adds globs, separated by commas, to the globs of earlier options. @throws InvalidArgumentError */
export function parseModels(text: string, previous: readonly string[] = []): string[] {
  const globs = text.split(',').map(glob => glob.trim())
  if (globs.some(glob => glob === '' || glob.length > MAX_GLOB_LENGTH)) {
    throw new InvalidArgumentError('Models are names or globs, separated by commas, such as "gpt-*,fast".')
  }
  return [...new Set([...previous, ...globs])]
}

/** Adds a limit to the limits of earlier options: NAME=VALUE, or GLOB:NAME=VALUE for matching models. @throws InvalidArgumentError */
export function parseLimit(text: string, previous: ParsedLimits = { ...emptyLimits(), models: new Map() }): ParsedLimits {
  const [, glob, name, value] = /^(?:(.+):)?([^:=]+)=(.*)$/s.exec(text) ?? []
  if (name === undefined || value === undefined) {
    throw new InvalidArgumentError(`A limit is NAME=VALUE, where NAME is ${LIMIT_NAMES.join(', ')}.`)
  }
  let figures: LimitValues = previous
  if (glob !== undefined) {
    figures = previous.models.get(glob) ?? emptyLimits()
    previous.models.set(glob, figures)
  }
  if (name === 'budget') {
    rejectDuplicate(figures.budget, text)
    figures.budget = parseBudget(value)
  } else if (Object.hasOwn(COUNT_LIMITS, name)) {
    const figure = COUNT_LIMITS[name as keyof typeof COUNT_LIMITS]
    rejectDuplicate(figures[figure], text)
    figures[figure] = parseCount(value)
  } else {
    throw new InvalidArgumentError(`There is no limit "${name}"${didYouMean(name, LIMIT_NAMES) || `; there is ${LIMIT_NAMES.join(', ')}`}`)
  }
  return previous
}

function emptyLimits(): LimitValues {
  return { requestsPerMinute: null, tokensPerMinute: null, concurrent: null, budget: null }
}

function rejectDuplicate(before: unknown, text: string): void {
  if (before !== null) throw new InvalidArgumentError(`${text.slice(0, text.lastIndexOf('='))} is given twice.`)
}

function parseCount(text: string): number {
  const count = Number(text)
  if (/^\d+$/.test(text) && count >= 1 && count <= MAX_COUNT) return count
  throw new InvalidArgumentError(`It takes a whole number from 1 to ${MAX_COUNT}.`)
}

function parseBudget(text: string): Budget {
  const [, usd, per] = /^(\d{1,10}(?:\.\d{1,12})?)\/(.*)$/s.exec(text) ?? []
  if (usd === undefined || per === undefined || Number(usd) > MAX_USD) {
    throw new InvalidArgumentError('A budget is an amount of USD and a period, such as 50/month or 0.25/day.')
  }
  const period = PERIODS.find(known => known === per)
  if (period !== undefined) return { usd, per: period }
  const hint = didYouMean(per, PERIODS) || `; there is ${PERIODS.join(', ')}`
  throw new InvalidArgumentError(`A budget has no period "${per}"${hint}`)
}
