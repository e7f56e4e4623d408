import t from 'tap'
import type { Reports } from '../../../src/console/reports/reports.ts'
import type { LedgerRow } from '../../../src/ledger/row.ts'
import { row } from '../../ledger/rows.ts'
import { DAY, filled, HOUR, iso, NOW, withReports } from './filled.ts'

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

t.test("the holder of a key sees only requests of that key and no names of upstreams", async t => {
  await withReports(filled(t.testdir(), ROWS), async reports => {
    const texts: string[] = []
    for await (const text of reports.logsCsv({}, 'mine')) texts.push(text)
    for await (const text of reports.billingCsv({}, 'mine')) texts.push(text)
    const panel = await reports.panel({}, 'mine')
    const billing = await reports.billing({}, 'mine')
    const logs = await reports.logs({}, 'mine')
    const stories = await reports.requestDetails('a', 'mine')
    const statement = await reports.statement({ month: iso(NOW).slice(0, 7) }, 'mine')
    t.equal(panel.now.figures.requests, 1)
    t.equal(billing.by, 'model')
    t.strictSame(billing.groups.map(({ name }) => name), ['gpt-4.1-mini'])
    t.strictSame(logs.rows.map(one => one.request_id), ['a'])
    t.equal(stories.stories.length, 1)
    t.equal(statement.total.requests, 1)
    const answers = [panel, billing, logs, stories, statement, texts, await reports.filters('mine')]
    for (const secret of SECRETS) t.notMatch(JSON.stringify(answers), secret)
    t.strictSame(await reports.requestDetails('b', 'mine'), { stories: [] })
  })
})

async function textOf(pieces: AsyncIterable<string>): Promise<string> {
  let text = ''
  for await (const piece of pieces) text += piece
  return text
}

/** All reports that the holder of the key `mine` can get, without cursors. */
async function toldToMine(reports: Reports): Promise<unknown> {
  const range = { from: iso(NOW - 3 * DAY), to: iso(NOW) }
  const { rows } = await reports.logs(range, 'mine')
  return [
    rows,
    await reports.panel({}, 'mine'),
    await reports.panel(range, 'mine'),
    await reports.billing(range, 'mine'),
    await reports.billing({ ...range, by: 'key' }, 'mine'),
    await reports.billing({ ...range, by: 'model,protocol,status' }, 'mine'),
    await reports.billing({ ...range, model: 'shared' }, 'mine'),
    await reports.statement({ month: '2026-11' }, 'mine'),
    await reports.statement({ month: '2026-10' }, 'mine'),
    await reports.filters('mine'),
    await textOf(reports.logsCsv(range, 'mine')),
    await textOf(reports.billingCsv(range, 'mine')),
  ]
}

t.test('requests of other keys do not change what the holder of a key sees', async t => {
  // For each key rows in a whole day, in a whole hour, at the bounds of the period, and one that is in no sum.
  const of = (key: string | null, firstByteMs: number, costPico: bigint): LedgerRow[] =>
    [40 * DAY, 2 * DAY, 30 * HOUR, 3 * HOUR, 60_000, 1].map((ago, n) => row(`${key} ${n}`, {
      startedAt: NOW - ago, key, model: 'shared', firstByteMs, costPico,
      end: key === 'mine' ? 'complete' : 'error',
    }))
  const mine = of('mine', 100, 1n)
  const others = ['min', 'mine2', 'theirs', null].flatMap((key, n) => of(key, 5000, 10n ** BigInt(n + 12)))
  const all = [...mine.slice(0, 4), ...others, ...mine.slice(4)]
  const dir = t.testdir({ alone: {}, among: {} })
  const alone = await withReports(filled(`${dir}/alone`, mine, 4), toldToMine)
  const among = await withReports(filled(`${dir}/among`, all, all.length - 2), toldToMine)
  t.strictSame(among, alone)
  t.match(alone, { 1: { now: { figures: { requests: 3 } }, before: { figures: { requests: 2 } } } })
})

t.test('a report about other keys, upstreams or owners is refused for the holder of a key', async t => {
  await withReports(filled(t.testdir(), ROWS), async reports => {
    await t.rejects(reports.billing({ key: 'theirs' }, 'mine'), { code: 'forbidden', field: 'key' })
    for (const by of ['upstream', 'key,upstream', 'owner', 'model,owner']) {
      await t.rejects(reports.billing({ by }, 'mine'), { code: 'forbidden', field: 'by' })
    }
    await t.rejects(reports.billing({ owner: 'them' }, 'mine'), { code: 'forbidden', field: 'owner' })
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
