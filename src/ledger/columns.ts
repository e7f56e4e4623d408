import type { SQLOutputValue } from 'node:sqlite'
import type { Price } from '../config/price-types.ts'
import type { EndpointName, ProtocolName } from '../protocols/shared/protocol.ts'
import type { AttemptRecord, EndReason, LedgerRow, UsageSource } from './row.ts'

/** One row as it is bound to a statement, in the order of COLUMNS. */
export type RowValues = (string | number | bigint | null)[]

/** What the tables `requests` and `in_flight` have in common. */
export const COLUMNS = [
  'request_id',
  'started_at',
  'first_byte_ms',
  'duration_ms',
  'key',
  'protocol',
  'endpoint',
  'model',
  'upstream',
  'upstream_model',
  'status',
  'end',
  'error',
  'source',
  'input_tokens',
  'cached_input_tokens',
  'cache_write_5m_tokens',
  'cache_write_1h_tokens',
  'output_tokens',
  'reasoning_tokens',
  'input_audio_tokens',
  'output_audio_tokens',
  'input_image_tokens',
  'output_image_tokens',
  'seconds',
  'characters',
  'images',
  'cost_pico_usd',
  'price',
  'price_version',
  'attempts',
  'bytes_in',
  'bytes_out',
  'route',
  'trace_id',
  'group',
  'owner',
  'upstream_protocol',
] as const

/** COLUMNS as a list in SQL: `"request_id", "started_at", ...`. */
export const COLUMN_LIST = COLUMNS.map(name => `"${name}"`).join(', ')

/**
 * COLUMNS as they are read: the cost as text, because it can be more than a
 * JavaScript number holds.
 */
export const READ_LIST = COLUMNS.map(name =>
  name === 'cost_pico_usd' ? 'CAST("cost_pico_usd" AS TEXT) AS "cost_pico_usd"' : `"${name}"`,
).join(', ')

/** Names come from clients: what waits in memory has a bound in bytes too. */
const MAX_NAME_LENGTH = 256
const MAX_ROUTE_LENGTH = 1024
const MAX_ATTEMPTS = 100

/** Of that many attempts the error's text is kept: the first, which broke before the others. */
const MAX_ERROR_TEXTS = 5

function withoutText(attempt: AttemptRecord, n: number): AttemptRecord {
  if (n < MAX_ERROR_TEXTS || attempt.errorText === undefined) return attempt
  const { errorText: _, ...rest } = attempt
  return rest
}

function truncateName(text: string | null): string | null {
  return text === null || text.length <= MAX_NAME_LENGTH ? text : text.slice(0, MAX_NAME_LENGTH)
}

function truncateRoute(text: string | null): string | null {
  return text === null || text.length <= MAX_ROUTE_LENGTH ? text : `${text.slice(0, MAX_ROUTE_LENGTH)}...`
}

/** A count that is no count is a gap; it must not cost the whole row. */
function countOrNull(value: number | null): number | null {
  return Number.isSafeInteger(value) ? value : null
}

/** What SQLite holds: some nine million USD, which is no cost but a price gone wrong. */
function costOrNull(pico: bigint | null): bigint | null {
  return pico === null || BigInt.asIntN(64, pico) !== pico ? null : pico
}

function roundedOrNull(value: number | null): number | null {
  return value === null || !Number.isFinite(value) ? null : Math.round(value * 1000) / 1000
}

/**
 * @param row a row
 * @returns its values in the order of COLUMNS; times in ms with three decimals,
 *   names cut at 256 characters, counts that are not whole numbers null, and so
 *   costs that SQLite cannot hold
 */
