import t from 'tap'
import { SQLITE } from '../../../src/console/reports/dialect.ts'
import { logs } from '../../../src/console/reports/logs.ts'
import { parseQuery } from '../../../src/console/reports/query-language.ts'
import { openView } from '../../../src/console/reports/view.ts'
import { row } from '../../ledger/rows.ts'
import { DAY, filled, HOUR, NOW, withReports } from './filled.ts'

const ROWS = [
  row('plain', { startedAt: NOW - 6000 }),
  row('mini', { startedAt: NOW - 5000, key: 'team-b', user: 'u1', tags: { project: 'alpha', env: 'a "b"' }, group: 'research', owner: 'ann', model: 'gpt-5-mini', costPico: 20_000_000_000n }),
  row('down', {
    startedAt: NOW - 4000, status: 503, end: 'error', costPico: null, firstByteMs: null, durationMs: 12_000, upstream: 'alpha',
    attempts: [
      { upstream: 'alpha', model: 'm', outcome: 'error_answer', ms: 1, status: 503, said: 'rate_limit_error', errorText: 'Too 100% busy' },
      { upstream: 'beta', model: 'm', outcome: 'connect_timeout', ms: 1 },
    ],
  }),
  row('refused', { startedAt: NOW - 3000, status: 429, end: 'refused', error: 'rate_limited', key: null, upstream: null, upstreamModel: null, attempts: [] }),
  row('slow', { startedAt: NOW - 2000, key: 'team a, "b"', firstByteMs: 2500, protocol: 'messages', model: 'claude-100%', tags: { env: 'prod', project: 'alpine' } }),
  row('none', { startedAt: NOW - 1000, key: 'none', status: null, end: 'client_gone' }),
]

const FOUND: Readonly<Record<string, readonly string[]>> = {
  '': ROWS.map(({ requestId }) => requestId),
  'status:5xx': ['down'],
  'status:429,503': ['down', 'refused'],
  'status:none': ['none'],
  'status>=429': ['down', 'refused'],
  '-status:2xx': ['down', 'refused', 'none'],
  'key:team-b model:gpt*': ['mini'],
  'key:*-b': ['mini'],
  'key:none': ['refused'],
  'key:"none"': ['none'],
  'key:"team a, \\"b\\""': ['slow'],
  '-key:none,team-b group:none': ['plain', 'down', 'slow', 'none'],
  'group:research owner:ann': ['mini'],
  'error:rate_limit': ['down', 'refused'],
  'error:RATE_LIMITED': ['refused'],
  'error:"100% b"': ['down'],
  'error:connect_timeout': ['down'],
  '-error:rate_limit status:none,4xx,5xx': ['none'],
  'cost>0.01': ['mini'],
  'cost:none': ['down'],
  'cost>=$0.02 cost<=0.02': ['mini'],
  'ttft>2s': ['slow'],
  'ttft>250ms ttft<2s': ['plain', 'mini', 'refused', 'none'],
  'duration>10s': ['down'],
  'attempts>1': ['down'],
  'attempts:0': ['refused'],
  'protocol:messages': ['slow'],
  'model:claude-100%': ['slow'],
  'model:"gpt*"': [],
  'end:failed': ['down', 'refused'],
  'end:client_gone': ['none'],
  'request:slow': ['slow'],
  'user:u1': ['mini'],
  '-user:none': ['mini'],
  'tag:project=alpha': ['mini'],
  'tag:project=ALPHA': [],
  'tag:project="alpha"': ['mini'],
  'tag:project=al*': ['mini', 'slow'],
  'tag:project=alpha,env=prod': ['mini', 'slow'],
  'tag:env="a \\"b\\""': ['mini'],
  'tag:project -tag:project=alpha': ['slow'],
  'tag:project=none key:team-b,none': ['refused'],
  'INPUT>=1 Model:gpt-5-*': ['mini'],
}

t.test('each query finds the matching requests', async t => {
  const file = filled(t.testdir(), ROWS, 4)
  await withReports(file, async reports => {
    for (const [q, ids] of Object.entries(FOUND)) {
      const { rows } = await reports.logs({ q }, null)
      t.strictSame(rows.map(each => each.request_id).toReversed(), ids, q)
    }
    const { rows } = await reports.logs({ q: 'key:team-b', key: 'none' }, null)
    t.strictSame(rows, [], 'the query and the parameter both restrict the rows')
    let text = ''
    for await (const part of reports.logsCsv({ q: 'key:team-b' }, null)) text += part
    t.equal(text.trim().split('\n').length, 2)
  })
})

