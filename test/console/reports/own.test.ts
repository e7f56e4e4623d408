import t from 'tap'
import { row } from '../../ledger/rows.ts'
import { filled, iso, NOW, withReports } from './filled.ts'

/** Names that the holder of the key `mine` must not see anywhere. */
const SECRETS = ['theirs', 'secret-upstream', 'secret-model', 'their-model', 'routes[0]']

const hidden = {
  upstream: 'secret-upstream',
  upstreamModel: 'secret-model',
  attempts: [
    { upstream: 'secret-upstream', model: 'secret-model', outcome: 'ok', ms: 1, costUsd: '0.00066' },
  ],
  route: 'routes[0], line 3: everything -> secret-upstream: secret-model (ordered)',
}

const ROWS = [
  row('a', { ...hidden, startedAt: NOW - 1000, key: 'mine' }),
  row('b', { ...hidden, startedAt: NOW - 2000, key: 'theirs', model: 'their-model' }),
  row('c', { ...hidden, startedAt: NOW - 3000, key: null, model: 'their-model' }),
]

t.test("the holder of a key is told of that key's requests alone, and no upstream", async t => {
  await withReports(filled(t.testdir(), ROWS), async reports => {
    const texts: string[] = []
    for await (const text of reports.logsCsv({}, 'mine')) texts.push(text)
    for await (const text of reports.billingCsv({}, 'mine')) texts.push(text)
    const panel = await reports.panel({}, 'mine')
    const billing = await reports.billing({}, 'mine')
    const logs = await reports.logs({}, 'mine')
    const stories = await reports.stories('a', 'mine')
    const statement = await reports.statement({ month: iso(NOW).slice(0, 7) }, 'mine')
    t.equal(panel.now.figures.requests, 1)
    t.equal(billing.by, 'model')
    t.strictSame(billing.groups.map(({ name }) => name), ['gpt-4.1-mini'])
    t.strictSame(logs.rows.map(one => one.request_id), ['a'])
    t.equal(stories.stories.length, 1)
    t.equal(statement.total.requests, 1)
    const answers = [panel, billing, logs, stories, statement, texts, await reports.filters('mine')]
    for (const secret of SECRETS) t.notMatch(JSON.stringify(answers), secret)
    t.strictSame(await reports.stories('b', 'mine'), { stories: [] })
  })
})

t.test('what must not be known is refused, not answered with nothing', async t => {
  await withReports(filled(t.testdir(), ROWS), async reports => {
    await t.rejects(reports.billing({ key: 'theirs' }, 'mine'), { code: 'forbidden', field: 'key' })
    await t.rejects(reports.billing({ by: 'upstream' }, 'mine'), { code: 'forbidden', field: 'by' })
    await t.rejects(
      reports.logs({ upstream: 'secret-upstream' }, 'mine'), { code: 'forbidden', field: 'upstream' },
    )
    await t.rejects(reports.logs({ key: 'theirs' }, 'mine'), { code: 'forbidden', field: 'key' })
    await t.rejects(reports.logs({ without: 'key' }, 'mine'), { code: 'forbidden', field: 'without' })
    await t.rejects(
      reports.billing({ without: 'model,upstream' }, 'mine'), { code: 'forbidden', field: 'without' },
    )
    await t.rejects(reports.statement({ key: 'theirs', month: '2026-11' }, 'mine'), { code: 'forbidden' })
    await t.rejects(reports.statement({ month: '2026-11' }, null), { code: 'bad_request', field: 'key' })
    t.equal((await reports.logs({ key: 'mine' }, 'mine')).rows.length, 1)
  })
})
