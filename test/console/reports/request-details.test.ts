import { join } from 'node:path'
import t from 'tap'
import { ERRORS } from '../../../src/base/errors.ts'
import { draft, row } from '../../ledger/rows.ts'
import { watch } from '../../ledger/watched.ts'
import { filled, NOW, withReports } from './filled.ts'

t.test('the details of a request show why attempts failed and how the cost is computed', async t => {
  const one = row('a', {
    startedAt: NOW,
    attempts: [
      { upstream: 'first', model: 'm1', outcome: 'first_byte_timeout', ms: 200, atMs: 1 },
      { upstream: 'second', model: null, outcome: 'error_answer', ms: 20, atMs: 202, status: 500, said: 'overloaded', errorText: 'try later' },
      { upstream: 'openai', model: 'gpt-4.1-mini', outcome: 'ok', ms: 1000.25, atMs: 230, status: 200 },
    ],
  })
  await withReports(filled(t.testdir(), [one]), async reports => {
    const { stories: [story] } = await reports.requestDetails('a', null)
    t.match(story, {
      running: false,
      bytes_in: 912,
      bytes_out: 512,
      end_explanation: 'the whole response was sent',
      error_explanation: null,
      source_explanation: 'reported by the upstream',
      route: 'routes[0], line 12: model gpt-* -> openai (ordered)',
      price_version: 'config',
      row: { request_id: 'a', attempts: 3, cost_usd: '0.00066' },
    })
    const brief = story?.attempts.map(({ upstream, explanation, status, at_ms: at }) =>
      [upstream, explanation, status, at])
    t.strictSame(brief, [
      ['first', ERRORS.first_byte_timeout.about, null, 1],
      ['second', 'The upstream responded with an error: overloaded.', 500, 202],
      ['openai', 'The upstream responded.', 200, 230],
    ])
    t.match(story?.attempts[1], { error_name: 'overloaded', error_text: 'try later' })
    const { stories: [forHolder] } = await reports.requestDetails('a', one.key)
    t.match(forHolder?.attempts[1], { error_name: null, error_text: null })
    t.strictSame(story?.bill.map(({ item, quantity, cost_usd: cost }) => [item, quantity, cost]), [
      ['cached_input', 1000, '0.0001'], ['input', 200, '0.00008'], ['output', 300, '0.00048'],
    ])
    t.match(story?.counts, [{ label: 'input tokens', value: 1200 }])
    t.strictSame(await reports.requestDetails('nothing', null), { stories: [] })
  })
})

t.test('the details of a request show the cost of each attempt, and the explanation of an error', async t => {
  const joined = row('a', {
    startedAt: NOW,
    attempts: [
      { upstream: 'x', model: null, outcome: 'upstream_cut', ms: 5, costUsd: '0.0001' },
      { upstream: 'y', model: null, outcome: 'ok', ms: 5, costUsd: '0.00056' },
    ],
  })
  const failed = row('b', { startedAt: NOW, end: 'timeout', error: 'idle_timeout', costPico: null })
  const odd = row('c', { startedAt: NOW, end: 'error', error: 'toString', costPico: 0n })
  await withReports(filled(t.testdir(), [joined, failed, odd]), async reports => {
    const story = async (id: string) => (await reports.requestDetails(id, null)).stories[0]
    t.strictSame((await story('a'))?.bill, [
      { item: 'attempt 1', quantity: 1, price: '0.0001', per: 1, cost_usd: '0.0001' },
      { item: 'attempt 2', quantity: 1, price: '0.00056', per: 1, cost_usd: '0.00056' },
    ])
    t.equal((await story('b'))?.error_explanation, ERRORS.idle_timeout.about)
    t.equal((await story('c'))?.error_explanation, null)
    t.strictSame([(await story('b'))?.bill, (await story('c'))?.bill], [[], []], 'a request without a cost has an empty bill')
  })
})

t.test('the details of a running request are shown; the log and the statement do not contain the request', async t => {
  const file = join(t.testdir(), 'gateway.db')
  await using watched = watch(file)
  watched.ledger.open(() => draft('a', { startedAt: NOW }))
  await watched.ledger.flush()
  await withReports(file, async reports => {
    t.match(await reports.requestDetails('a', null), {
      stories: [{ running: true, end_explanation: /still running/ }],
    })
    t.match(await reports.requestDetails('a', 'team-a'), { stories: [{ running: true, route: null }] })
    t.equal((await reports.logs({}, null)).rows.length, 0)
    const statement = await reports.statement({ key: 'team-a', month: '2026-11' }, null)
    t.match(statement, { final: false, total: { requests: 0 } })
  })
})
