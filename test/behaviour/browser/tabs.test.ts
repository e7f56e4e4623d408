import t from 'tap'
import { PASSWORD, SECOND_KEY, startConsole } from '../console/console.ts'
import { go, openBrowser, visit } from './browser.ts'
import type { Page } from './browser.ts'

const ADMIN = { name: 'ops', password: PASSWORD }

t.test('two tabs share one session', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const { console: origin } = await startConsole(t)
  const { page: first, faults } = await visit(t, browser, { origin, as: ADMIN })
  const second = await first.context().newPage()
  await go(first, '/keys')
  await go(second, '/')

  await t.test('a logout in one tab logs out the other', async t => {
    await second.getByRole('button', { name: 'Log out' }).click()
    await second.getByRole('heading', { name: 'Model Gateway', level: 1 }).waitFor()
    await first.getByRole('heading', { name: 'Model Gateway', level: 1 }).waitFor()
    t.equal(await first.getByText('API keys').count(), 0)
  })

  await t.test('a login in one tab logs in the other', async t => {
    await login(second, { name: 'ops', password: PASSWORD })
    await first.getByRole('button', { name: 'New key' }).click()
    await first.getByRole('textbox', { name: 'Name', exact: true }).fill('of the first tab')
    await first.getByRole('button', { name: 'Create key' }).click()
    await first.getByRole('dialog', { name: 'Key created' }).waitFor()
    t.match(await first.getByTestId('new-key').textContent(), /^mgw_/)
  })

  await t.test('a login as another user replaces the pages of the first user', async t => {
    await second.getByRole('button', { name: 'Log out' }).click()
    await login(second, { key: SECOND_KEY })
    await first.getByText('Key holder').first().waitFor()
    t.equal(await first.getByTestId('new-key').count(), 0)
  })
  t.strictSame(faults, [])
})

async function login(page: Page, by: { name: string; password: string } | { key: string }): Promise<void> {
  if ('key' in by) {
    await page.getByRole('tab', { name: 'API key' }).click()
    await page.getByRole('textbox', { name: 'API key' }).fill(by.key)
  } else {
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill(by.name)
    await page.getByRole('textbox', { name: 'Password' }).fill(by.password)
  }
  await page.getByRole('button', { name: 'Log in' }).click()
  await page.getByRole('heading', { name: 'Panel', level: 1 }).waitFor()
}
