import { COLUMNS, encode } from '../../src/ledger/columns.ts'
import type { LedgerRow } from '../../src/ledger/row.ts'
import type { StoredRow } from '../../src/ledger/stored-values.ts'
import type { Usage } from '../../src/protocols/usage/usage.ts'

export const NOTHING_USED: Usage = {
  inputTokens: null,
  cachedInputTokens: null,
  cacheWrite5mTokens: null,
  cacheWrite1hTokens: null,
  outputTokens: null,
  reasoningTokens: null,
  inputAudioTokens: null,
  outputAudioTokens: null,
  inputImageTokens: null,
  outputImageTokens: null,
  seconds: null,
  characters: null,
  images: null,
}

/** 2026-11-21T00:00:00Z */
export const MIDNIGHT = Date.UTC(2026, 10, 21)

/** A complete request of team-a, 1,200 tokens in (1,000 cached) and 300 out at 0.40 / 0.10 / 1.60. */
export function row(id: string, changes: Partial<LedgerRow> = {}): LedgerRow {
  return {
    requestId: id,
    startedAt: MIDNIGHT,
    firstByteMs: 310.5,
    durationMs: 1204,
    key: 'team-a',
    protocol: 'chat',
    endpoint: 'chat.completions',
    model: 'gpt-4.1-mini',
    upstream: 'openai',
    upstreamModel: 'gpt-4.1-mini',
    attempts: [{ upstream: 'openai', model: null, outcome: 'ok', ms: 1200.25, atMs: 2, status: 200 }],
    status: 200,
    end: 'complete',
    error: null,
    usage: {
      ...NOTHING_USED,
      inputTokens: 1200,
      cachedInputTokens: 1000,
      outputTokens: 300,
      reasoningTokens: 0,
    },
    source: 'reported',
    costPico: 660_000_000n,
    price: { input: '0.40', cachedInput: '0.10', output: '1.60' },
    priceVersion: 'config',
    bytesIn: 912,
    bytesOut: 512,
    route: 'routes[0], line 12: model gpt-* -> openai (ordered)',
    traceId: null,
    group: null,
    owner: null,
    upstreamProtocol: 'chat',
    user: null,
    tags: null,
    billed: null,
    ...changes,
  }
}

/** A change of a row that SQLite cannot store. */
export const UNBINDABLE = { protocol: {} as never }

/** A ledger row with what is known of a running request. */
export function draft(id: string, changes: Partial<LedgerRow> = {}): LedgerRow {
  return row(id, {
    firstByteMs: null,
    durationMs: null,
    status: null,
    end: 'interrupted',
    usage: { ...NOTHING_USED, inputTokens: 1200 },
    source: 'estimated',
    costPico: 480_000_000n,
    attempts: [],
    bytesOut: 0,
    ...changes,
  })
}

/** A row as it is read from the file to be sent to PostgreSQL. */
export function stored(entry: LedgerRow): StoredRow {
  const values = encode(entry).map(value => (typeof value === 'bigint' ? String(value) : value))
  return Object.fromEntries(COLUMNS.map((name, at) => [name, values[at] ?? null]))
}
