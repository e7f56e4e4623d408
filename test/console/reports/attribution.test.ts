import t from 'tap'
import { row } from '../../ledger/rows.ts'
import { DAY, filled, iso, NOW, withReports } from './filled.ts'

const MIDNIGHT = NOW - (NOW % DAY)
const USD = 10n ** 12n
const MONTH = iso(NOW).slice(0, 7)

function rows() {
  const of = (id: string, usd: bigint, more: object) => row(id, { startedAt: MIDNIGHT, key: 'a', model: 'm', costPico: usd * USD, ...more })
  return [
    of('1', 1n, { user: 'u1', tags: { project: 'alpha', env: 'prod' } }),
    of('2', 20n, { user: 'u2', tags: { project: 'alpha' }, model: 'n' }),
    of('3', 300n, { user: 'u1', tags: { project: 'be"ta' }, key: 'b' }),
    of('4', 4000n, { tags: { env: 'alpha' }, startedAt: MIDNIGHT - 1 }),
    of('5', 50_000n, {}),
  ]
}

t.test('billing groups and selects by user and tag', async t => {
  await withReports(filled(t.testdir(), rows(), 3), async reports => {
    const range = { from: iso(MIDNIGHT - DAY), to: iso(MIDNIGHT + DAY) }
    const sums = async (query: object, own: string | null = null) => {
      const { groups, total, days } = await reports.billing({ ...range, ...query }, own)
      t.equal(days.length, 2)
      return [...groups.map(({ names, figures }) => [...names, figures.cost_usd]), total.cost_usd]
    }
    t.strictSame(await sums({ by: 'user' }), [[null, '54000'], ['u1', '301'], ['u2', '20'], '54321'])
    t.strictSame(await sums({ by: 'tag:project' }), [[null, '54000'], ['be"ta', '300'], ['alpha', '21'], '54321'])
    t.strictSame(await sums({ by: 'tag:project,model', user: 'u1' }), [['be"ta', 'm', '300'], ['alpha', 'm', '1'], '301'])
    t.strictSame(await sums({ by: 'model', tag: 'project=alpha' }), [['n', '20'], ['m', '1'], '21'])
    t.strictSame(await sums({ by: 'key', tag: 'project=be"ta' }), [['b', '300'], '300'])
    t.strictSame(await sums({ by: 'model', tag: 'project=%' }), ['0'])
    t.strictSame(await sums({ by: 'user' }, 'b'), [['u1', '300'], '300'], 'a key holder sees its own requests only')
    await t.rejects(sums({ by: 'model', tag: 'alpha' }), { code: 'bad_request' })
    await t.rejects(sums({ by: 'model', tag: 'pro"ject=alpha' }), { code: 'bad_request' })
    let csv = ''
    for await (const piece of reports.billingCsv({ ...range, by: 'tag:project,user' }, null)) csv += piece
    t.match(csv, /^"?tag:project"?,"?user"?,requests/)
    t.match(csv, /\nalpha,u2,1,/)
  })
})

t.test('a statement covers a user or a tag', async t => {
  await withReports(filled(t.testdir(), rows(), 5), async reports => {
    const alpha = await reports.statement({ month: MONTH, tag: 'project=alpha' }, null)
    t.match(alpha, { key: null, owner: null, user: null, tag: 'project=alpha', total: { cost_usd: '21' } })
    t.strictSame(alpha.lines.map(({ model, figures }) => [model, figures.cost_usd]), [['n', '20'], ['m', '1']])
    t.match(await reports.statement({ month: MONTH, user: 'u1' }, null), { user: 'u1', tag: null, total: { cost_usd: '301' } })
    t.match(await reports.statement({ month: MONTH, user: 'u1' }, 'b'), { total: { cost_usd: '300' } })
    await t.rejects(reports.statement({ month: MONTH, user: 'u1', tag: 'project=alpha' }, null), { code: 'bad_request' })
    await t.rejects(reports.statement({ month: MONTH }, null), { code: 'bad_request' })
  })
})
