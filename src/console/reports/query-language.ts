import { picoUsd } from '../../base/decimal.ts'
import { didYouMean } from '../../config/nearest.ts'
import { parseDuration } from '../../config/units.ts'
import { isTagName, storedTag } from '../../ledger/tags.ts'
import type { Dialect } from './dialect.ts'
import { ReportError } from './report-error.ts'
import type { Dimensions } from './sums.ts'
import type { Sql } from './view.ts'

export interface ParsedQuery {
  /** A condition on rows of `requests`: all terms of the query are true. */
  readonly condition: Sql
  /** Names that every matching row has. The sums by these names show which hours must be searched. */
  readonly names: Dimensions
  /** true = no matching request is a plain success. */
  readonly excludesSuccesses: boolean
}

type Field =
  | { readonly kind: 'text', readonly column: string, readonly isHidden?: true }
  | { readonly kind: 'number', readonly column: string, readonly unit: keyof typeof UNITS }
  | { readonly kind: 'status' | 'attempts' | 'error' | 'tag' }

/** Units of numeric fields. `parse` returns the value in the unit of the ledger. */
const UNITS = {
  count: { example: '1000', parse: wholeNumber },
  duration: { example: '250ms or 2s', parse: (text: string) => parseDuration(text) },
  usd: { example: '0.01', parse: (text: string) => picoUsd(text.replace(/^\$/, '')) },
} as const

/** The fields of queries. Key holders cannot use fields that are hidden from them. */
const FIELDS: ReadonlyMap<string, Field> = new Map(Object.entries({
  key: { kind: 'text', column: 'key' },
  group: { kind: 'text', column: '"group"' },
  owner: { kind: 'text', column: 'owner' },
  model: { kind: 'text', column: 'model' },
  upstream: { kind: 'text', column: 'upstream', isHidden: true },
  upstream_model: { kind: 'text', column: 'upstream_model', isHidden: true },
  user: { kind: 'text', column: '"user"' },
  tag: { kind: 'tag' },
  protocol: { kind: 'text', column: 'protocol' },
  upstream_protocol: { kind: 'text', column: 'upstream_protocol', isHidden: true },
  endpoint: { kind: 'text', column: 'endpoint' },
  end: { kind: 'text', column: '"end"' },
  source: { kind: 'text', column: 'source' },
  route: { kind: 'text', column: 'route', isHidden: true },
  request: { kind: 'text', column: 'request_id' },
  trace: { kind: 'text', column: 'trace_id', isHidden: true },
  status: { kind: 'status' },
  error: { kind: 'error' },
  attempts: { kind: 'attempts' },
  cost: { kind: 'number', column: 'cost_pico_usd', unit: 'usd' },
  ttft: { kind: 'number', column: 'first_byte_ms', unit: 'duration' },
  duration: { kind: 'number', column: 'duration_ms', unit: 'duration' },
  input: { kind: 'number', column: 'input_tokens', unit: 'count' },
  cached: { kind: 'number', column: 'cached_input_tokens', unit: 'count' },
  output: { kind: 'number', column: 'output_tokens', unit: 'count' },
  reasoning: { kind: 'number', column: 'reasoning_tokens', unit: 'count' },
  bytes_in: { kind: 'number', column: 'bytes_in', unit: 'count' },
  bytes_out: { kind: 'number', column: 'bytes_out', unit: 'count' },
}))
const FIELD_NAMES = [...FIELDS.keys()]

/** `cost:none` means that there is no value. In quotes, `none` is a name. */
const NONE = 'none'
/** `end:failed` means every end except `complete` and `client_gone`. */
const FAILED = 'failed'
const MAX_TERMS = 30
const FAILED_SQL = `"end" NOT IN ('complete', 'client_gone')`

interface Term {
  /** Column in the query, from 1, of the first character of the term. */
  readonly at: number
  readonly isNegated: boolean
  readonly name: string
  readonly operator: ':' | '>' | '>=' | '<' | '<='
  /** The values, of which at least one must match. */
  readonly values: readonly Value[]
}

type Value = { readonly text: string, readonly isQuoted: boolean }

/**
 * @param text a query such as `status:5xx key:team-a model:gpt* -error:rate_limit cost>0.01 ttft>2s`
 * @param own the key of a key holder; null = the user may see all keys
 * @throws ReportError `bad_request`, `forbidden`; the message contains the column
 */
