import t from 'tap'
import { go, openBrowser, settled, visit, walk } from '../browser.ts'
import { ADMIN, KEYS } from '../scene/people.ts'
import { startScene } from '../scene/scene.ts'

t.test('login', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const { origin } = await startScene(t)

  await walk(t, browser, { origin, path: '/', shot: 'login' })

  await t.test('login by name and password, then logout', async t => {
    const { page, faults } = await visit(t, browser, { origin })
    await go(page, '/billing')
    // The first field has the focus.
    await page.keyboard.type(ADMIN.name)
    t.equal(await page.getByLabel('Name', { exact: true }).inputValue(), ADMIN.name)
    await page.getByLabel('Password', { exact: true }).fill('not it')
    await page.getByRole('button', { name: 'Log in' }).click()
    await page.getByRole('alert').getByText(/./).first().waitFor()
    t.equal(
      await page.getByRole('heading', { name: 'Billing' }).count(), 0,
      'a wrong password is refused',
    )

    await page.getByLabel('Password', { exact: true }).fill(ADMIN.password)
    await page.getByLabel('Password', { exact: true }).press('Enter')
    await page.getByRole('heading', { name: 'Billing', level: 1 }).waitFor()
    t.match(page.url(), /\/console\/billing$/, 'the requested page')

    await page.getByRole('button', { name: 'Log out' }).click()
    await page.getByRole('button', { name: 'Log in' }).waitFor()
    await page.reload()
    await settled(page)
    t.equal(await page.getByRole('button', { name: 'Log in' }).count(), 1, 'the session has ended')
    t.strictSame(faults, [])
  })

  await t.test('login by API key', async t => {
    const { page } = await visit(t, browser, { origin })
    await go(page, '/')
    await page.getByRole('tab', { name: 'API key' }).click()
    await page.getByRole('textbox', { name: 'API key' }).fill(KEYS.research)
    await page.getByRole('button', { name: 'Log in' }).click()
    await page.getByRole('heading', { name: 'Panel' }).waitFor()
    const pages = page.getByRole('navigation', { name: 'Pages' })
    t.equal(await pages.getByRole('link', { name: 'My key' }).count(), 1)
    t.equal(
      await pages.getByRole('link', { name: 'Keys', exact: true }).count(), 0,
      'a key holder has no page for other keys',
    )
  })

  await t.test('an expired session shows the login on the same page', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/billing?range=7d')
    await page.context().clearCookies()
    await page.getByRole('combobox', { name: 'Group by' }).click()
    await page.getByRole('option', { name: 'Model' }).click()
    await page.getByRole('button', { name: 'Log in' }).waitFor()
    t.match(page.url(), /\/console\/billing\?/)
  })
})

t.test('without console users, the login page says how to create a user', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const { origin } = await startScene(t, { withUsers: false })
  const { page } = await visit(t, browser, { origin })
  await go(page, '/')
  await page.getByRole('heading', { name: 'No console user is configured' }).waitFor()
  t.equal(await page.getByText('gateway password', { exact: true }).count(), 1, 'the command that creates a user')
})
