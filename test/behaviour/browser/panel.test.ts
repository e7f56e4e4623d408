import t from 'tap'
import { LOOKS, go, openBrowser, visit, walk } from './browser.ts'
import { ADMIN, KEYS } from './people.ts'
import { startScene } from './scene.ts'

t.test('panel', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const { origin, base } = await startScene(t)

  await walk(t, browser, { origin, as: ADMIN, path: '/', shot: 'panel', shots: LOOKS }, async page => {
    await page.getByRole('heading', { name: 'Running now' }).waitFor()
    await page.getByRole('heading', { name: 'Upstreams' }).waitFor()
    await page.getByRole('heading', { name: 'Top models' }).waitFor()
  })

  await t.test('what needs attention comes first, with where to mend it', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/')
    const concerns = page.getByRole('region', { name: 'Needs attention' })
    await concerns.getByText('house-model').waitFor()
    await concerns.getByText('azure-eu').first().waitFor()
    await concerns.getByRole('link', { name: 'Models and prices' }).click()
    await page.waitForURL('**/console/models')
  })

  await t.test('it follows what happens without being loaded again', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/')
    await page.getByText('2 running, 2 of them streams').first().waitFor()
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
    await page.getByText('3 running, 3 of them streams').first().waitFor()
    leaving.abort()
    await response.text().catch(() => '')
    await page.getByText('2 running, 2 of them streams').first().waitFor()
    t.pass('seen to come and to go')
  })

  await t.test('a chart can be read as a table', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/?range=7d')
    await page.getByRole('button', { name: 'Show as a table: Tokens' }).click()
    const rows = page.getByRole('table', { name: /^Course by/ }).locator('tbody tr')
    t.ok(await rows.count() >= 7)
  })

  await t.test('the time that the figures are of stands above them', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/?from=2026-01-10T05:30:00Z&to=2026-01-11T09:00:00Z')
    await page.getByText('. The figures are of 2026-01-10 – 2026-01-11').waitFor()
    await go(page, '/?from=2026-01-10T00:00:00Z&to=2026-01-11T00:00:00Z')
    await page.getByText('2026-01-10, compared with the time before it', { exact: true }).waitFor()
  })

  await t.test('the time that was chosen is in the address', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/')
    await page.getByRole('combobox', { name: 'Time, UTC' }).click()
    await page.getByRole('option', { name: 'Custom …' }).click()
    const [from, to] = [page.getByLabel('From, UTC'), page.getByLabel('To, UTC')]
    t.match(await from.inputValue(), /^\d{4}-\d{2}-\d{2} \d{2}:\d{2}$/)
    await from.fill('01/01/2026, 12:00 AM')
    await to.fill('2026-01-03 12:30')
    await page.getByRole('button', { name: 'Show', exact: true }).click()
    await page.getByText('Write it as 2026-11-21 07:18').waitFor()
    await from.fill('2026-01-01 00:00')
    await page.getByRole('button', { name: 'Show', exact: true }).click()
    await page.waitForURL(({ searchParams }) => searchParams.get('from') === '2026-01-01T00:00:00.000Z')
    t.equal(new URL(page.url()).searchParams.get('to'), '2026-01-03T12:30:00.000Z')
    await page.getByText('2026-01-01 00:00 – 2026-01-03 12:30, compared').waitFor()
  })

  await t.test('the holder of a key sees nothing of others, and no upstream', async t => {
    const { page } = await visit(t, browser, { origin, as: { key: KEYS.research } })
    await go(page, '/')
    await page.getByText('1 running, 1 of them streams').first().waitFor()
    const text = await page.locator('main').innerText()
    for (const hidden of ['web-app', 'batch-nightly', 'openai', 'anthropic', 'azure-eu', 'Upstreams']) {
      t.notMatch(text, hidden)
    }
  })
})
