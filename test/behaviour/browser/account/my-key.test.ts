import t from 'tap'
import { go, openBrowser, visit, walk } from '../browser.ts'
import { KEYS } from '../scene/people.ts'
import { startScene } from '../scene/scene.ts'

t.test('my key', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const { origin } = await startScene(t)
  const as = { key: KEYS['web-app'] }

  await walk(t, browser, { origin, as, path: '/own', shot: 'my-key' }, async page => {
    await page.getByText('Requests per minute').waitFor()
    await page.getByRole('heading', { name: 'Models' }).waitFor()
  })

  await t.test('the page shows the remaining limits and the allowed models', async t => {
    const { page } = await visit(t, browser, { origin, as })
    await go(page, '/own')
    await page.getByText('of 600 left').waitFor()
    await page.getByText('of $400.00 per month').waitFor()
    await page.getByText('This key may use gpt-*, claude-*').waitFor()
    const models = page.getByRole('table', { name: 'Models' })
    await models.waitFor()
    t.equal(await models.getByText('gpt-5.1', { exact: true }).count(), 1)
    t.equal(await models.getByText('gemini-3-pro', { exact: true }).count(), 0)
    t.notMatch(await page.locator('main').innerText(), 'anthropic', 'no upstream is shown')
  })
})
