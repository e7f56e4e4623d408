import t from 'tap'
import { csvHeader, ROW_FIELDS } from '../../../src/ledger/read/export-fields.ts'
import { filled, NOW, withReports } from './filled.ts'
import { row } from '../../ledger/rows.ts'

async function text(pieces: AsyncIterable<string>): Promise<string> {
  let all = ''
  for await (const piece of pieces) all += piece
  return all
}

t.test('logs.csv has all rows, with the columns of gateway usage --csv', async t => {
  const rows = Array.from({ length: 2500 }, (_, n) => row(`r${n}`, { startedAt: NOW - n }))
  await withReports(filled(t.testdir(), rows), async reports => {
    const lines = (await text(reports.logsCsv({}, null))).split('\r\n')
    t.equal(`${lines[0]}\r\n`, csvHeader(ROW_FIELDS))
    t.strictSame(lines.slice(1, -1).map(line => line.split(',')[0]), rows.map(({ requestId }) => requestId))
    t.equal(await text(reports.logsCsv({ key: 'nobody' }, null)), csvHeader(ROW_FIELDS))
    const own = (await text(reports.logsCsv({}, 'team-a'))).split('\r\n')[0]?.split(',')
    t.strictSame(own, ROW_FIELDS.map(({ name }) => name)
      .filter(name => !['upstream', 'upstream_model', 'attempts', 'route', 'trace_id'].includes(name)))
  })
})

t.test('billing.csv has the same groups as the page, with exact costs', async t => {
  const rows = [
    row('a', { startedAt: NOW, key: 'x', costPico: 1n }),
    row('b', { startedAt: NOW, key: null, costPico: 2n ** 62n, source: 'estimated' }),
  ]
  await withReports(filled(t.testdir(), rows), async reports => {
    const table = (period: string) => [
      'key,requests,errors,input_tokens,cached_input_tokens,cache_write_tokens,output_tokens,' +
        'reasoning_tokens,cost_usd,estimated_requests,estimated_cost_usd,unpriced_requests,period',
      ',1,0,1200,1000,0,300,0,4611686.018427387904,1,4611686.018427387904,0,PERIOD',
      'x,1,0,1200,1000,0,300,0,0.000000000001,0,0,0,PERIOD',
      '',
    ].join('\r\n').replaceAll('PERIOD', period)
    const iso = (ms: number) => new Date(ms).toISOString()
    const [month, today] = [iso(NOW).slice(0, 7), iso(NOW).slice(0, 10)]
    const csv = (from: string, to = iso(NOW)) => text(reports.billingCsv({ by: 'key', from, to }, null))
    t.equal(await csv(`${month}-01T00:00:00Z`), table(month), 'the period of the current month ends today')
    t.equal(await csv(`${today}T00:00:00Z`), table(today))
    const before = iso(Date.parse(`${month}-01`) - 1).slice(0, 10)
    t.equal(await csv(`${before}T00:00:00Z`), table(`${before}--${today}`))
  })
})

t.test('a name that a spreadsheet would read as a formula is escaped in CSV', async t => {
  const rows = [row('a', { startedAt: NOW, model: '=HYPERLINK("http://x","y")' })]
  await withReports(filled(t.testdir(), rows), async reports => {
    t.match(await text(reports.billingCsv({ by: 'model' }, null)), `\r\n"'=HYPERLINK(""http://x"",""y"")",1,`)
    t.match(await text(reports.logsCsv({}, null)), `"'=HYPERLINK(""http://x"",""y"")"`)
  })
})
