import type { Usage } from '../../protocols/usage/usage.ts'
import type { LedgerRow } from '../row.ts'
import { bucketOf, addToBucket, type Histogram } from './first-byte.ts'

export interface CountedRow extends
  Pick<LedgerRow, 'startedAt' | 'key' | 'model' | 'upstream' | 'group' | 'status' | 'firstByteMs'>,
  Pick<Usage, 'inputTokens' | 'cachedInputTokens' | 'cacheWrite5mTokens' | 'cacheWrite1hTokens' | 'outputTokens' | 'reasoningTokens'> {
  readonly protocol: string | null
  readonly end: string
  readonly source: string
  /** Picodollars in multiples of PART_SIZE; `costLow` is the rest. Both are null if the cost is unknown. */
  readonly costHigh: number | null
  readonly costLow: number | null
}

/** The columns of a `CountedRow`, except its cost, which is read in two parts. */
export const COUNTED_COLUMNS = [
  'started_at', 'key', 'model', 'upstream', 'group', 'protocol', 'status', 'end', 'source', 'first_byte_ms',
  'input_tokens', 'cached_input_tokens', 'cache_write_5m_tokens', 'cache_write_1h_tokens',
  'output_tokens', 'reasoning_tokens',
] as const

/** @param at index of each column in `values` */
export function toCountedRow(
  values: readonly unknown[], at: Readonly<Record<(typeof COUNTED_COLUMNS)[number], number>>,
  costHigh: number | null, costLow: number | null,
): CountedRow {
  const numbers = values as readonly (number | null)[]
  const texts = values as readonly (string | null)[]
  return {
    startedAt: numbers[at.started_at] ?? 0,
    key: texts[at.key] ?? null,
    model: texts[at.model] ?? null,
    upstream: texts[at.upstream] ?? null,
    group: texts[at.group] ?? null,
    protocol: texts[at.protocol] ?? null,
    status: numbers[at.status] ?? null,
    end: texts[at.end] ?? '',
    source: texts[at.source] ?? '',
    firstByteMs: numbers[at.first_byte_ms] ?? null,
    inputTokens: numbers[at.input_tokens] ?? null,
    cachedInputTokens: numbers[at.cached_input_tokens] ?? null,
    cacheWrite5mTokens: numbers[at.cache_write_5m_tokens] ?? null,
    cacheWrite1hTokens: numbers[at.cache_write_1h_tokens] ?? null,
    outputTokens: numbers[at.output_tokens] ?? null,
    reasoningTokens: numbers[at.reasoning_tokens] ?? null,
    costHigh,
    costLow,
  }
}

/** The order of `figures`. A sum has two columns, multiples of PART_SIZE (high) and the rest (low), because 64 bits could overflow. */
export const SUM_COLUMNS = [
  'requests', 'errors', 'unpriced', 'estimated', 'input_high', 'input_low', 'cached_high', 'cached_low', 'cache_write_high',
  'cache_write_low', 'output_high', 'output_low', 'reasoning_high', 'reasoning_low', 'cost_high', 'cost_low',
  'estimated_cost_high', 'estimated_cost_low',
] as const

export const PART_SIZE = 1_000_000_000

export const HOUR = 3_600_000
const HOURS_OF_DAY = 24

export const SUM_NAMES = ['key', 'model', 'upstream'] as const
export const DETAILED_NAMES = [...SUM_NAMES, 'group', 'protocol', 'status'] as const
type Names = Readonly<Record<(typeof DETAILED_NAMES)[number], string | null>>

/** The sums of requests with the same names that began in one hour or day. A table may have only some of the names. */
export interface Sums extends Names {
  /** Number of the hour or day since 1970. */
  readonly slot: number
  /** The figures in the order of SUM_COLUMNS. */
  figures: number[]
  /** Start of the last request, ms since 1970. */
  lastAt: number
}

/** Days are also summed by each of these dimensions alone. Tables store the number. */
export const DIMENSION = { upstream: 0, key: 1, model: 2, group: 3 } as const
export type Dimension = keyof typeof DIMENSION

/** The sums of one day for one key, model, upstream or group. */
interface DimensionSums extends Pick<Sums, 'slot' | 'figures' | 'lastAt'> {
  readonly dimension: Dimension
  readonly name: string | null
}

/** Times to the first byte are counted for each of these scopes. Tables store the number. */
export const FIRST_BYTE_SCOPE = { all: 0, upstream: 1, key: 2 } as const

export interface FirstByteHistogram {
  /** Hours since 1970. */
  readonly hour: number
  readonly scope: number
  /** The name of the upstream or key; empty = all requests. */
  readonly name: string
  readonly counts: Histogram
}

interface HourSums extends Sums { readonly firstBytes: Histogram }

/** Collects what several rows add to the sums, so that each sum is changed by one SQL statement. */
export class Contributions {
  readonly #hours = new Map<string, HourSums>()

