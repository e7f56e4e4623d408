import type { EndpointName, ProtocolName } from '../protocols/endpoint/protocol.ts'
import { END_DESCRIPTIONS, SOURCE_DESCRIPTIONS } from './request-report.ts'
import type { AttemptRecord, LedgerRow } from './row.ts'
import { StoredValues, type StoredRow } from './stored-values.ts'

/** A row as it is bound to a statement, in the order of COLUMNS. */
export type RowValues = (string | number | bigint | null)[]

/** The columns that `requests` and `in_flight` have in common. */
export const COLUMNS = [
  'request_id', 'started_at', 'first_byte_ms', 'duration_ms', 'key', 'protocol', 'endpoint', 'model', 'upstream', 'upstream_model',
  'status', 'end', 'error', 'source',
  'input_tokens', 'cached_input_tokens', 'cache_write_5m_tokens', 'cache_write_1h_tokens', 'output_tokens', 'reasoning_tokens',
  'input_audio_tokens', 'output_audio_tokens', 'input_image_tokens', 'output_image_tokens', 'seconds', 'characters', 'images',
  'cost_pico_usd', 'price', 'price_version', 'attempts', 'bytes_in', 'bytes_out', 'route', 'trace_id', 'group', 'owner',
  'upstream_protocol', 'user', 'tags', 'billed', 'queued_ms', 'policy',
] as const

/** `"request_id", "started_at", ...` */
export const COLUMN_LIST = COLUMNS.map(name => `"${name}"`).join(', ')

/** COLUMNS for a SELECT: the cost as text, because it can exceed a JavaScript number. */
export const READ_LIST = COLUMNS.map(name =>
  name === 'cost_pico_usd' ? 'CAST("cost_pico_usd" AS TEXT) AS "cost_pico_usd"' : `"${name}"`,
).join(', ')

/** Clients choose names, so their length bounds the memory of waiting rows. */
const MAX_NAME_LENGTH = 256
const MAX_ROUTE_LENGTH = 1024
const MAX_ATTEMPTS = 100
const MAX_TAGS = 20
/** Actions of rules on one request. */
const MAX_ACTIONS = 50

/** Only the first attempts keep their error texts: they failed before the others. */
const MAX_ERROR_TEXTS = 5

function withoutText(attempt: AttemptRecord, n: number): AttemptRecord {
  if (n < MAX_ERROR_TEXTS || attempt.errorText === undefined) return attempt
  const { errorText: _, ...rest } = attempt
  return rest
}

/** The largest integer of SQLite: a cost of more than nine million USD comes from a wrong price. */
const MAX_COST = 2n ** 63n - 1n

/** Numbers that are not counts: they have three decimals. */
const DECIMALS = columnsOf('first_byte_ms', 'duration_ms', 'seconds', 'queued_ms')
const [ROUTE] = columnsOf('route')
/** Texts that are JSON: cutting would break them. */
const JSON_TEXTS = columnsOf('price', 'attempts', 'tags', 'policy')

/** JSON of at most MAX_TAGS tags, sorted by name: equal tags have equal texts. */
function tagsText(tags: Readonly<Record<string, string>>): string {
  const sorted = Object.entries(tags).sort(([a], [b]) => (a < b ? -1 : 1)).slice(0, MAX_TAGS)
  return JSON.stringify(Object.fromEntries(sorted.map(([name, value]) => [name, value.slice(0, MAX_NAME_LENGTH)])))
}

function columnsOf(...names: (typeof COLUMNS)[number][]): number[] {
  return names.map(name => COLUMNS.indexOf(name))
}

/** Brings values (in the order of COLUMNS) within their bounds, in place. An invalid count becomes null: the rest of the row stays. */
function bound(values: RowValues): RowValues {
  for (let n = 0; n < values.length; n++) {
    const value = values[n]
    if (typeof value === 'number') {
      if (!DECIMALS.includes(n)) values[n] = Number.isSafeInteger(value) ? value : null
      else values[n] = Number.isFinite(value) ? Math.round(value * 1000) / 1000 : null
    } else if (typeof value === 'string' && value.length > MAX_NAME_LENGTH && !JSON_TEXTS.includes(n)) {
      if (n !== ROUTE) values[n] = value.slice(0, MAX_NAME_LENGTH)
      else if (value.length > MAX_ROUTE_LENGTH) values[n] = `${value.slice(0, MAX_ROUTE_LENGTH)}...`
    } else if (typeof value === 'bigint' && (value > MAX_COST || value < -MAX_COST)) {
      values[n] = null
    }
  }
  return values
}

