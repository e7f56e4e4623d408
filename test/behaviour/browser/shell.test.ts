import t from 'tap'
import { go, openBrowser, visit } from './browser.ts'
import { ADMIN, KEYS } from './people.ts'
import { startScene } from './scene.ts'

t.test('what is around every page', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const { origin, requests } = await startScene(t)
  const focused = 'document.activeElement?.id || document.activeElement?.textContent'

  await t.test('keyboard: the first stop skips to the content', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/')
    await page.keyboard.press('Tab')
    t.equal(await page.evaluate<string>(focused), 'Skip to the content')
    await page.keyboard.press('Enter')
    t.equal(await page.evaluate<string>(focused), 'main')
  })

  await t.test('keyboard: pages and the search have shortcuts, unless one is writing', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/')
    await page.keyboard.press('g')
    await page.keyboard.press('b')
    await page.getByRole('heading', { name: 'Billing', level: 1 }).waitFor()
    t.equal(await page.evaluate<string>(focused), 'main', 'reading goes on in the new page')

    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })

    await page.keyboard.press('/')
    const field = page.getByLabel('Request id')
    await field.fill('gb')
    await field.press('g')
    await field.press('p')
    t.equal(await field.inputValue(), 'gbgp')
    await field.fill(` x-gateway-request-id: ${requests.answered}`)
    await field.press('Enter')
    await page.waitForURL(`**/console/logs/${requests.answered}`)
  })

  await t.test('the colours that were chosen are remembered', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/')
    const scheme = 'document.documentElement.dataset.mantineColorScheme'
    t.equal(await page.evaluate<string>(scheme), 'light')
    await page.getByRole('button', { name: 'Colours' }).click()
    await page.getByRole('menuitem', { name: 'Dark' }).click()
    t.equal(await page.evaluate<string>(scheme), 'dark')
    await page.reload()
    await page.getByRole('heading', { level: 1 }).waitFor()
    t.equal(await page.evaluate<string>(scheme), 'dark')
  })

  await t.test('everybody finds the documentation, in a tab of its own', async t => {
    for (const as of [ADMIN, { key: KEYS.research }]) {
      const { page } = await visit(t, browser, { origin, as })
      await go(page, '/')
      const link = page.getByRole('link', { name: 'Documentation' })
      t.equal(await link.getAttribute('href'), 'http://127.0.0.1:8082/')
      t.equal(await link.getAttribute('target'), '_blank')
    }
  })

  await t.test('on a phone the pages are in a drawer', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN, look: { scheme: 'light', width: 390 } })
    await go(page, '/')
    t.equal(await page.getByRole('link', { name: 'Billing' }).count(), 0)
    await page.getByRole('button', { name: 'Pages' }).click()
    await page.getByRole('dialog').getByRole('link', { name: 'Billing' }).click()
    await page.getByRole('heading', { name: 'Billing', level: 1 }).waitFor()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
  })

  await t.test('the holder of a key is led away from the pages of others', async t => {
    const { page } = await visit(t, browser, { origin, as: { key: KEYS.research } })
    for (const path of ['/keys', '/audit', '/routes', '/configuration', '/no-such-page']) {
      await page.goto(`/console${path}`)
      await page.getByRole('heading', { name: 'Panel', level: 1 }).waitFor()
    }
    t.match(page.url(), /\/console\/?$/)
  })
})
