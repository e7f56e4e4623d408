import { formatUsd } from '../../base/decimal.ts'
import type { Usage } from '../../protocols/usage/usage.ts'
import type { LedgerRow } from '../row.ts'
import type { GroupBy, UsageSum } from './usage-sum.ts'

/** A number as text, because a float cannot represent all of its digits. */
class Exact {
  readonly digits: string

  constructor(digits: string) {
    this.digits = digits
  }
}

type Value = string | number | bigint | Exact | object | null

export interface Field<T> {
  readonly name: string
  readonly value: (item: T) => Value
}

/** Do not rename the fields up to cost_usd, which other programs read. input_tokens includes all input, output_tokens all output. */
export const ROW_FIELDS: readonly Field<LedgerRow>[] = ([
  { name: 'request_id', value: row => row.requestId },
  { name: 'started_at', value: row => new Date(row.startedAt).toISOString() },
  { name: 'first_byte_ms', value: row => row.firstByteMs },
  { name: 'duration_ms', value: row => row.durationMs },
  { name: 'key', value: row => row.key },
  { name: 'protocol', value: row => row.protocol },
  { name: 'endpoint', value: row => row.endpoint },
  { name: 'model', value: row => row.model },
  { name: 'upstream', value: row => row.upstream },
  { name: 'upstream_model', value: row => row.upstreamModel },
  { name: 'status', value: row => row.status },
  { name: 'end', value: row => row.end },
  { name: 'source', value: row => row.source },
  { name: 'input_tokens', value: row => row.usage.inputTokens },
  { name: 'cached_input_tokens', value: row => row.usage.cachedInputTokens },
  { name: 'cache_write_tokens', value: row => cacheWrites(row.usage) },
  { name: 'output_tokens', value: row => row.usage.outputTokens },
  { name: 'reasoning_tokens', value: row => row.usage.reasoningTokens },
  { name: 'cost_usd', value: row => cost(row.costPico) },
  { name: 'error', value: row => row.error },
  { name: 'cache_write_5m_tokens', value: row => row.usage.cacheWrite5mTokens },
  { name: 'cache_write_1h_tokens', value: row => row.usage.cacheWrite1hTokens },
  { name: 'input_audio_tokens', value: row => row.usage.inputAudioTokens },
  { name: 'output_audio_tokens', value: row => row.usage.outputAudioTokens },
  { name: 'input_image_tokens', value: row => row.usage.inputImageTokens },
  { name: 'output_image_tokens', value: row => row.usage.outputImageTokens },
  { name: 'seconds', value: row => row.usage.seconds },
  { name: 'characters', value: row => row.usage.characters },
  { name: 'images', value: row => row.usage.images },
  { name: 'price_version', value: row => row.priceVersion },
  { name: 'bytes_in', value: row => row.bytesIn },
  { name: 'bytes_out', value: row => row.bytesOut },
  { name: 'attempts', value: row => row.attempts },
  { name: 'route', value: row => row.route },
  { name: 'trace_id', value: row => row.traceId },
  { name: 'group', value: row => row.group },
  { name: 'owner', value: row => row.owner },
  { name: 'upstream_protocol', value: row => row.upstreamProtocol },
  { name: 'user', value: row => row.user },
  { name: 'tags', value: row => row.tags },
  { name: 'billed', value: row => row.billed },
  { name: 'queued_ms', value: row => row.queuedMs ?? null },
  { name: 'policy', value: row => row.policy ?? null },
] satisfies Field<LedgerRow>[]).map(({ name, value }) => ({ name, value: row => (isUnreadable(row, name) ? 'unreadable' : value(row)) }))

/** The ledger's columns from which computed fields are computed. */
const COLUMNS_OF: ReadonlyMap<string, readonly string[]> = new Map(Object.entries({
  cost_usd: ['cost_pico_usd'], cache_write_tokens: ['cache_write_5m_tokens', 'cache_write_1h_tokens'],
}))

function isUnreadable({ unreadable }: LedgerRow, field: string): boolean {
  return unreadable !== undefined && (COLUMNS_OF.get(field) ?? [field]).some(column => unreadable.includes(column))
}

/** The fields of a sum: first the groups by name, then the figures. */
export function sumFields(by: readonly GroupBy[]): readonly Field<UsageSum>[] {
  return [
    ...by.map((name, n): Field<UsageSum> => ({ name, value: sum => sum.groups[n] ?? null })),
    { name: 'requests', value: sum => sum.requests },
    { name: 'input_tokens', value: sum => sum.inputTokens },
    { name: 'cached_input_tokens', value: sum => sum.cachedInputTokens },
    { name: 'cache_write_tokens', value: sum => sum.cacheWriteTokens },
    { name: 'output_tokens', value: sum => sum.outputTokens },
    { name: 'reasoning_tokens', value: sum => sum.reasoningTokens },
    { name: 'cost_usd', value: sum => cost(sum.costPico) },
    { name: 'unpriced_requests', value: sum => sum.unpriced },
  ]
}

/** @returns a line of JSON with a line end, in which costs are numbers with all digits */
export function jsonLine<T>(fields: readonly Field<T>[], item: T): string {
  const members = fields.map(({ name, value }) => `${JSON.stringify(name)}:${jsonText(value(item))}`)
  return `{${members.join(',')}}\n`
}

/** @returns the header line (RFC 4180) */
export function csvHeader<T>(fields: readonly Field<T>[]): string {
  return `${fields.map(({ name }) => name).join(',')}\r\n`
}

/** @returns one record (RFC 4180). null becomes empty, lists become JSON, and texts that look like a formula get an apostrophe */
export function csvLine<T>(fields: readonly Field<T>[], item: T): string {
  return `${fields.map(({ value }) => csvText(value(item))).join(',')}\r\n`
}

/** @returns the sum of the tokens written to a cache with either lifetime; null = both counts are unknown */
export function cacheWrites({ cacheWrite5mTokens: a, cacheWrite1hTokens: b }: Usage): number | null {
  return a === null || b === null ? a ?? b : a + b
}

function cost(pico: bigint | null): Exact | null {
  return pico === null ? null : new Exact(formatUsd(pico))
}

function jsonText(value: Value): string {
  if (value instanceof Exact) return value.digits
  return typeof value === 'bigint' ? String(value) : JSON.stringify(value)
}

/** Text that a spreadsheet runs as a formula (OWASP, "CSV Injection"). Clients can choose such text as a name. */
const FORMULA = /^[=+\-@\t\r\n\uff0b\uff0d\uff1d\uff20]/

function csvText(value: Value): string {
  if (value === null) return ''
  const text = typeof value !== 'string' ? jsonText(value) : FORMULA.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