/** Values in the order of COLUMNS: ms with three decimals, names cut at 256 characters; null for invalid counts and unstorable costs. */
export function encode(row: LedgerRow): RowValues {
  const { usage, price, attempts } = row
  return bound([
    row.requestId, row.startedAt, row.firstByteMs, row.durationMs, row.key, row.protocol, row.endpoint, row.model, row.upstream,
    row.upstreamModel, row.status, row.end, row.error, row.source,
    usage.inputTokens, usage.cachedInputTokens, usage.cacheWrite5mTokens, usage.cacheWrite1hTokens, usage.outputTokens,
    usage.reasoningTokens, usage.inputAudioTokens, usage.outputAudioTokens, usage.inputImageTokens, usage.outputImageTokens,
    usage.seconds, usage.characters, usage.images,
    row.costPico, price === null ? null : JSON.stringify(price), row.priceVersion,
    attempts.length === 0 ? null : JSON.stringify(attempts.length <= MAX_ERROR_TEXTS ? attempts : attempts.slice(0, MAX_ATTEMPTS).map(withoutText)),
    row.bytesIn, row.bytesOut, row.route, row.traceId, row.group, row.owner, row.upstreamProtocol,
    row.user, row.tags === null ? null : tagsText(row.tags), row.billed, row.queuedMs ?? null, row.policy === undefined ? null : JSON.stringify(row.policy.slice(0, MAX_ACTIONS)),
  ])
}

/** The inverse of `encode`. @param stored selected with READ_LIST @returns the row, with the names of unreadable columns */
export function decode(stored: StoredRow): LedgerRow {
  const values = new StoredValues(stored)
  const queuedMs = values.number('queued_ms')
  const policy = values.policy('policy')
  const row: LedgerRow = {
    requestId: values.text('request_id') ?? '',
    startedAt: values.time('started_at'),
    firstByteMs: values.number('first_byte_ms'),
    durationMs: values.number('duration_ms'),
    key: values.text('key'),
    protocol: values.text('protocol') as ProtocolName | null,
    endpoint: values.text('endpoint') as EndpointName | null,
    model: values.text('model'),
    upstream: values.text('upstream'),
    upstreamModel: values.text('upstream_model'),
    attempts: values.attempts('attempts'),
    status: values.number('status'),
    end: values.word('end', END_DESCRIPTIONS, 'error'),
    error: values.text('error'),
    source: values.word('source', SOURCE_DESCRIPTIONS, 'none'),
    usage: {
      inputTokens: values.number('input_tokens'),
      cachedInputTokens: values.number('cached_input_tokens'),
      cacheWrite5mTokens: values.number('cache_write_5m_tokens'),
      cacheWrite1hTokens: values.number('cache_write_1h_tokens'),
      outputTokens: values.number('output_tokens'),
      reasoningTokens: values.number('reasoning_tokens'),
      inputAudioTokens: values.number('input_audio_tokens'),
      outputAudioTokens: values.number('output_audio_tokens'),
      inputImageTokens: values.number('input_image_tokens'),
      outputImageTokens: values.number('output_image_tokens'),
      seconds: values.number('seconds'),
      characters: values.number('characters'),
      images: values.number('images'),
    },
    costPico: values.bigint('cost_pico_usd'),
    price: values.price('price'),
    priceVersion: values.text('price_version'),
    bytesIn: values.number('bytes_in') ?? 0,
    bytesOut: values.number('bytes_out') ?? 0,
    route: values.text('route'),
    traceId: values.text('trace_id'),
    group: values.text('group'),
    owner: values.text('owner'),
    upstreamProtocol: values.text('upstream_protocol') as ProtocolName | null,
    user: values.text('user'),
    tags: values.tags('tags'),
    billed: values.text('billed'),
    ...queuedMs !== null && { queuedMs },
    ...policy !== null && { policy },
  }
  return values.unreadable.length === 0 ? row : { ...row, unreadable: values.unreadable }
}
