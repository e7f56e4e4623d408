import { Registry } from 'prom-client'
import t from 'tap'
import type { LedgerRow } from '../../src/ledger/row.ts'
import { genAiMetrics } from '../../src/telemetry/gen-ai-metrics.ts'
import type { Conventions } from '../../src/telemetry/gen-ai-metrics.ts'
import { interruptedSettlement } from '../../src/telemetry/settlement.ts'
import type { Settlement } from '../../src/telemetry/settlement.ts'
import { NOTHING_USED, row } from '../ledger/rows.ts'

const CALL = { operation: 'chat', provider: 'openai', serverAddress: 'a.example' }

/** The sums of all histograms and counters after one call. */
async function sums(conventions: Conventions, more: Partial<LedgerRow>, settled: Partial<Settlement> = {}, errorType: string | null = null) {
  const registry = new Registry()
  genAiMetrics(conventions, registry).series(CALL, 'm', errorType).record({ ...interruptedSettlement(row('a', more)), isStream: true, ...settled })
  const lines = (await registry.metrics()).split('\n').filter(line => /_sum|_total/.test(line) && !line.startsWith('#'))
  return Object.fromEntries(lines.map(line => [line.slice(0, line.lastIndexOf(' ')).replace(/gen_ai_(operation_name|provider_name|request_model)="[^"]*",?|server_address="[^"]*",?/g, '').replace(/_seconds|_sum|\{\}|,(?=\})/g, ''), Number(line.slice(line.lastIndexOf(' ') + 1))]))
}

const STREAMED: Partial<LedgerRow> = {
  attempts: [{ upstream: 'a', model: null, outcome: 'error_answer', ms: 500, atMs: 0 }, { upstream: 'b', model: null, outcome: 'ok', ms: 2000, atMs: 600 }],
  firstByteMs: 1000, durationMs: 2600, usage: { ...NOTHING_USED, inputTokens: 10, outputTokens: 5, cachedInputTokens: 4, cacheWrite5mTokens: 2, cacheWrite1hTokens: 1, reasoningTokens: 3 },
}

t.test('the duration of a call is the duration of the attempt that responded', async t => {
  t.strictSame(await sums('v1.41', STREAMED), {
    'gen_ai_client_operation_duration{error_type=""}': 2, 'gen_ai_client_token_usage{gen_ai_token_type="input"}': 10, 'gen_ai_client_token_usage{gen_ai_token_type="output"}': 5,
    'gen_ai_server_time_to_first_token': 0.4, 'gen_ai_server_time_per_output_token': 0.4,
  })
})

t.test('with the latest conventions each kind of token has a counter', async t => {
  t.strictSame(await sums('latest', STREAMED), {
    'gen_ai_client_inference_duration{error_type=""}': 2, 'gen_ai_client_inference_time_to_first_chunk': 0.4, 'gen_ai_client_inference_operation_input_tokens': 10, 'gen_ai_client_inference_operation_output_tokens': 5,
    'gen_ai_client_inference_usage_input_tokens_total': 10, 'gen_ai_client_inference_usage_output_tokens_total': 5, 'gen_ai_client_inference_usage_cache_read_input_tokens_total': 4,
    'gen_ai_client_inference_usage_cache_write_input_tokens_total': 3, 'gen_ai_client_inference_usage_reasoning_output_tokens_total': 3,
  })
})

const firstTokens: readonly (readonly [what: string, more: Partial<LedgerRow>, settled: Partial<Settlement>, names: readonly string[]])[] = [
  ['no stream', {}, { isStream: false }, []],
  ['a cut stream', { end: 'upstream_cut' }, {}, []],
  ['no first byte', { firstByteMs: null }, {}, []],
  ['a first byte of an earlier attempt', { firstByteMs: 599 }, {}, ['gen_ai_server_time_per_output_token']],
  ['one token', { usage: { ...NOTHING_USED, outputTokens: 1 } }, {}, ['gen_ai_server_time_to_first_token']],
  ['two tokens', { usage: { ...NOTHING_USED, outputTokens: 2 } }, {}, ['gen_ai_server_time_to_first_token', 'gen_ai_server_time_per_output_token']],
  ['unknown usage', { usage: NOTHING_USED }, {}, ['gen_ai_server_time_to_first_token']],
]

for (const [what, more, settled, names] of firstTokens) {
  t.test(`token times are recorded only for complete streams with the needed values: ${what}`, async t => {
    t.strictSame(Object.keys(await sums('v1.41', { ...STREAMED, ...more }, settled)).filter(name => name.startsWith('gen_ai_server')), names)
  })
}

t.test('the buckets of the histograms follow the conventions', async t => {
  const registry = new Registry()
  genAiMetrics('v1.41', registry).series(CALL, 'm', null).record({ ...interruptedSettlement(row('a', STREAMED)), isStream: true })
  const lines = (await registry.metrics()).split('\n')
  const bounds = (name: string) => [...new Set(lines.filter(line => line.startsWith(`${name}_bucket`)).map(line => Number(/le="([\d.]+)"/.exec(line)?.[1])))].filter(Number.isFinite)
  const growing = (first: number, ratio: number) => Array.from({ length: 14 }, (_, n) => Number((first * ratio ** n).toPrecision(12)))
  t.strictSame(bounds('gen_ai_client_operation_duration_seconds'), growing(0.01, 2))
  t.strictSame(bounds('gen_ai_client_token_usage'), growing(1, 4))
  t.strictSame(bounds('gen_ai_server_time_to_first_token_seconds'), [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10])
  t.strictSame(bounds('gen_ai_server_time_per_output_token_seconds'), [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5])
})

t.test('unknown tokens are not counted', async t => {
  const names = Object.keys(await sums('latest', { ...STREAMED, usage: NOTHING_USED }))
  t.strictSame(names.filter(name => name.includes('tokens')), [])
})

t.test('a failed call has an error type', async t => {
  t.ok('gen_ai_client_operation_duration{error_type="429"}' in await sums('v1.41', STREAMED, {}, '429'))
})
