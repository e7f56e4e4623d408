import t from 'tap'
import { go, openBrowser, visit } from './browser.ts'
import { ADMIN, KEYS } from './scene/people.ts'
import { startScene } from './scene/scene.ts'

t.test('the frame around every page', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const { origin, requests } = await startScene(t)
  const focused = 'document.activeElement?.id || document.activeElement?.textContent'

  await t.test('keyboard: the first link skips to the content', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/')
    await page.keyboard.press('Tab')
    t.equal(await page.evaluate<string>(focused), 'Skip to content')
    await page.keyboard.press('Enter')
    t.equal(await page.evaluate<string>(focused), 'main')
  })

  await t.test('keyboard shortcuts open pages and the search, except while typing', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/')
    await page.keyboard.press('g')
    await page.keyboard.press('b')
    await page.getByRole('heading', { name: 'Billing', level: 1 }).waitFor()
    t.equal(await page.evaluate<string>(focused), 'main', 'the new page has the focus')

    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })

    await page.keyboard.press('/')
    const field = page.getByLabel('Request ID')
    await field.fill('gb')
    await field.press('g')
    await field.press('p')
    t.equal(await field.inputValue(), 'gbgp')
    await field.fill(` x-gateway-request-id: ${requests.answered}`)
    await field.press('Enter')
    await page.waitForURL(`**/console/logs/${requests.answered}`)
  })

  await t.test('an address without a page shows a not-found page', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/billing/no-such-page')
    await page.getByRole('heading', { name: 'Page not found', level: 1 }).waitFor()
    await page.getByText('There is no page at /console/billing/no-such-page').waitFor()
    await page.getByRole('link', { name: 'Go to the panel' }).click()
    await page.getByRole('heading', { name: 'Panel', level: 1 }).waitFor()
    const { page: own } = await visit(t, browser, { origin, as: { key: KEYS.research } })
    for (const path of ['/keys', '/audit', '/routes', '/configuration', '/no-such-page']) {
      await go(own, path)
      await own.getByRole('heading', { name: 'Page not found', level: 1 }).waitFor()
    }
  })

  await t.test('the theme survives a reload', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/')
    const scheme = 'document.documentElement.dataset.mantineColorScheme'
    t.equal(await page.evaluate<string>(scheme), 'light')
    await page.getByRole('button', { name: 'Theme' }).click()
    await page.getByRole('menuitem', { name: 'Dark' }).click()
    t.equal(await page.evaluate<string>(scheme), 'dark')
    await page.reload()
    await page.getByRole('heading', { level: 1 }).waitFor()
    t.equal(await page.evaluate<string>(scheme), 'dark')
  })

  await t.test('with reduced motion no style has a transition', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/billing')
    t.strictSame(await page.evaluate(TRANSITIONS), [])
  })

  await t.test('the documentation opens in a new tab', async t => {
    for (const as of [ADMIN, { key: KEYS.research }]) {
      const { page } = await visit(t, browser, { origin, as })
      await go(page, '/')
      const link = page.getByRole('link', { name: 'Documentation' })
      t.equal(await link.getAttribute('href'), 'http://127.0.0.1:8082/')
      t.equal(await link.getAttribute('target'), '_blank')
    }
  })

  await t.test('a phone has the navigation in a drawer', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN, look: { scheme: 'light', width: 390 } })
    await go(page, '/')
    t.equal(await page.getByRole('link', { name: 'Billing' }).count(), 0)
    await page.getByRole('button', { name: 'Pages' }).click()
    await page.getByRole('dialog').getByRole('link', { name: 'Billing' }).click()
    await page.getByRole('heading', { name: 'Billing', level: 1 }).waitFor()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
  })
})

/** The durations of the transitions of all elements. */
const TRANSITIONS = `[...new Set([...document.querySelectorAll('*')].flatMap(each =>
  getComputedStyle(each).transitionDuration.split(', ')))].filter(duration => duration !== '0s')`