export function encode(row: LedgerRow): RowValues {
  const { usage, price, attempts } = row
  return [
    truncateName(row.requestId),
    countOrNull(row.startedAt),
    roundedOrNull(row.firstByteMs),
    roundedOrNull(row.durationMs),
    truncateName(row.key),
    row.protocol,
    row.endpoint,
    truncateName(row.model),
    truncateName(row.upstream),
    truncateName(row.upstreamModel),
    countOrNull(row.status),
    row.end,
    truncateName(row.error),
    row.source,
    countOrNull(usage.inputTokens),
    countOrNull(usage.cachedInputTokens),
    countOrNull(usage.cacheWrite5mTokens),
    countOrNull(usage.cacheWrite1hTokens),
    countOrNull(usage.outputTokens),
    countOrNull(usage.reasoningTokens),
    countOrNull(usage.inputAudioTokens),
    countOrNull(usage.outputAudioTokens),
    countOrNull(usage.inputImageTokens),
    countOrNull(usage.outputImageTokens),
    roundedOrNull(usage.seconds),
    countOrNull(usage.characters),
    countOrNull(usage.images),
    costOrNull(row.costPico),
    price === null ? null : JSON.stringify(price),
    truncateName(row.priceVersion),
    attempts.length === 0 ? null : JSON.stringify(attempts.slice(0, MAX_ATTEMPTS).map(withoutText)),
    countOrNull(row.bytesIn),
    countOrNull(row.bytesOut),
    truncateRoute(row.route),
    row.traceId,
    truncateName(row.group),
    truncateName(row.owner),
    row.upstreamProtocol,
  ]
}

export type StoredRow = Readonly<Record<string, SQLOutputValue>>

function text(stored: StoredRow, column: (typeof COLUMNS)[number]): string | null {
  const value = stored[column]
  return typeof value === 'string' ? value : null
}

function number(stored: StoredRow, column: (typeof COLUMNS)[number]): number | null {
  const value = stored[column]
  return typeof value === 'number' ? value : null
}

function json(stored: StoredRow, column: 'attempts' | 'price'): unknown {
  return JSON.parse(text(stored, column) ?? 'null')
}

/**
 * The inverse of encode.
 * @param stored one record, selected with READ_LIST
 */
export function decode(stored: StoredRow): LedgerRow {
  const cost = text(stored, 'cost_pico_usd')
  return {
    requestId: text(stored, 'request_id') ?? '',
    startedAt: number(stored, 'started_at') ?? 0,
    firstByteMs: number(stored, 'first_byte_ms'),
    durationMs: number(stored, 'duration_ms'),
    key: text(stored, 'key'),
    protocol: text(stored, 'protocol') as ProtocolName | null,
    endpoint: text(stored, 'endpoint') as EndpointName | null,
    model: text(stored, 'model'),
    upstream: text(stored, 'upstream'),
    upstreamModel: text(stored, 'upstream_model'),
    attempts: json(stored, 'attempts') as AttemptRecord[] | null ?? [],
    status: number(stored, 'status'),
    end: text(stored, 'end') as EndReason,
    error: text(stored, 'error'),
    source: text(stored, 'source') as UsageSource,
    usage: {
      inputTokens: number(stored, 'input_tokens'),
      cachedInputTokens: number(stored, 'cached_input_tokens'),
      cacheWrite5mTokens: number(stored, 'cache_write_5m_tokens'),
      cacheWrite1hTokens: number(stored, 'cache_write_1h_tokens'),
      outputTokens: number(stored, 'output_tokens'),
      reasoningTokens: number(stored, 'reasoning_tokens'),
      inputAudioTokens: number(stored, 'input_audio_tokens'),
      outputAudioTokens: number(stored, 'output_audio_tokens'),
      inputImageTokens: number(stored, 'input_image_tokens'),
      outputImageTokens: number(stored, 'output_image_tokens'),
      seconds: number(stored, 'seconds'),
      characters: number(stored, 'characters'),
      images: number(stored, 'images'),
    },
    costPico: cost === null ? null : BigInt(cost),
    price: json(stored, 'price') as Price | null,
    priceVersion: text(stored, 'price_version'),
    bytesIn: number(stored, 'bytes_in') ?? 0,
    bytesOut: number(stored, 'bytes_out') ?? 0,
    route: text(stored, 'route'),
    traceId: text(stored, 'trace_id'),
    group: text(stored, 'group'),
    owner: text(stored, 'owner'),
    upstreamProtocol: text(stored, 'upstream_protocol'),
  }
}