export function parseQuery(text: string, dialect: Dialect, own: string | null): ParsedQuery {
  const terms = termsOf(text)
  const conditions = terms.map(term => conditionOf(term, dialect, own))
  return {
    condition: { sql: conditions.map(({ sql }) => sql).join(' AND ') || 'TRUE', values: conditions.flatMap(({ values }) => values) },
    names: Object.fromEntries((['key', 'model', 'upstream'] as const).flatMap(name => {
      const only = terms.filter(term => term.name === name).map(onlyName).find(each => each !== null)
      return only === undefined ? [] : [[name, only]]
    })),
    excludesSuccesses: terms.some(excludesSuccesses),
  }
}

function termsOf(text: string): Term[] {
  const terms: Term[] = []
  const next = /\s*(?:(-?)([a-z_]+)(:|>=?|<=?)|(\S+))/iy
  for (;;) {
    const begin = next.lastIndex
    const match = next.exec(text)
    if (match === null) return terms
    const [whole, minus, name = '', operator, other] = match
    const at = begin + whole.length - whole.trimStart().length + 1
    if (other !== undefined) refuse(at, `${quoted(other)} is not a condition; write field:value, such as model:gpt-*`)
    const values = valuesAt(text, next, at, name.toLowerCase() === 'tag')
    terms.push({ at, isNegated: minus === '-', name: name.toLowerCase(), operator: operator as Term['operator'], values })
    if (terms.length > MAX_TERMS) refuse(at, `more than ${MAX_TERMS} conditions`)
  }
}

/** @param next is at the first value, and afterwards behind the last value @param isTag values are `name=value` or `name="value"` */
function valuesAt(text: string, next: RegExp, at: number, isTag: boolean): Value[] {
  const values: Value[] = []
  const value = isTag ? /([a-z0-9_-]+=)"((?:[^"\\]|\\.)*)"|([^\s,"]+)/iy : /()"((?:[^"\\]|\\.)*)"|([^\s,"]+)/y
  for (;;) {
    value.lastIndex = next.lastIndex
    const match = value.exec(text)
    if (match === null) {
      refuse(at, text[next.lastIndex] === '"' ? 'a quotation mark is missing at the end' : 'a value is missing after the operator')
    }
    const [, before = '', inQuotes, plain] = match
    values.push({ text: before + (inQuotes?.replace(/\\(.)/g, '$1') ?? plain ?? ''), isQuoted: inQuotes !== undefined })
    next.lastIndex = value.lastIndex
    if (text[next.lastIndex] !== ',') break
    next.lastIndex++
  }
  const following = text[next.lastIndex]
  if (following !== undefined && /\S/.test(following)) refuse(next.lastIndex + 1, 'there must be a space before the next condition')
  return values
}

function conditionOf(term: Term, dialect: Dialect, own: string | null): Sql {
  const { at, isNegated, name, operator, values } = term
  const field = FIELDS.get(name)
  if (field === undefined) {
    refuse(at, `unknown field ${quoted(name)}${didYouMean(name, FIELD_NAMES) || `; known are ${FIELD_NAMES.join(', ')}`}`)
  }
  const isHidden = field.kind === 'attempts' || ('isHidden' in field && field.isHidden === true)
  if (own !== null && isHidden) throw new ReportError('forbidden', `column ${at}: you cannot search by ${name}`, 'q')
  if (operator !== ':' && (field.kind === 'text' || field.kind === 'error' || field.kind === 'tag')) {
    refuse(at, `${name} is not a number: write ${name}:value`)
  }
  if (operator !== ':' && values.length > 1) refuse(at, `several values need a colon: ${name}:a,b`)
  const alternatives = values.map(value => alternative(field, term, value, dialect, own))
  const sql = `(${alternatives.map(each => each.sql).join(' OR ')})`
  return {
    // A row without a value does not match the term, so it matches the negation of the term.
    sql: isNegated ? `NOT coalesce(${sql}, FALSE)` : sql,
    values: alternatives.flatMap(each => each.values),
  }
}

function alternative(field: Field, term: Term, { text, isQuoted }: Value, dialect: Dialect, own: string | null): Sql {
  const isNone = text === NONE && !isQuoted && term.operator === ':'
  switch (field.kind) {
    case 'text':
      if (isNone) return { sql: `${field.column} IS NULL`, values: [] }
      if (field.column === '"end"' && text === FAILED) return { sql: FAILED_SQL, values: [] }
      return textSql(field.column, text, isQuoted, dialect)
    case 'tag':
      return tagSql(term, text, isQuoted, dialect)
    case 'error':
      return errorSql(text, dialect, own)
    case 'status':
      return statusSql(term, text)
    case 'attempts':
      return comparison(`coalesce(${dialect.listLength('attempts')}, 0)`, term, valueOf(term, text, 'count'))
    case 'number':
      if (isNone) return { sql: `${field.column} IS NULL`, values: [] }
      return comparison(field.column, term, valueOf(term, text, field.unit))
  }
}

