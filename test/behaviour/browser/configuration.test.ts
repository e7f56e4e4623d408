import { readFileSync } from 'node:fs'
import t from 'tap'
import { go, openBrowser, visit, walk } from './browser.ts'
import { ADMIN } from './scene/people.ts'
import { startScene } from './scene/scene.ts'

t.test('configuration', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const { origin, file, reload } = await startScene(t)

  await walk(t, browser, { origin, as: ADMIN, path: '/configuration', shot: 'configuration' }, page =>
    page.getByText('upstreams:').waitFor())

  await t.test('the alert of a rejected reload links to the faulty line, and the page shows the changes', async t => {
    const text = readFileSync(file, 'utf8')
    await reload(text.replace('requests_per_minute: 6000', 'requests_per_minute: 7000'))
    const line = text.split('\n').findIndex(each => each.includes('to: google')) + 1
    await reload(text.replace('to: google', 'to: gogle'))
    const path = `/configuration?text=rejected&line=${line}`
    await walk(t, browser, { origin, as: ADMIN, path }, page => page.locator('[aria-current=location]').filter({ hasText: 'gogle' }).waitFor())
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/')
    await page.getByRole('link', { name: `Line ${line}` }).click()
    const marked = page.locator('[aria-current=location]')
    await marked.filter({ hasText: 'to: gogle' }).waitFor()
    t.equal(await marked.getAttribute('data-number'), String(line))
    await page.getByText('Active', { exact: true }).click()
    await page.getByRole('region', { name: /^Contents of/ }).filter({ hasText: 'to: google' }).waitFor()
    await page.getByRole('link', { name: new RegExp(`^gateway.yaml:${line}:`) }).click()
    await marked.filter({ hasText: 'to: gogle' }).waitFor()
    const changed = page.locator('ol > li').filter({ hasText: 'groups.company: changed' })
    t.match(await changed.innerText(), /Reloaded[^]*SIGHUP/)
    await changed.getByRole('button', { name: /^Show changes/ }).focus()
    await page.keyboard.press('Enter')
    t.match(await page.getByRole('region', { name: /^Changes of/ }).innerText(), /− .*6000[^]*\+ .*7000/)
    await reload(text)
  })
})
