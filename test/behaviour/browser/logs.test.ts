import { readFileSync } from 'node:fs'
import t from 'tap'
import type { Test } from 'tap'
import { barriers, go, openBrowser, settled, visit, walk } from './browser.ts'
import type { Page } from './browser.ts'
import { ADMIN, KEYS } from './scene/people.ts'
import { startScene } from './scene/scene.ts'

t.test('logs', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const { origin, base, requests } = await startScene(t)
  const open = async (t: Test, path: string, as: Parameters<typeof visit>[2]['as'] = ADMIN) => {
    const { page } = await visit(t, browser, { origin, as })
    await go(page, path)
    return page
  }

  await walk(t, browser, { origin, as: ADMIN, path: '/logs', shot: 'logs' },
    page => rowsOf(page).first().waitFor())

  await t.test('the address keeps the filters', async t => {
    const page = await open(t, '/logs')
    await page.getByRole('combobox', { name: 'Outcome' }).click()
    await page.getByRole('option', { name: 'Any failure' }).click()
    await page.waitForURL(/end=failed/)
    await settled(page)
    const chosen = await textsOf(page)
    t.ok(chosen.length > 0)
    t.notOk(chosen.some(text => text.includes('Complete') || text.includes('Client disconnected')))
    await page.reload()
    await rowsOf(page).first().waitFor()
    t.equal(await page.getByRole('combobox', { name: 'Outcome' }).inputValue(), 'Any failure')
    t.strictSame(await textsOf(page), chosen)
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await page.getByText('Complete').first().waitFor()
  })

  await t.test('a typed query filters the log and survives a reload, and an invalid query shows an error', async t => {
    const page = await open(t, '/logs?range=7d')
    const bar = page.getByRole('textbox', { name: 'Query' })
    await bar.fill('key:research model:gemini-* cost>0.02')
    await page.keyboard.press('Enter')
    await page.waitForURL(/q=key/)
    await settled(page)
    const texts = await textsOf(page)
    t.ok(texts.length > 0)
    t.ok(texts.every(text => text.includes('research') && text.includes('gemini-3-pro')), texts.join('\n'))
    await page.reload()
    await rowsOf(page).first().waitFor()
    t.equal(await bar.inputValue(), 'key:research model:gemini-* cost>0.02')
    await bar.fill('key:research modle:gemini')
    await page.keyboard.press('Enter')
    await page.getByText(/column 14: unknown field "modle"/).waitFor()
    t.strictSame(await barriers(page), [])
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await rowsOf(page).first().waitFor()
    t.equal(await bar.inputValue(), '')
  })

  await t.test('requests are sorted by the server, and the address keeps the order', async t => {
    const page = await open(t, '/logs?range=7d&q=model:gpt-5.1')
    await rowsOf(page).first().waitFor()
    await page.getByRole('button', { name: 'Cost', exact: true }).click()
    await page.waitForURL(/sort=-cost/)
    await settled(page)
    const costs = async () => (await page.locator('tbody tr td:nth-child(7)').allInnerTexts())
      .map(text => Number(text.replace(/[^\d.]/g, '')))
    const shown = await costs()
    t.ok(shown.length === 50)
    t.strictSame(shown, shown.toSorted((a, b) => b - a))
    await page.getByRole('button', { name: 'Load more' }).click()
    await rowsOf(page).nth(99).waitFor()
    const more = await costs()
    t.strictSame(more, more.toSorted((a, b) => b - a))
    await page.reload()
    await rowsOf(page).first().waitFor()
    t.strictSame(await costs(), shown)
    t.ok(await page.getByRole('switch', { name: 'Live' }).isDisabled())
  })

  await t.test('a link with filters shows the matching requests', async t => {
    const page = await open(t, '/logs?key=research&model=house-model&range=7d')
    await rowsOf(page).first().waitFor()
    t.equal(await page.getByRole('combobox', { name: 'Key' }).inputValue(), 'research')
    t.equal(await page.getByRole('combobox', { name: 'Model' }).inputValue(), 'house-model')
    const texts = await textsOf(page)
    t.equal(texts.length, 1)
    t.match(texts[0], /unknown/, 'an unknown cost is not zero')
  })

  await t.test('a pasted ID opens the request', async t => {
    const page = await open(t, '/logs')
    await page.getByRole('textbox', { name: 'Request ID' }).fill(`  "${requests.failed}" `)
    await page.keyboard.press('Enter')
    await page.waitForURL(`**/console/logs/${requests.failed}`)
    await page.getByText('Failed with 503').waitFor()
  })

  await t.test('older requests are loaded on demand, without duplicates', async t => {
    const page = await open(t, '/logs?range=30d')
    await rowsOf(page).nth(49).waitFor()
    await page.getByRole('button', { name: 'Load older' }).click()
    await rowsOf(page).nth(99).waitFor()
    const all = await rowsOf(page).locator('a[data-row]').all()
    const links = await Promise.all(all.map(link => link.getAttribute('href')))
    t.equal(new Set(links).size, links.length)
  })

  await t.test('new requests appear while the page is open', async t => {
    const page = await open(t, '/logs?live=1')
    await page.getByText('Live: 0 new').waitFor()
    const id = await ask(base, KEYS.research)
    await page.locator(`a[href$="${id}"]`).waitFor()
    await page.getByText('Live: 1 new').waitFor()
  })

  await t.test('the live tail pauses while the page is scrolled down, and then shows the requests of the pause', async t => {
    const page = await open(t, '/logs?live=1')
    await page.getByText('Live: 0 new').waitFor()
    await page.evaluate('window.scrollTo(0, window.innerHeight)')
    await page.getByText('Paused: scroll up to resume').waitFor()
    const shown = await textsOf(page)
    const id = await ask(base, KEYS.research)
    // Another page shows the request, so a tail that is not paused would show it too.
    const other = await open(t, '/logs?live=1')
    await other.locator(`a[href$="${id}"]`).waitFor()
    t.strictSame(await textsOf(page), shown)
    await page.evaluate('window.scrollTo(0, 0)')
    await page.locator(`a[href$="${id}"]`).waitFor()
    await page.getByText('Live: 1 new').waitFor()
  })

  await t.test('a past time range has no live tail', async t => {
    const page = await open(t, '/logs?range=yesterday&live=1')
    await rowsOf(page).first().waitFor()
    t.ok(await page.getByRole('switch', { name: 'Live' }).isDisabled())
    const yesterday = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10)
    const all = await page.locator('tbody time').all()
    const times = await Promise.all(
      all.map(async time => (await time.getAttribute('datetime'))?.slice(0, 10)),
    )
    t.strictSame([...new Set(times)], [yesterday])
  })

  await t.test('the filters "No key" and "No model" show requests without a key or a model', async t => {
    const page = await open(t, '/logs')
    await page.getByRole('combobox', { name: 'Key' }).click()
    await page.getByRole('option', { name: 'No key' }).click()
    await page.waitForURL(/without=key/)
    await page.getByText('missing_key').waitFor()
    await settled(page)
    for (const text of await textsOf(page)) t.match(text, /401 Refused/)
    await page.getByRole('combobox', { name: 'Model' }).click()
    await page.getByRole('option', { name: 'No model' }).click()
    await page.waitForURL(/without=key%2Cmodel/)
    await page.locator('[aria-label="Any key"]').click()
    await page.waitForURL(({ searchParams }) => searchParams.get('without') === 'model')
  })

  await t.test('going back from a request keeps filters and scroll position', async t => {
    const page = await open(t, '/logs?range=7d&key=research')
    await rowsOf(page).nth(40).scrollIntoViewIfNeeded()
    const at = await page.evaluate<number>('window.scrollY')
    t.ok(at > 0)
    await rowsOf(page).nth(40).locator('a').click()
    await page.getByRole('heading', { name: 'Summary' }).waitFor()
    t.equal(await page.evaluate('window.scrollY'), 0, 'a new page starts at its top')
    await page.goBack()
    await rowsOf(page).nth(40).waitFor()
    await page.waitForFunction(`Math.abs(window.scrollY - ${at}) < 2`)
    await rowsOf(page).nth(40).locator('a').click()
    await page.getByRole('link', { name: 'Back to list' }).click()
    await page.waitForURL(/\/logs\?range=7d&key=research$/)
    await rowsOf(page).first().waitFor()
    t.equal(await page.getByRole('combobox', { name: 'Key' }).inputValue(), 'research')
  })

  await t.test('a request links to the requests around the same time', async t => {
    const page = await open(t, `/logs/${requests.failed}`)
    await page.getByRole('link', { name: 'Requests around this time' }).click()
    await page.waitForURL(/from=.*&to=/)
    await rowsOf(page).first().waitFor()
    t.ok(await page.locator(`a[href$="${requests.failed}"]`).count() <= 1)
    t.ok(await rowsOf(page).count() > 1)
  })

  await t.test('the CSV file has the filtered requests', async t => {
    const page = await open(t, '/logs?key=research&model=house-model&range=7d')
    const [download] =
      await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'CSV' }).click()])
    const lines = readFileSync(await download.path(), 'utf8').trimEnd().split(/\r?\n/)
    t.equal(lines.length, 2, 'the header and one request')
    t.match(lines[1], 'house-model')
  })

  await t.test('a key holder sees only requests of the own key, and no upstream', async t => {
    const page = await open(t, '/logs?range=30d&key=web-app', { key: KEYS.research })
    await rowsOf(page).first().waitFor()
    const texts = (await textsOf(page)).join('\n')
    t.match(texts, 'gemini-3-pro')
    t.notMatch(texts, /web-app|support-bot|batch-nightly|openai|anthropic|google/)
    t.equal(await page.getByRole('columnheader', { name: 'Upstream' }).count(), 0)
    t.equal(await page.getByRole('combobox', { name: 'Key' }).count(), 0)
    await go(page, `/logs/${requests.answered}`)
    await page.getByText('No request with this ID').waitFor()
  })
})

function rowsOf(page: Page) {
  return page.getByRole('table').locator('tbody tr')
}

function textsOf(page: Page): Promise<string[]> {
  return rowsOf(page).allInnerTexts()
}

/** @returns the request id */
async function ask(base: string, key: string): Promise<string | null> {
  const response = await fetch(`${base}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'gemini-3-pro', messages: [{ role: 'user', content: 'hello' }] }),
  })
  await response.arrayBuffer()
  return response.headers.get('x-gateway-request-id')
}