function textSql(column: string, text: string, isQuoted: boolean, dialect: Dialect): Sql {
  if (isQuoted || !text.includes('*')) return { sql: `${column} = ?`, values: [text] }
  return { sql: `${column} ${dialect.like} ? ESCAPE '\\'`, values: [pattern(text)] }
}

/** `project=alpha`, `project=al*`, `project=none`; `project` = any value. */
function tagSql({ at }: Term, text: string, isQuoted: boolean, dialect: Dialect): Sql {
  const [, name = '', value] = /^([^=]*)(?:=(.*))?$/s.exec(text) ?? []
  if (!isTagName(name)) refuse(at, `${quoted(name)} is not a tag; write tag:project=alpha`)
  if (value === undefined) return { sql: `${dialect.tag(name)} IS NOT NULL`, values: [] }
  if (value === '' && !isQuoted) refuse(at, `a value is missing after tag:${name}=`)
  if (value === NONE && !isQuoted) return { sql: `${dialect.tag(name)} IS NULL`, values: [] }
  if (isQuoted || !value.includes('*')) return { sql: dialect.contains('tags'), values: [storedTag(name, value)] }
  return { sql: `${dialect.tag(name)} ${dialect.like} ? ESCAPE '\\'`, values: [pattern(JSON.stringify(value))] }
}

/** Matches a part of the gateway's error code, or of the upstream's name or text of the error. */
function errorSql(text: string, dialect: Dialect, own: string | null): Sql {
  const part = `%${pattern(text)}%`
  const matches = (column: string) => `${column} ${dialect.like} ? ESCAPE '\\'`
  if (own !== null) return { sql: matches('error'), values: [part] }
  const members = ['outcome', 'said', 'errorText'].map(name => matches(`value ->> '${name}'`))
  return {
    sql: `(${matches('error')} OR EXISTS (SELECT 1 FROM ${dialect.listItems('attempts')} WHERE ${members.join(' OR ')}))`,
    values: [part, part, part, part],
  }
}

function statusSql(term: Term, text: string): Sql {
  const { at, operator } = term
  if (operator === ':' && text === NONE) return { sql: 'status IS NULL', values: [] }
  const [, first] = /^([1-5])xx$/i.exec(text) ?? []
  if (first !== undefined && operator === ':') {
    return { sql: 'status >= ? AND status < ?', values: [Number(first) * 100, Number(first) * 100 + 100] }
  }
  if (!/^[1-5]\d\d$/.test(text)) refuse(at, `${quoted(text)} is not a status; write 503, 5xx or none`)
  return comparison('status', term, Number(text))
}

function comparison(column: string, { operator }: Term, value: number | bigint): Sql {
  return { sql: `${column} ${operator === ':' ? '=' : operator} ?`, values: [value] }
}

function valueOf({ at, name }: Term, text: string, unit: keyof typeof UNITS): number | bigint {
  const { example, parse } = UNITS[unit]
  try {
    return parse(text)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    refuse(at, `${quoted(text)} is not a value of ${name}; write ${name}>${example}`)
  }
}

/** Converts a glob to a pattern for LIKE. */
function pattern(glob: string): string {
  return glob.replace(/[\\%_]/g, '\\$&').replaceAll('*', '%')
}

/** The only name that fulfils the term; null = the term allows several names, or requires none. */
function onlyName({ isNegated, values: [value, ...others] }: Term): string | null {
  if (isNegated || value === undefined || others.length > 0) return null
  return value.isQuoted || !(value.text === NONE || value.text.includes('*')) ? value.text : null
}

function excludesSuccesses({ name, isNegated, operator, values }: Term): boolean {
  if (isNegated || operator !== ':') return false
  if (name === 'status') return values.every(({ text }) => text !== '200' && text.toLowerCase() !== '2xx')
  return name === 'end' && values.every(({ text, isQuoted }) => (isQuoted || !text.includes('*')) && text !== 'complete' && text !== NONE)
}

function wholeNumber(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new RangeError('no whole number')
  return Number(text)
}

function quoted(text: string): string {
  return JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}...` : text)
}

function refuse(at: number, what: string): never {
  throw new ReportError('bad_request', `column ${at}: ${what}`, 'q')
}