t.test('the error about an invalid query has a column', t => {
  for (const [q, message] of [
    ['hello', 'column 1: "hello" is not a condition; write field:value, such as model:gpt-*'],
    ['status:5xx  modle:x', 'column 13: unknown field "modle"; did you mean "model"?'],
    ['zzzzzz:x', /^column 1: unknown field "zzzzzz"; known are key, group/],
    ['constructor:x', /^column 1: unknown field "constructor"/],
    ['key:', 'column 1: a value is missing after the operator'],
    ['key:a, b:c', 'column 1: a value is missing after the operator'],
    ['key:"a', 'column 1: a quotation mark is missing at the end'],
    ['key:"a"b', 'column 8: there must be a space before the next condition'],
    ['tag:Project=a', 'column 1: "Project" is not a tag; write tag:project=alpha'],
    ['tag:project=', 'column 1: a value is missing after tag:project='],
    ['tag>1', 'column 1: tag is not a number: write tag:value'],
    ['status:6xx', 'column 1: "6xx" is not a status; write 503, 5xx or none'],
    ['status>5xx', 'column 1: "5xx" is not a status; write 503, 5xx or none'],
    ['model>a', 'column 1: model is not a number: write model:value'],
    ['cost>a', 'column 1: "a" is not a value of cost; write cost>0.01'],
    ['cost>1,2', 'column 1: several values need a colon: cost:a,b'],
    ['ttft>2', 'column 1: "2" is not a value of ttft; write ttft>250ms or 2s'],
    ['attempts:many', 'column 1: "many" is not a value of attempts; write attempts>1000'],
    ['key:a '.repeat(31), 'column 181: more than 30 conditions'],
  ] as const) t.throws(() => parseQuery(q, SQLITE, null), { code: 'bad_request', field: 'q', message }, q)
  t.end()
})

t.test('the holder of a key cannot query upstreams, routes or attempts', async t => {
  for (const q of ['upstream:alpha', 'upstream_model:m', 'attempts>1', '-route:none', 'trace:none', 'upstream_protocol:chat']) {
    t.throws(() => parseQuery(q, SQLITE, 'team-a'), { code: 'forbidden', field: 'q' }, q)
  }
  await withReports(filled(t.testdir(), ROWS), async reports => {
    const { rows } = await reports.logs({ q: 'error:busy,rate_limit_error' }, String(ROWS[2]?.key))
    t.strictSame(rows, [], 'what an upstream said is the operator\'s')
    t.strictSame((await reports.logs({ q: 'key:team-b' }, 'none')).rows, [])
  })
})

t.test('pages of requests can be sorted by a column, with missing values last', async t => {
  const costs = [5n, null, 9_007_199_254_740_993n, 5n, null, 9_007_199_254_740_994n, 0n]
  const all = costs.map((costPico, n) => row(`r${n}`, {
    startedAt: NOW - DAY / 2 + n * HOUR, costPico, durationMs: n % 2 === 0 ? n + 0.125 : null,
  }))
  const open = openView(filled(t.testdir(), all))
  t.teardown(() => open.close())
  const inOrder = (sort: '-cost' | 'cost' | 'started' | '-duration' | 'duration', limit: number) => {
    const found: string[] = []
    let before: string | null = null
    do {
      const page = open.read(NOW, view => logs(view, { sort, limit, ...before !== null && { before } }, null))
      found.push(...page.rows.map(each => each.request_id))
      before = page.next
    } while (before !== null)
    return found.join(' ')
  }
  for (const limit of [1, 2, 3, 50]) {
    t.equal(inOrder('-cost', limit), 'r5 r2 r3 r0 r6 r4 r1')
    t.equal(inOrder('cost', limit), 'r6 r0 r3 r2 r5 r1 r4')
    t.equal(inOrder('started', limit), 'r0 r1 r2 r3 r4 r5 r6')
    t.equal(inOrder('-duration', limit), 'r6 r4 r2 r0 r5 r3 r1')
    t.equal(inOrder('duration', limit), 'r0 r2 r4 r6 r1 r3 r5')
  }
  t.throws(() => open.read(NOW, view => logs(view, { sort: 'cost', after: '1' }, null)), { code: 'bad_request', field: 'sort' })
  t.throws(() => open.read(NOW, view => logs(view, { sort: 'cost', before: '1-1' }, null)), { code: 'bad_request', field: 'before' })
})
