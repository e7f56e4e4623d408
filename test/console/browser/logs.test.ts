import { readFileSync } from 'node:fs'
import t from 'tap'
import { go, openBrowser, settled, visit, walk } from './browser.ts'
import type { Page } from './browser.ts'
import { ADMIN, KEYS } from './people.ts'
import { startScene } from './scene.ts'

t.test('logs', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const { origin, base, requests } = await startScene(t)
  const open = async (path: string, as: Parameters<typeof visit>[2]['as'] = ADMIN) => {
    const { page } = await visit(t, browser, { origin, as })
    await go(page, path)
    return page
  }

  await walk(t, browser, { origin, as: ADMIN, path: '/logs', shot: 'logs' },
    page => rowsOf(page).first().waitFor())

  await t.test('a filter stands in the address, so that others see the same', async t => {
    const page = await open('/logs')
    await page.getByRole('combobox', { name: 'End' }).click()
    await page.getByRole('option', { name: 'Failed, in any way' }).click()
    await page.waitForURL(/end=failed/)
    await settled(page)
    const chosen = await textsOf(page)
    t.ok(chosen.length > 0)
    t.notOk(chosen.some(text => text.includes('Complete') || text.includes('Client left')))
    await page.reload()
    await rowsOf(page).first().waitFor()
    t.equal(await page.getByRole('combobox', { name: 'End' }).inputValue(), 'Failed, in any way')
    t.strictSame(await textsOf(page), chosen)
    await page.getByRole('button', { name: 'Show all' }).click()
    await page.getByText('Complete').first().waitFor()
  })

  await t.test('links from elsewhere land on the requests that they mean', async t => {
    const page = await open('/logs?key=research&model=house-model&range=7d')
    await rowsOf(page).first().waitFor()
    t.equal(await page.getByRole('combobox', { name: 'Key' }).inputValue(), 'research')
    t.equal(await page.getByRole('combobox', { name: 'Model' }).inputValue(), 'house-model')
    const texts = await textsOf(page)
    t.equal(texts.length, 1)
    t.match(texts[0], /unknown/, 'a cost that nobody knows is not called nothing')
  })

  await t.test('a pasted id opens its story', async () => {
    const page = await open('/logs')
    await page.getByRole('textbox', { name: 'Request id' }).fill(`  "${requests.failed}" `)
    await page.keyboard.press('Enter')
    await page.waitForURL(`**/console/logs/${requests.failed}`)
    await page.getByText('It failed with 503').waitFor()
  })

  await t.test('older ones are loaded on demand, each once', async t => {
    const page = await open('/logs?range=30d')
    await rowsOf(page).nth(49).waitFor()
    await page.getByRole('button', { name: 'Load older' }).click()
    await rowsOf(page).nth(99).waitFor()
    const all = await rowsOf(page).locator('a[data-row]').all()
    const links = await Promise.all(all.map(link => link.getAttribute('href')))
    t.equal(new Set(links).size, links.length)
  })

  await t.test('what ends while one looks appears by itself', async () => {
    const page = await open('/logs?live=1')
    await page.getByText('Live, 0 new').waitFor()
    const id = await ask(base, KEYS.research)
    await page.locator(`a[href$="${id}"]`).waitFor()
    await page.getByText('Live, 1 new').waitFor()
  })

  await t.test('the CSV is of what is shown', async t => {
    const page = await open('/logs?key=research&model=house-model&range=7d')
    const [download] =
      await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'CSV' }).click()])
    const lines = readFileSync(await download.path(), 'utf8').trimEnd().split(/\r?\n/)
    t.equal(lines.length, 2, 'a heading and the one request')
    t.match(lines[1], 'house-model')
  })

  await t.test('the holder of a key sees its own requests, and no upstream', async t => {
    const page = await open('/logs?range=30d&key=web-app', { key: KEYS.research })
    await rowsOf(page).first().waitFor()
    const texts = (await textsOf(page)).join('\n')
    t.match(texts, 'gemini-3-pro')
    t.notMatch(texts, /web-app|support-bot|batch-nightly|openai|anthropic|google/)
    t.equal(await page.getByRole('columnheader', { name: 'Upstream' }).count(), 0)
    t.equal(await page.getByRole('combobox', { name: 'Key' }).count(), 0)
    await go(page, `/logs/${requests.answered}`)
    await page.getByText('No request has this id').waitFor()
  })
})

function rowsOf(page: Page) {
  return page.getByRole('table').locator('tbody tr')
}

function textsOf(page: Page): Promise<string[]> {
  return rowsOf(page).allInnerTexts()
}

/** @returns its request id */
async function ask(base: string, key: string): Promise<string | null> {
  const response = await fetch(`${base}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'gemini-3-pro', messages: [{ role: 'user', content: 'hello' }] }),
  })
  await response.arrayBuffer()
  return response.headers.get('x-gateway-request-id')
}