  /** @param sign 1 adds the row, -1 removes it */
  add(row: CountedRow, sign: 1 | -1): void {
    const hour = Math.floor(row.startedAt / HOUR)
    const { figures, firstBytes } = this.#sumsOf(hour, row)
    const isEstimated = row.source === 'estimated' || row.source === 'mixed'
    figures[0]! += sign
    if (row.end !== 'complete' && row.end !== 'client_gone') figures[1]! += sign
    if (row.costHigh === null) figures[2]! += sign
    if (isEstimated) figures[3]! += sign
    addTokens(figures, 4, row.inputTokens, sign)
    addTokens(figures, 6, row.cachedInputTokens, sign)
    addTokens(figures, 8, row.cacheWrite5mTokens, sign)
    addTokens(figures, 8, row.cacheWrite1hTokens, sign)
    addTokens(figures, 10, row.outputTokens, sign)
    addTokens(figures, 12, row.reasoningTokens, sign)
    figures[14]! += sign * (row.costHigh ?? 0)
    figures[15]! += sign * (row.costLow ?? 0)
    if (isEstimated) {
      figures[16]! += sign * (row.costHigh ?? 0)
      figures[17]! += sign * (row.costLow ?? 0)
    }
    if (row.firstByteMs !== null) addToBucket(firstBytes, bucketOf(row.firstByteMs), sign)
  }

  /** Number of sums by hour. */
  get size(): number {
    return this.#hours.size
  }

  hours(): Iterable<Sums> {
    return mergedBy(SUM_NAMES, 1, this.#hours.values())
  }

  days(): Iterable<Sums> {
    return mergedBy(SUM_NAMES, HOURS_OF_DAY, this.#hours.values())
  }

  detailedDays(): Iterable<Sums> {
    return mergedBy(DETAILED_NAMES, HOURS_OF_DAY, this.#hours.values())
  }

  /** The sums of the days by each dimension alone. */
  dimensions(): Iterable<DimensionSums> {
    const sums = new Map<string, DimensionSums>()
    for (const hour of this.#hours.values()) {
      const slot = Math.floor(hour.slot / HOURS_OF_DAY)
      for (const dimension of DIMENSIONS) {
        const name = hour[dimension]
        // Do not sum requests without a group by group.
        if (dimension === 'group' && name === null) continue
        const id = `${slot} ${dimension} ${lengthPrefixed(name)}`
        merge(sums, id, hour, figures => ({ slot, dimension, name, figures, lastAt: hour.lastAt }))
      }
    }
    return sums.values()
  }

  firstBytes(): Iterable<FirstByteHistogram> {
    const all = new Map<string, FirstByteHistogram>()
    for (const { slot: hour, upstream, key, firstBytes } of this.#hours.values()) {
      if (firstBytes.size === 0) continue
      for (const [scope, name] of [[FIRST_BYTE_SCOPE.all, ''], [FIRST_BYTE_SCOPE.upstream, upstream], [FIRST_BYTE_SCOPE.key, key]] as const) {
        if (name === null) continue
        const id = `${hour} ${scope} ${name}`
        let known = all.get(id)
        if (known === undefined) all.set(id, known = { hour, scope, name, counts: new Map() })
        for (const [bucket, times] of firstBytes) addToBucket(known.counts, bucket, times)
      }
    }
    return all.values()
  }

  #sumsOf(slot: number, row: CountedRow): HourSums {
    const { key, model, upstream, group, protocol, status, startedAt } = row
    // Do not use `sumKey`, which is slower: this runs for each row.
    const id = `${slot} ${lengthPrefixed(key)}${lengthPrefixed(model)}${lengthPrefixed(upstream)}${lengthPrefixed(group)}${lengthPrefixed(protocol)}${status}`
    const known = this.#hours.get(id)
    if (known !== undefined) {
      if (startedAt > known.lastAt) known.lastAt = startedAt
      return known
    }
    const sums: HourSums = {
      slot, key, model, upstream, group, protocol, status: status === null ? null : String(status),
      figures: SUM_COLUMNS.map(() => 0), lastAt: startedAt, firstBytes: new Map(),
    }
    this.#hours.set(id, sums)
    return sums
  }
}

const DIMENSIONS = ['upstream', 'key', 'model', 'group'] as const

/** @param hours number of hours in a slot: 1 or 24 */
function mergedBy(names: readonly (keyof Names)[], hours: number, sums: Iterable<Sums>): Iterable<Sums> {
  const merged = new Map<string, Sums>()
  for (const hour of sums) {
    const slot = Math.floor(hour.slot / hours)
    merge(merged, sumKey(slot, names, hour), hour, figures => ({ ...hour, slot, figures }))
  }
  return merged.values()
}

/** Adds an hour to the sums with the id `id`. If there are none, creates them as a copy of the hour. */
function merge<T extends Pick<Sums, 'figures' | 'lastAt'>>(
  into: Map<string, T>, id: string, hour: Sums, begin: (figures: number[]) => T,
): void {
  const known = into.get(id)
  if (known === undefined) {
    into.set(id, begin([...hour.figures]))
    return
  }
  for (let n = 0; n < SUM_COLUMNS.length; n += 1) known.figures[n]! += hour.figures[n]!
  known.lastAt = Math.max(known.lastAt, hour.lastAt)
}

function addTokens(figures: number[], at: number, tokens: number | null, sign: 1 | -1): void {
  if (tokens === null) return
  if (tokens < PART_SIZE && tokens > -PART_SIZE) {
    figures[at + 1]! += sign * tokens
    return
  }
  figures[at]! += sign * Math.trunc(tokens / PART_SIZE)
  figures[at + 1]! += sign * (tokens % PART_SIZE)
}

/** @returns an id of the names; each name follows its length, because names can contain any text */
function sumKey(slot: number, names: readonly (keyof Names)[], sums: Names): string {
  let id = `${slot} `
  for (const name of names) id += lengthPrefixed(sums[name])
  return id
}

function lengthPrefixed(name: string | null): string {
  return name === null ? '-' : `${name.length}:${name}`
}
