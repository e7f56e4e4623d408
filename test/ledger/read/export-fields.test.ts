import t from 'tap'
import { csvHeader, csvLine, jsonLine, ROW_FIELDS, sumFields } from '../../../src/ledger/read/export-fields.ts'
import type { UsageSum } from '../../../src/ledger/read/usage-sum.ts'
import { NOTHING_USED, row } from '../rows.ts'

/** Fields that other programs read; see the issue "Usage, ledger and limits". */
const CONTRACT = ['request_id', 'started_at', 'first_byte_ms', 'duration_ms', 'key', 'protocol', 'endpoint',
  'model', 'upstream', 'upstream_model', 'status', 'end', 'source', 'input_tokens', 'cached_input_tokens',
  'cache_write_tokens', 'output_tokens', 'reasoning_tokens', 'cost_usd']

const SUM: UsageSum = {
  groups: ['team-a'],
  requests: 3,
  inputTokens: 2n ** 60n,
  cachedInputTokens: 1n,
  cacheWriteTokens: 0n,
  outputTokens: 2n,
  reasoningTokens: 0n,
  costPico: 123_456_789_012_345_678_901n,
  unpriced: 1,
}

t.test('a row as JSON begins with the documented fields, in the documented order', async t => {
  const line = jsonLine(ROW_FIELDS, row('a'))
  t.match(line, /^\{.*\}\n$/)
  const parsed = JSON.parse(line) as Record<string, unknown>
  t.strictSame(Object.keys(parsed).slice(0, CONTRACT.length), CONTRACT)
  t.match(parsed, {
    request_id: 'a',
    started_at: '2026-11-21T00:00:00.000Z',
    first_byte_ms: 310.5,
    duration_ms: 1204,
    key: 'team-a',
    protocol: 'chat',
    endpoint: 'chat.completions',
    model: 'gpt-4.1-mini',
    upstream: 'openai',
    upstream_model: 'gpt-4.1-mini',
    status: 200,
    end: 'complete',
    source: 'reported',
    input_tokens: 1200,
    cached_input_tokens: 1000,
    cache_write_tokens: null,
    output_tokens: 300,
    reasoning_tokens: 0,
    cost_usd: 0.00066,
    price_version: 'config',
    attempts: [{ upstream: 'openai', outcome: 'ok', ms: 1200.25 }],
  })
})

t.test('a cost has every digit, and an unknown cost is null', async t => {
  const line = (costPico: bigint | null) => jsonLine(ROW_FIELDS, row('a', { costPico }))
  t.match(line(1n), '"cost_usd":0.000000000001,')
  t.match(line(9_007_199_254_740_993n), '"cost_usd":9007.199254740993,')
  t.match(line(0n), '"cost_usd":0,')
  t.match(line(null), '"cost_usd":null,')
})

t.test('cache writes are the sum of the known counts', async t => {
  const writes = (five: number | null, hour: number | null) => {
    const usage = { ...NOTHING_USED, cacheWrite5mTokens: five, cacheWrite1hTokens: hour }
    const line = JSON.parse(jsonLine(ROW_FIELDS, row('a', { usage }))) as Record<string, unknown>
    return line['cache_write_tokens']
  }
  t.equal(writes(null, null), null)
  t.equal(writes(0, null), 0)
  t.equal(writes(null, 5), 5)
  t.equal(writes(3, 5), 8)
})

t.test('CSV is quoted as in RFC 4180', async t => {
  t.equal(csvHeader(ROW_FIELDS).split(',').slice(0, CONTRACT.length).join(), CONTRACT.join())
  t.match(csvHeader(ROW_FIELDS), /[^\r\n]\r\n$/)
  const names = { key: 'say "hi", friend', model: 'two\r\nlines', upstream: ' plain ' }
  const line = csvLine(ROW_FIELDS, row('a', names))
  t.match(line, ',"say ""hi"", friend",chat,chat.completions,"two\r\nlines", plain ,')
  t.match(line, ',1200,1000,,300,0,0.00066,')
  t.match(line, /,"\[\{""upstream"":""openai"".*\}\]","routes\[0\].*",,,,chat,,,,,\r\n$/)
})

t.test('a name in CSV cannot start a formula of a spreadsheet', async t => {
  for (const start of ['=', '+', '-', '@', '\t', '＝', '＋', '－', '＠']) {
    const model = `${start}cmd|'/C calc'!A0`
    t.match(csvLine(ROW_FIELDS, row('a', { model })), `,'${model},`, model)
    t.match(csvLine(sumFields(['model']), { ...SUM, groups: [model] }), `'${model},3,`)
    t.match(JSON.parse(jsonLine(ROW_FIELDS, row('a', { model }))), { model }, 'JSON is for programs')
  }
  for (const start of ['\r', '\n']) {
    t.match(csvLine(ROW_FIELDS, row('a', { model: `${start}=1` })), `,"'${start}=1",`)
  }
})

t.test('a sum has the names of its groups and exact numbers', async t => {
  t.equal(jsonLine(sumFields(['key']), SUM),
    '{"key":"team-a","requests":3,"input_tokens":1152921504606846976,' +
    '"cached_input_tokens":1,"cache_write_tokens":0,"output_tokens":2,"reasoning_tokens":0,' +
    '"cost_usd":123456789.012345678901,"unpriced_requests":1}\n')
  t.equal(csvHeader(sumFields(['day', 'key'])) + csvLine(sumFields(['day', 'key']), { ...SUM, groups: [null, 'a'], costPico: null }),
    'day,key,requests,input_tokens,cached_input_tokens,cache_write_tokens,output_tokens,reasoning_tokens,' +
    'cost_usd,unpriced_requests\r\n,a,3,1152921504606846976,1,0,2,0,,1\r\n')
})
