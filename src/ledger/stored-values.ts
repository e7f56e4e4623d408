import type { SQLOutputValue, SQLInputValue, StatementSync } from 'node:sqlite'
import { parseDecimal } from '../base/decimal.ts'
import { isObject } from '../base/is-object.ts'
import type { Price } from '../config/price-types.ts'
import type { AttemptRecord, PolicyAction } from './row.ts'

export type StoredRow = Readonly<Record<string, SQLOutputValue>>

/** The largest difference between a JavaScript date and 1970, ms. */
const MAX_TIME = 8.64e15

/** Reads one stored row. For an unreadable value, returns null and adds the column to `unreadable`, so that other rows can be read. */
export class StoredValues {
  readonly #stored: StoredRow
  readonly unreadable: string[] = []

  constructor(stored: StoredRow) {
    this.#stored = stored
  }

  text(column: string): string | null {
    const value = this.#stored[column] ?? null
    return typeof value === 'string' || value === null ? value : this.#gap(column, null)
  }

  /** @param column with a whole number as text */
  bigint(column: string): bigint | null {
    const text = this.text(column)
    if (text === null) return null
    return /^-?\d+$/.test(text) ? BigInt(text) : this.#gap(column, null)
  }

  number(column: string): number | null {
    const value = this.#stored[column] ?? null
    if (value === null) return null
    return typeof value === 'number' && Math.abs(value) <= Number.MAX_SAFE_INTEGER ? value : this.#gap(column, null)
  }

  /** @returns ms since 1970; 0 = unreadable */
  time(column: string): number {
    const value = this.number(column)
    return value !== null && Math.abs(value) <= MAX_TIME ? value : this.#gap(column, 0)
  }

  /** @param words known values @param otherwise result if the value is not known, because a later version may have written it */
  word<T extends string>(column: string, words: Readonly<Record<T, unknown>>, otherwise: T): T {
    const value = this.#stored[column]
    return typeof value === 'string' && Object.hasOwn(words, value) ? value as T : this.#gap(column, otherwise)
  }

  attempts(column: string): readonly AttemptRecord[] {
    return parseAttempts(this.#stored[column]) ?? this.#gap(column, [])
  }

  policy(column: string): readonly PolicyAction[] | null {
    const actions = parseStoredJson(this.#stored[column])
    if (actions === null) return null
    return Array.isArray(actions) && actions.every(isAction) ? actions : this.#gap(column, null)
  }

  tags(column: string): Readonly<Record<string, string>> | null {
    const tags = parseStoredJson(this.#stored[column])
    if (tags === null) return null
    return isObject(tags) && Object.values(tags).every(isText) ? tags as Record<string, string> : this.#gap(column, null)
  }

  price(column: string): Price | null {
    const price = parseStoredJson(this.#stored[column])
    if (price === null) return null
    return isPrice(price) ? price : this.#gap(column, null)
  }

  #gap<T>(column: string, value: T): T {
    if (!this.unreadable.includes(column)) this.unreadable.push(column)
    return value
  }
}

/** @returns null = unreadable */
export function parseAttempts(stored: unknown): readonly AttemptRecord[] | null {
  const value = parseStoredJson(stored)
  if (value === null) return []
  return Array.isArray(value) && value.every(isAttempt) ? value : null
}

/** @returns undefined = not JSON */
export function parseStoredJson(stored: unknown): unknown {
  if (stored === null || stored === undefined) return null
  if (typeof stored !== 'string') return undefined
  try {
    return JSON.parse(stored)
  } catch {
    return undefined
  }
}

const ATTEMPT: Readonly<Record<keyof AttemptRecord, readonly [isOptional: boolean, isValid: (value: unknown) => boolean]>> = {
  upstream: [false, isText], model: [false, value => value === null || isText(value)], outcome: [false, isText], ms: [false, isNumber],
  translated: [true, isText], dropped: [true, value => Array.isArray(value) && value.every(isText)],
  atMs: [true, isNumber], status: [true, isNumber], said: [true, isText], errorText: [true, isText],
  inputTokens: [true, isNumber], outputTokens: [true, isNumber], costUsd: [true, isText], billed: [true, value => value === 'client'],
}

function isAttempt(value: unknown): value is AttemptRecord {
  return isObject(value) && Object.entries(ATTEMPT).every(([name, [isOptional, isValid]]) =>
    (value[name] === undefined ? isOptional : isValid(value[name])))
}

function isPrice(value: unknown): value is Price {
  return isObject(value) && Object.entries(value).every(([name, part]) => (name === 'tiers' ? isTiers(part) : isAmount(part)))
}

function isTiers(value: unknown): boolean {
  return Array.isArray(value) && value.every(tier => isObject(tier) && isNumber(tier['above']) && isPrice(tier['price']))
}

function isAmount(value: unknown): boolean {
  try {
    return isText(value) && parseDecimal(value) !== null
  } catch {
    return false
  }
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number'
}

/** Reads whole numbers as number. Rounds numbers that are too large for JavaScript, because of which node:sqlite would refuse all rows. */
export function allRows(statement: StatementSync, ...values: readonly SQLInputValue[]): StoredRow[] {
  statement.setReadBigInts(false)
  try {
    return statement.all(...values)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_OUT_OF_RANGE') throw error
  }
  statement.setReadBigInts(true)
  return statement.all(...values).map(withoutBigInts)
}

export function withoutBigInts(stored: StoredRow): StoredRow {
  return Object.fromEntries(Object.entries(stored).map(([name, value]) => [name, typeof value === 'bigint' ? Number(value) : value]))
}

function isAction(value: unknown): value is PolicyAction {
  return isObject(value) && isText(value['rule']) && isText(value['action']) && typeof value['count'] === 'number'
}
