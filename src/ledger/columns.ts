import type { SQLOutputValue } from 'node:sqlite'
import type { Price } from '../config/types.ts'
import type { AttemptRecord, End, LedgerRow, Source } from './row.ts'
import type { EndpointName, ProtocolName } from '../protocols/shared/names.ts'

/** One row as it is bound to a statement, in the order of COLUMNS. */
export type Values = (string | number | bigint | null)[]

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
const LONGEST_NAME = 256
const LONGEST_ROUTE = 1024
const MOST_ATTEMPTS = 100

function name(text: string | null): string | null {
  return text === null || text.length <= LONGEST_NAME ? text : text.slice(0, LONGEST_NAME)
}

function routeText(text: string | null): string | null {
  return text === null || text.length <= LONGEST_ROUTE ? text : `${text.slice(0, LONGEST_ROUTE)}...`
}

/** A count that is no count is a gap; it must not cost the whole row. */
function count(value: number | null): number | null {
  return Number.isSafeInteger(value) ? value : null
}

/** What SQLite holds: some nine million USD, which is no cost but a price gone wrong. */
function amount(pico: bigint | null): bigint | null {
  return pico === null || BigInt.asIntN(64, pico) !== pico ? null : pico
}

function decimal(value: number | null): number | null {
  return value === null || !Number.isFinite(value) ? null : Math.round(value * 1000) / 1000
}

/**
 * @param row a row
 * @returns its values in the order of COLUMNS; times in ms with three decimals,
 *   names cut at 256 characters, counts that are not whole numbers null, and so
 *   costs that SQLite cannot hold
 */
export function encode(row: LedgerRow): Values {
  const { usage, price, attempts } = row
  return [
    name(row.requestId),
    count(row.startedAt),
    decimal(row.firstByteMs),
    decimal(row.durationMs),
    name(row.key),
    row.protocol,
    row.endpoint,
    name(row.model),
    name(row.upstream),
    name(row.upstreamModel),
    count(row.status),
    row.end,
    name(row.error),
    row.source,
    count(usage.inputTokens),
    count(usage.cachedInputTokens),
    count(usage.cacheWrite5mTokens),
    count(usage.cacheWrite1hTokens),
    count(usage.outputTokens),
    count(usage.reasoningTokens),
    count(usage.inputAudioTokens),
    count(usage.outputAudioTokens),
    count(usage.inputImageTokens),
    count(usage.outputImageTokens),
    decimal(usage.seconds),
    count(usage.characters),
    count(usage.images),
    amount(row.costPico),
    price === null ? null : JSON.stringify(price),
    name(row.priceVersion),
    attempts.length === 0 ? null : JSON.stringify(attempts.slice(0, MOST_ATTEMPTS)),
    count(row.bytesIn),
    count(row.bytesOut),
    routeText(row.route),
  ]
}

type Stored = Readonly<Record<string, SQLOutputValue>>

function text(stored: Stored, column: (typeof COLUMNS)[number]): string | null {
  const value = stored[column]
  return typeof value === 'string' ? value : null
}

function number(stored: Stored, column: (typeof COLUMNS)[number]): number | null {
  const value = stored[column]
  return typeof value === 'number' ? value : null
}

function json(stored: Stored, column: 'attempts' | 'price'): unknown {
  return JSON.parse(text(stored, column) ?? 'null')
}

/**
 * The inverse of encode.
 * @param stored one record, selected with READ_LIST
 */
export function decode(stored: Stored): LedgerRow {
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
    end: text(stored, 'end') as End,
    error: text(stored, 'error'),
    source: text(stored, 'source') as Source,
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
  }
}
