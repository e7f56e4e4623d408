import { readFileSync } from 'node:fs'
import t from 'tap'
import { sum } from '../../../src/console/web/src/format.ts'
import { LOOKS, go, openBrowser, visit, walk } from './browser.ts'
import type { Page } from './browser.ts'
import { ADMIN, KEYS } from './scene/people.ts'
import { startScene } from './scene/scene.ts'

t.test('billing', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const { origin } = await startScene(t)

  await walk(t, browser, {
    origin, as: ADMIN, path: '/billing?range=30d', shot: 'billing', shots: LOOKS,
  }, async page => {
    await page.getByRole('table', { name: 'Spend by key' }).waitFor()
    await page.getByRole('heading', { name: 'Budgets' }).waitFor()
  })

  await t.test('budgets of groups and of keys are shown in one list, the most used first', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/billing')
    const cards = page.getByRole('region', { name: 'Budgets' }).getByRole('listitem')
    const texts = await cards.allInnerTexts()
    t.match(texts[0], /helpdesk\s+Used up\s+\$[\d.,]+\s+of \$10\.00 in total/)
    t.match(texts[0], /\d\s% used/)
    t.ok(texts.some(text => text.includes('batch-nightly')))
  })

  await t.test('the costs of all rows and of all days add up to the total', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    for (const by of ['key', 'model', 'upstream']) {
      await go(page, `/billing?range=30d&by=${by}`)
      const table = page.getByRole('table', { name: `Spend by ${by}` })
      await table.waitFor()
      const rows = await texts(page, `Spend by ${by}`, 'tbody tr')
      const [total] = await texts(page, `Spend by ${by}`, 'tfoot tr')
      const spend = rows.map(([, usd]) => plain(usd))
      t.ok(rows.length > 2)
      t.not(plain(total?.[1]), '0')
      t.equal(sum(...spend), plain(total?.[1]), `by ${by}`)

      await page.getByRole('button', { name: 'Show as table: Spend by day' }).click()
      const days = await texts(page, 'Spend by day', 'tbody tr')
      t.equal(days.length, 30)
      t.equal(sum(...days.map(([, usd]) => plain(usd))), plain(total?.[1]), `by day of ${by}`)
    }
  })

  await t.test('a row, a bar and a day link to the matching requests', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/billing?range=7d&by=model')
    await page.getByRole('table', { name: 'Spend by model' }).getByRole('link', { name: 'gemini-3-pro' })
      .click()
    const ofRow = new URL(page.url())
    t.equal(ofRow.pathname, '/console/logs')
    t.equal(ofRow.searchParams.get('model'), 'gemini-3-pro')
    t.equal(span(ofRow), 7 * 86_400_000)

    await page.goBack()
    await page.locator('[data-part]').first().click()
    await page.waitForURL('**/console/logs?**')
    const ofBar = new URL(page.url())
    t.ok(ofBar.searchParams.get('model'))
    t.equal(span(ofBar), 86_400_000)

    await page.goBack()
    await page.getByRole('button', { name: 'Show as table: Spend by day' }).click()
    const first = page.getByRole('table', { name: 'Spend by day' }).getByRole('link').first()
    await first.focus()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.waitForURL('**/console/logs?**')
    t.equal(span(new URL(page.url())), 86_400_000, 'by keyboard')
  })

  await t.test('the row "No key" links to the requests without a key', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/billing?range=7d')
    await page.getByRole('table', { name: 'Spend by key' }).getByRole('link', { name: 'No key' })
      .click()
    await page.waitForURL(/without=key/)
    await page.getByRole('table', { name: /^Requests/ }).getByText('missing_key').first().waitFor()
    const keys = await page.locator('tbody tr td:nth-child(2)').allInnerTexts()
    t.strictSame([...new Set(keys)], ['none'])
  })

  await t.test('the table can be downloaded as CSV', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/billing?range=30d&by=upstream')
    await page.getByRole('table', { name: 'Spend by upstream' }).waitFor()
    const [download] = await Promise.all([
      page.waitForEvent('download'), page.getByRole('link', { name: 'CSV' }).click(),
    ])
    const [head = '', ...lines] = readFileSync(await download.path(), 'utf8').trim().split(/\r?\n/)
    t.match(head, 'cost_usd')
    t.ok(lines.some(line => line.startsWith('anthropic,')), lines.join('\n'))
  })

  await t.test('the address keeps the time range and the grouping', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/billing')
    await select(page, 'Group by', 'Upstream')
    await page.getByRole('table', { name: 'Spend by upstream' }).waitFor()
    await page.getByRole('combobox', { name: 'Time range (UTC)' }).click()
    await page.getByRole('option', { name: 'Last 7 days' }).click()
    await page.waitForURL('**/console/billing?by=upstream&range=7d')
    await page.reload()
    await page.getByRole('table', { name: 'Spend by upstream' }).waitFor()
    t.equal(await page.getByRole('combobox', { name: 'Time range (UTC)' }).inputValue(), 'Last 7 days')
  })

  await t.test('one click from the panel shows which key spends most on which model', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/?range=30d')
    await page.getByRole('link', { name: 'By key and model' }).click()
    const rows = page.getByRole('table', { name: 'Spend by key and model' }).locator('tbody tr')
    await rows.first().waitFor()
    const [[key, model] = []] = await texts(page, 'Spend by key and model', 'tbody tr')
    t.strictSame([key, model], ['web-app', 'gpt-5.1'])
    await rows.first().getByRole('link').click()
    await page.waitForURL(/logs\?.*key=web-app&model=gpt-5\.1/)
  })

  await t.test('spend is grouped by two dimensions, and a click on an owner shows spend by key and model', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/billing?range=30d')
    await select(page, 'Group by', 'Owner')
    await select(page, 'Then by', 'and protocol')
    await page.getByRole('table', { name: 'Spend by owner and protocol' }).waitFor()
    await select(page, 'Then by', 'only')
    await page.getByRole('table', { name: 'Spend by owner' }).getByRole('link', { name: 'growth' }).click()
    await page.getByRole('table', { name: 'Spend by key and model' }).waitFor()
    t.strictSame([...new Set((await texts(page, 'Spend by key and model', 'tbody tr')).map(([key]) => key))], ['web-app'])
    await page.getByRole('button', { name: 'Remove filter: owner growth' }).click()
    await page.getByRole('table', { name: 'Spend by key and model' }).getByText('research').first().waitFor()
  })

  await t.test('a key holder sees only the spend of the own key, by model', async t => {
    const { page } = await visit(t, browser, { origin, as: { key: KEYS['support-bot'] } })
    await go(page, '/billing?range=30d&by=key&key=web-app')
    await page.getByRole('table', { name: 'Spend by model' }).waitFor()
    const models = (await texts(page, 'Spend by model', 'tbody tr')).map(([name]) => name)
    t.strictSame(models, ['gpt-5-mini'])
    const text = await page.locator('main').innerText()
    for (const other of ['web-app', 'batch-nightly', 'anthropic']) t.notMatch(text, other)
  })
})

/** Chooses an option of a select. */
async function select(page: Page, label: string, option: string): Promise<void> {
  await page.getByRole('combobox', { name: label }).click()
  await page.getByRole('option', { name: option, exact: true }).click()
}

/** The cell texts of some rows of a table. */
async function texts(page: Page, table: string, rows: string): Promise<string[][]> {
  const found = await page.getByRole('table', { name: table, exact: true }).locator(rows).all()
  return Promise.all(found.map(row => row.locator('th, td').allInnerTexts()))
}

/** `$1,234.50`, padded with spaces -> `1234.5` */
function plain(money = ''): string {
  return sum(money.replaceAll(/[^\d.]/g, ''))
}

function span(url: URL): number {
  return Date.parse(url.searchParams.get('to') ?? '') - Date.parse(url.searchParams.get('from') ?? '')
}
