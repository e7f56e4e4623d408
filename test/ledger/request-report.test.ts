import t from 'tap'
import { requestReport } from '../../src/ledger/request-report.ts'
import { draft, NOTHING_USED, row } from './rows.ts'

const BILL = [
  { item: 'cached_input', quantity: 1000, price: '0.1', per: 1_000_000, cost: '0.0001' },
  { item: 'input', quantity: 200, price: '0.4', per: 1_000_000, cost: '0.00008' },
  { item: 'output', quantity: 300, price: '1.6', per: 1_000_000, cost: '0.00048' },
] as const

t.test('the report shows the request, its timeline, its usage and its cost', async t => {
  const text = requestReport(row('01J', {
    attempts: [
      { upstream: 'azure', model: 'gpt-4.1-mini', outcome: 'first_byte_timeout', ms: 200, atMs: 2 },
      { upstream: 'openai', model: 'gpt-4.1-mini', outcome: 'ok', ms: 1000.25, atMs: 202.5, status: 200 },
    ],
  }), false, BILL)
  t.equal(text, `Request 01J
  started   2026-11-21T00:00:00.000Z
  key       team-a
  endpoint  chat.completions
  protocol  chat
  model     gpt-4.1-mini
  route     routes[0], line 12: model gpt-* -> openai (ordered)
  upstream  openai, as gpt-4.1-mini
  status    200
  end       complete: the whole response was sent
  bytes     912 in, 512 out

Timeline (ms from the start of the request)
      0  the request arrived
      2  attempt 1: azure, model gpt-4.1-mini: first_byte_timeout, after 200 ms
  202.5  attempt 2: openai, model gpt-4.1-mini: ok, status 200, after 1,000.25 ms
  310.5  first byte of the response
  1,204  the end: complete

Usage (reported by the upstream)
  input tokens       1,200
    read from cache  1,000
  output tokens      300
    reasoning        0

Cost (price: config)
  cached_input  1,000 x 0.1 / 1,000,000 = 0.0001
  input           200 x 0.4 / 1,000,000 = 0.00008
  output          300 x 1.6 / 1,000,000 = 0.00048
  total                                   0.00066 USD
`)
})

t.test('the report shows the translation and the dropped fields', async t => {
  const text = requestReport(row('a', {
    protocol: 'messages', upstreamProtocol: 'chat',
    attempts: [
      { upstream: 'claude', model: 'opus', outcome: 'error_answer', ms: 1, status: 529 },
      { upstream: 'vllm', model: 'qwen', translated: 'messages->chat', dropped: ['top_k', 'metadata'], outcome: 'ok', ms: 2, status: 200 },
    ],
  }), false, [])
  t.match(text, /attempt 1: claude, model opus: error_answer/)
  t.match(text, /attempt 2: vllm, model qwen, translated messages->chat without top_k, metadata: ok, status 200/)
})

t.test('the report shows the user, the tags and that the client is billed', async t => {
  const text = requestReport(row('a', { user: 'u1', tags: { env: 'prod', project: 'alpha' }, billed: 'client' }), false, [])
  t.match(text, /  user      u1\n  tags      env=prod, project=alpha\n  billed    client\n/)
})

t.test('attempts without a start time keep their order', async t => {
  const text = requestReport(row('a', {
    attempts: [1, 2, 3].map(n => ({ upstream: `u${n}`, model: null, outcome: 'reset', ms: n })),
  }), false, [])
  const attempt = (n: number) => ` +- {2}attempt ${n}: u${n}: reset.*\\n`
  t.match(text, new RegExp(`the request arrived\\n${attempt(1)}${attempt(2)}${attempt(3)} +310\\.5`))
})

t.test('the report marks running, interrupted, estimated and unpriced requests', async t => {
  t.match(requestReport(draft('a'), true, []), 'still running')
  t.notMatch(requestReport(draft('a', { durationMs: 10 }), true, []), 'the end:')
  t.match(requestReport(draft('a'), false, []), 'interrupted: the gateway process ended')
  t.match(requestReport(draft('a'), false, []), 'estimated by the gateway')
  t.match(requestReport(row('a', { source: 'mixed' }), false, []), 'partly')
  const unpriced = row('a', { costPico: null, priceVersion: null })
  t.match(requestReport(unpriced, false, []), /price: none known\)\n {2}unknown/)
  t.match(requestReport(row('a', { costPico: 0n, end: 'refused' }), false, BILL), /0 USD: nothing is billed\n$/)
  const unused = row('a', { usage: NOTHING_USED })
  t.match(requestReport(unused, false, []), /input tokens +unknown\n +output tokens +unknown/)
})

t.test('the report says what the client pays', async t => {
  const attempt = { upstream: 'own', model: 'm', outcome: 'ok', ms: 1, billed: 'client', costUsd: '0.00045' } as const
  const text = requestReport(row('a', { costPico: 0n, billed: 'client', attempts: [attempt] }), false, BILL)
  t.match(text, /billed +client/)
  t.match(text, /attempt 1, which the client pays +0\.00045\n +total +0 USD\n/)
})

t.test('a name from the client cannot forge a line', async t => {
  const text = requestReport(row('a', { model: 'm\n  status       200\x1b[2J', error: 'model_not_found' }), false, [])
  t.match(text, 'model     m\\u{a}  status       200\\u{1b}[2J\n')
  t.match(text, 'error     model_not_found')
})
