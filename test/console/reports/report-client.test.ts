import { renameSync } from 'node:fs'
import { join } from 'node:path'
import type { Worker } from 'node:worker_threads'
import t from 'tap'
import { openReports } from '../../../src/console/reports/reports.ts'
import { row } from '../../ledger/rows.ts'
import { filled, NOW, withReports } from './filled.ts'

t.test('a ledger that is missing, invalid or not configured is reported', async t => {
  const dir = t.testdir({ 'text.db': 'no database', 'empty.db': '' })
  for (const [file, message] of [
    [join(dir, 'none.db'), /no such file/],
    [join(dir, 'text.db'), /not a database/],
    [join(dir, 'empty.db'), /empty/],
    [null, /No ledger is configured/],
  ] as const) {
    const reports = openReports({ file })
    await t.rejects(reports.panel({}, null), { name: 'ReportError', code: 'unavailable', message })
    await t.rejects(async () => {
      for await (const _ of reports.logsCsv({}, null)) t.fail('there is nothing to send')
    }, { code: 'unavailable' })
    await reports.close()
  }
})

t.test('reports read a ledger file that is created or replaced later', async t => {
  const dir = t.testdir({ one: {}, two: {} })
  const file = join(dir, 'gateway.db')
  await withReports(file, async reports => {
    await t.rejects(reports.logs({}, null), { code: 'unavailable' })
    for (const name of ['one', 'two']) {
      renameSync(filled(join(dir, name), [row(name, { startedAt: NOW })]), file)
      t.strictSame((await reports.logs({}, null)).rows.map(one => one.request_id), [name])
    }
  })
})

t.test('a report that misses its deadline is refused; a later report works', async t => {
  const file = filled(t.testdir(), [row('a', { startedAt: NOW })])
  const reports = openReports({ file, now: () => NOW, deadline: 0 })
  // The start of the thread takes longer than the deadline of 0 ms.
  await t.rejects(reports.panel({}, null), { code: 'unavailable', message: /within 0 s/ })
  await reports.close()
  await withReports(file, async again => t.equal((await again.panel({}, null)).now.figures.requests, 1))
})

t.test('more than 100 reports at once are refused with not_yet, and so is each report after close', async t => {
  const file = filled(t.testdir(), [row('a', { startedAt: NOW })])
  const reports = openReports({ file, now: () => NOW, deadline: 60_000 })
  const asked = await Promise.allSettled(Array.from({ length: 120 }, () => reports.logs({}, null)))
  t.equal(asked.filter(({ status }) => status === 'fulfilled').length, 100)
  t.match(asked.at(-1), { status: 'rejected', reason: { code: 'not_yet', message: /Too many/ } })
  const open = reports.logs({}, null)
  const closing = reports.close()
  await t.rejects(open, { code: 'not_yet', message: /shutting down/ })
  await closing
  await t.rejects(reports.logs({}, null), { code: 'not_yet', message: /shutting down/ })
  await reports.close()
})

t.test('the end of the thread rejects one report, and the thread is restarted', async t => {
  const threads: Worker[] = []
  const onWorker = (worker: Worker) => threads.push(worker)
  process.on('worker', onWorker)
  t.teardown(() => process.off('worker', onWorker))
  const file = filled(t.testdir(), [row('a', { startedAt: NOW })])
  await withReports(file, async reports => {
    await reports.logs({}, null)
    // From here on the thread sends nothing; its end is reported later.
    void threads.at(-1)?.terminate()
    const [first, second] = [reports.logs({}, null), reports.logs({}, null)]
    await t.rejects(first, { code: 'unavailable', message: /report thread failed/ })
    t.equal((await second).rows.length, 1)
    t.equal(threads.length, 2)
  })
})
