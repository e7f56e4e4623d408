import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { monthName, sum } from '../../../src/console/web/src/format.ts'
import { openLedger } from '../../../src/ledger/write/threaded-ledger.ts'
import { row } from '../../ledger/rows.ts'
import { PASSWORD, startConsole } from '../console/console.ts'
import { go, openBrowser, visit, walk } from './browser.ts'
import type { Page } from './browser.ts'
import { ADMIN, KEYS } from './scene/people.ts'
import { startScene } from './scene/scene.ts'

t.test('statement', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const { origin } = await startScene(t)
  const before = lastMonth(Date.now())
  const path = `/statement?key=web-app&month=${before}`

  await walk(t, browser, { origin, as: ADMIN, path, shot: 'statement' }, page =>
    page.getByRole('table', { name: 'By model' }).waitFor())

  await t.test('the costs of all models and of all days add up to the same total', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, path)
    const totals = await Promise.all(['By model', 'By day'].map(async name => {
      const table = page.getByRole('table', { name })
      const costs = await table.locator('tbody tr > :last-child').allInnerTexts()
      const [total = ''] = await table.locator('tfoot tr > :last-child').allInnerTexts()
      t.ok(costs.length > 1)
      t.equal(sum(...costs.map(plain)), sum(plain(total)), name)
      return plain(total)
    }))
    t.equal(totals[0], totals[1])
    await page.getByText('Final', { exact: true }).waitFor()
  })

  await t.test('the current month is provisional', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/statement?key=web-app')
    await page.getByText('Provisional', { exact: true }).waitFor()
  })

  await walk(t, browser, { origin, as: ADMIN, path: '/statement' }, page =>
    page.getByRole('link', { name: /, statement of research,/ }).first().waitFor())

  await t.test('the cost of a key in the last month is printed with three clicks from the panel', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await page.addInitScript('window.print = () => { document.title = "printed" }')
    await go(page, '/')
    await page.getByRole('navigation').getByRole('link', { name: 'Statement' }).click()
    await page.getByRole('link', { name: `, statement of web-app, ${monthName(before)}` }).click()
    await page.getByText('Final', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Print or save' }).click()
    t.equal(await page.title(), 'printed')
  })

  await t.test('the statement of an owner covers all keys of the owner, as page and as CSV', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/statement')
    await page.getByRole('link', { name: `, statement of growth, ${monthName(before)}` }).click()
    const total = await page.getByRole('table', { name: 'By model' }).locator('tfoot tr > :last-child').innerText()
    const keys = page.getByRole('table', { name: 'By key' })
    t.strictSame(await keys.locator('tbody tr > :first-child').allInnerTexts(), ['web-app'])
    t.equal(plain(await keys.locator('tfoot tr > :last-child').innerText()), plain(total))
    const [download] = await Promise.all([
      page.waitForEvent('download'), page.getByRole('link', { name: 'CSV' }).click(),
    ])
    const [head = '', ...lines] = readFileSync(await download.path(), 'utf8').trim().split(/\r?\n/)
    t.match(head, /^key,model,requests/)
    t.match(lines, [/^web-app,gpt-/, /^web-app,gpt-/])
  })

  await t.test('print shows only the statement, dark on white', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN, look: { scheme: 'dark', width: 1280 } })
    await go(page, path)
    await page.getByRole('table', { name: 'By model' }).waitFor()
    await page.emulateMedia({ media: 'print' })
    t.equal(await page.getByRole('navigation').isVisible(), false)
    t.equal(await page.getByRole('button', { name: 'Print or save' }).isVisible(), false)
    t.equal(await inkOf(page), 'rgb(0, 0, 0)')
    const pdf = await page.pdf({ format: 'A4' })
    t.ok(pdf.length > 10_000)
  })

  await t.test('a key holder gets the statement of the own key', async t => {
    const { page } = await visit(t, browser, { origin, as: { key: KEYS.research } })
    await go(page, `/statement?key=web-app&month=${before}`)
    await page.getByRole('table', { name: 'By model' }).waitFor()
    const text = await page.getByRole('article').innerText()
    t.match(text, 'research')
    t.notMatch(text, 'web-app')
  })
})

t.test('a key without recent requests still has its old statements', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const { console: origin, file } = await startConsole(t)
  const now = new Date()
  const startedAt = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 4, 15)
  const ledger = openLedger({
    file: join(dirname(file), 'data/ledger.db'), keep: null,
    onFailure: trouble => { throw trouble }, onRecovered: () => {},
  })
  ledger.close(row('long-ago', { startedAt, key: 'departed' }))
  ledger.close(row('of-late', { startedAt: Date.now() - 1_000, key: 'present' }))
  await ledger.flush()
  await ledger.shutdown()

  const { page } = await visit(t, browser, { origin, as: { name: 'ops', password: PASSWORD } })
  await go(page, '/statement')
  await page.getByRole('combobox', { name: 'Month (UTC)' }).click()
  await page.getByRole('option', { name: monthName(new Date(startedAt).toISOString().slice(0, 7)) }).click()
  await page.getByRole('link', { name: /, statement of departed,/ }).click()
  await page.getByText('$0.00066').first().waitFor()
  await page.getByText('Final', { exact: true }).waitFor()
})

/** The text colour. The browser applies the print medium within two frames. */
async function inkOf(page: Page): Promise<string> {
  const frame = 'new Promise(resolve => { requestAnimationFrame(() => requestAnimationFrame(resolve)) })'
  const ink = 'getComputedStyle(document.querySelector("article")).color'
  return page.evaluate<string>(`${frame}.then(() => ${ink})`)
}

/** The previous month: `2026-10`. */
function lastMonth(now: number): string {
  const date = new Date(now)
  return new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() - 1, 1)).toISOString().slice(0, 7)
}

function plain(money: string): string {
  return money.replaceAll(/[^\d.]/g, '')
}
