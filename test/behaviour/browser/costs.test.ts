import { dirname, join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { openLedger } from '../../../src/ledger/write/threaded-ledger.ts'
import type { LedgerRow } from '../../../src/ledger/row.ts'
import { row } from '../../ledger/rows.ts'
import { PASSWORD, startConsole } from '../console/console.ts'
import { FAR_LOOKS, barriers, go, openBrowser, overflow, settled, visit } from './browser.ts'

const OPS = { name: 'ops', password: PASSWORD }
const USD = 10n ** 12n
const HOUR = 3_600_000

/** A console whose ledger has these rows. */
async function consoleWith(t: Test, rows: readonly LedgerRow[]) {
  const gateway = await startConsole(t)
  const ledger = openLedger({
    file: join(dirname(gateway.file), 'data/ledger.db'), keep: null,
    onFailure: trouble => { throw trouble }, onRecovered: () => {},
  })
  for (const each of rows) ledger.close(each)
  await ledger.flush()
  await ledger.shutdown()
  return gateway
}

t.test('known and unknown costs are both shown, and a previous period without requests is not compared', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const startedAt = Date.now() - HOUR
  const { console: origin } = await consoleWith(t, [
    row('1', { startedAt, key: 'unpriced', model: 'new-model', costPico: null }),
    row('2', { startedAt, key: 'partly', model: 'demo', costPico: 2n * USD }),
    row('3', { startedAt, key: 'partly', model: 'new-model', costPico: null }),
  ])
  for (const look of FAR_LOOKS) {
    const { page } = await visit(t, browser, { origin, as: OPS, look })
    await go(page, '/?range=24h')
    const spend = page.locator('dl > div').filter({ hasText: /^Spend/ })
    t.equal(await spend.locator('dd').first().innerText(), '$2.00 + unknown')
    t.match(await spend.innerText(), 'no requests before')
    t.strictSame(await barriers(page), [])
    await go(page, '/billing?range=7d')
    const cell = async (name: string) => (await page.getByRole('table', { name: 'Spend by key' })
      .locator('tbody tr, tfoot tr').filter({ hasText: name }).locator('td').first().innerText()).replaceAll(/[\s\u2007]+/g, ' ').trim()
    t.equal(await cell('unpriced'), 'unknown')
    t.equal(await cell('partly'), '$2.00 + unknown')
    t.equal(await cell('Total'), '$2.00 + unknown')
    t.strictSame(await barriers(page), [])
    t.equal(await overflow(page), 0)
  }
  const { page } = await visit(t, browser, { origin, as: OPS })
  await go(page, `/statement?key=unpriced&month=${new Date(startedAt).toISOString().slice(0, 7)}`)
  t.equal(await page.getByRole('table', { name: 'By model' }).locator('tfoot td').last().innerText(), 'unknown')
  t.notMatch(await page.getByRole('article').innerText(), '$0.00')
})

t.test('billing with hundreds of rows can be paged, sorted and searched, and always shows the total of all rows', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const startedAt = Date.now() - HOUR
  const rows = Array.from({ length: 200 }, (_, n) => ['small', 'large'].map((model, m) => row(`${n} ${m}`, {
    startedAt, key: `team-${String(n).padStart(3, '0')}`, model, costPico: BigInt(n + 1 + m * 1000) * USD,
  }))).flat()
  const { console: origin } = await consoleWith(t, rows)
  const total = '$240,200.00'
  for (const look of FAR_LOOKS) {
    const { page, faults } = await visit(t, browser, { origin, as: OPS, look })
    await go(page, '/billing?range=7d&by=key,model')
    const table = page.getByRole('table', { name: 'Spend by key and model' })
    const first = () => table.locator('tbody tr').first().locator('th, td').allInnerTexts()
    const sum = async () => (await table.locator('tfoot td').nth(1).innerText()).trim()
    t.match(await first(), ['team-199', 'large'])
    t.equal(await sum(), total)
    await page.getByText('1–50 of 400').waitFor()
    await page.getByRole('button', { name: 'Next' }).focus()
    await page.keyboard.press('Enter')
    await page.getByText('51–100 of 400').waitFor()
    // The old rows stay until the new ones arrive.
    await table.getByText('team-149').first().waitFor()
    await settled(page)
    t.match(await first(), ['team-149', 'large'])
    await page.getByRole('button', { name: 'Spend', exact: true }).click()
    await page.getByRole('button', { name: 'Spend', exact: true }).click()
    await table.getByText('team-000').waitFor()
    t.match(await first(), ['team-000', 'small'])
    await page.getByRole('textbox', { name: 'Search names' }).fill('team-12')
    await table.getByText('team-120').first().waitFor()
    await page.waitForURL(/search=team-12/)
    t.equal(await table.locator('tbody tr').count(), 20)
    t.equal(await sum(), total, 'the total of all rows')
    t.ok(await table.locator('tfoot').isVisible())
    t.strictSame(await barriers(page), [])
    t.equal(await overflow(page), 0)
    t.strictSame(faults, [])
    await page.reload()
    await table.getByText('team-120').first().waitFor()
    t.match(await first(), ['team-120', 'small'], 'the address keeps search, order and page')
  }
})
