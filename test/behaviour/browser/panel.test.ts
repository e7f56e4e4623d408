import t from 'tap'
import { barriers, LOOKS, go, openBrowser, overflow, visit, walk } from './browser.ts'
import { ADMIN, KEYS } from './scene/people.ts'
import { startScene } from './scene/scene.ts'

t.test('panel', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const { origin, base } = await startScene(t)

  await walk(t, browser, { origin, as: ADMIN, path: '/', shot: 'panel', shots: LOOKS }, async page => {
    await page.getByRole('heading', { name: 'Running now' }).waitFor()
    await page.getByRole('heading', { name: 'Upstreams' }).waitFor()
    await page.getByRole('heading', { name: 'Top models' }).waitFor()
  })

  await t.test('alerts come first, each with a link', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/')
    const alerts = page.getByRole('region', { name: 'Alerts' })
    await alerts.getByText('house-model').first().waitFor()
    await alerts.getByText('azure-eu').first().waitFor()
    await alerts.getByText('group helpdesk, $10 in total').first().waitFor()
    await alerts.getByRole('link', { name: 'Budgets' }).first().waitFor()
    await alerts.getByRole('link', { name: 'Unpriced requests' }).click()
    await page.waitForURL(/logs\?.*q=cost%3Anone/)
    await page.getByRole('table', { name: /^Requests/ }).getByText('unknown').first().waitFor()
  })

  for (const look of [{ scheme: 'light', width: 1280 }, { scheme: 'dark', width: 390 }] as const) {
    await t.test(`an alert links to the line of its setting, ${look.width} px`, async t => {
      const { page, faults } = await visit(t, browser, { origin, as: ADMIN, look })
      await go(page, '/')
      const alerts = page.getByRole('region', { name: 'Alerts' })
      const alert = alerts.getByRole('listitem').filter({ hasText: 'group helpdesk' })
      await alert.getByRole('link', { name: 'Budgets' }).waitFor()
      t.strictSame(await barriers(page), [])
      t.equal(await overflow(page), 0)
      await alert.getByRole('link', { name: /^Line \d+$/ }).click()
      await page.waitForURL(/configuration\?line=\d+$/)
      t.match(await page.locator('[aria-current]').filter({ hasText: 'helpdesk' }).innerText(), 'helpdesk:')
      t.strictSame(faults, [])
    })
  }

  await t.test('a muted alert stays hidden in this browser until the user shows muted alerts', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/')
    const alerts = page.getByRole('region', { name: 'Alerts' })
    await alerts.getByRole('button', { name: /^Mute .*house-model/ }).press('Enter')
    await alerts.getByText('1 alert muted in this browser').waitFor()
    t.equal(await alerts.getByText('house-model').count(), 0)
    await page.reload()
    await alerts.getByText('1 alert muted in this browser').waitFor()
    await alerts.getByRole('button', { name: 'Show', exact: true }).click()
    await alerts.getByText('house-model').first().waitFor()
  })

  await t.test('running requests update without a reload', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/')
    await page.getByText('2 requests, 2 streaming').first().waitFor()
    const leaving = new AbortController()
    const response = await fetch(`${base}/v1/chat/completions`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${KEYS['support-bot']}`, 'content-type': 'application/json',
        'x-simulate': 'tokens=100000,pace=100ms',
      },
      body: JSON.stringify({
        model: 'gpt-5-mini', stream: true, messages: [{ role: 'user', content: 'hello' }],
      }),
      signal: leaving.signal,
    })
    await page.getByText('3 requests, 3 streaming').first().waitFor()
    leaving.abort()
    await response.text().catch(() => '')
    await page.getByText('2 requests, 2 streaming').first().waitFor()
    t.pass('the request appeared and disappeared')
  })

  await t.test('a chart can be shown as a table', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/?range=7d')
    await page.getByRole('button', { name: 'Show as table: Tokens' }).click()
    const rows = page.getByRole('table', { name: /^Traffic by/ }).locator('tbody tr')
    t.ok(await rows.count() >= 7)
  })

  await t.test('dragging over bars zooms in, down to minutes, and a button zooms out', async t => {
    const { page, faults } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/?range=24h')
    const chart = page.getByRole('region', { name: 'Requests and errors' }).locator('[data-plot]')
    const box = await chart.boundingBox()
    if (box === null) throw new Error('the chart is not shown')
    const y = box.y + box.height / 2
    await page.mouse.move(box.x + box.width * 0.5, y)
    await page.mouse.down()
    await page.mouse.move(box.x + box.width * 0.52, y, { steps: 4 })
    await page.mouse.move(box.x + box.width * 0.56, y, { steps: 4 })
    await page.mouse.up()
    await page.waitForURL(/from=/)
    await page.getByText('Per minute (UTC)').first().waitFor()
    const length = () => {
      const { searchParams } = new URL(page.url())
      return Date.parse(searchParams.get('to') ?? '') - Date.parse(searchParams.get('from') ?? '')
    }
    const zoomed = length()
    t.ok(zoomed >= 2 * 3_600_000 && zoomed <= 3 * 3_600_000, `${zoomed}`)
    await page.getByRole('button', { name: 'Zoom out' }).press('Enter')
    await page.waitForURL(url => Date.parse(url.searchParams.get('to') ?? '') - Date.parse(url.searchParams.get('from') ?? '') !== zoomed)
    t.equal(length(), 2 * zoomed)
    t.strictSame(faults, [])
  })

  await t.test('the table of a chart zooms in by keyboard', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/?range=24h')
    await page.getByRole('button', { name: 'Show as table: Tokens' }).press('Enter')
    await page.getByRole('table', { name: 'Traffic by hour' }).getByRole('link').nth(2).press('Enter')
    await page.waitForURL(/from=/)
    await page.getByRole('table', { name: 'Traffic by minute' }).waitFor()
    t.equal(await page.getByRole('table', { name: 'Traffic by minute' }).locator('tbody tr').count(), 60)
  })

  await t.test('the page says which period the data covers', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/?from=2026-01-10T05:30:00Z&to=2026-01-11T09:00:00Z')
    await page.getByText('. Data covers 2026-01-10 – 2026-01-11').waitFor()
    await go(page, '/?from=2026-01-10T00:00:00Z&to=2026-01-11T00:00:00Z')
    await page.getByText('2026-01-10, compared with the previous period', { exact: true }).waitFor()
  })

  await t.test('the address keeps the time range', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/')
    await page.getByRole('combobox', { name: 'Time range (UTC)' }).click()
    await page.getByRole('option', { name: 'Custom …' }).click()
    const [from, to] = [page.getByLabel('From (UTC)'), page.getByLabel('To (UTC)')]
    t.match(await from.inputValue(), /^\d{4}-\d{2}-\d{2} \d{2}:\d{2}$/)
    await from.fill('01/01/2026, 12:00 AM')
    await to.fill('2026-01-03 12:30')
    await page.getByRole('button', { name: 'Apply', exact: true }).click()
    await page.getByText('Use the format 2026-11-21 07:18').waitFor()
    await from.fill('2026-01-01 00:00')
    await page.getByRole('button', { name: 'Apply', exact: true }).click()
    await page.waitForURL(({ searchParams }) => searchParams.get('from') === '2026-01-01T00:00:00.000Z')
    t.equal(new URL(page.url()).searchParams.get('to'), '2026-01-03T12:30:00.000Z')
    await page.getByText('2026-01-01 00:00 – 2026-01-03 12:30, compared').waitFor()
  })

  await t.test('a key holder sees no other keys, and no upstream', async t => {
    const { page } = await visit(t, browser, { origin, as: { key: KEYS.research } })
    await go(page, '/')
    await page.getByText('1 request, 1 streaming').first().waitFor()
    const text = await page.locator('main').innerText()
    for (const hidden of ['web-app', 'batch-nightly', 'openai', 'anthropic', 'azure-eu', 'Upstreams']) {
      t.notMatch(text, hidden)
    }
  })
})
