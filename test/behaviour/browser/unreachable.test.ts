import t from 'tap'
import { PASSWORD, startConsole } from '../console/console.ts'
import { go, openBrowser, visit } from './browser.ts'
import type { Page } from './browser.ts'

const ADMIN = { name: 'ops', password: PASSWORD }
const UNREACHABLE = 'The gateway does not respond. It may be restarting.'

t.test('while the gateway does not respond', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const { console: origin } = await startConsole(t)
  const open = async (path: string) => {
    const { page, faults } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, path)
    return { page, faults }
  }

  await t.test('a page with old data shows the time of the data', async t => {
    const { page } = await open('/')
    await page.getByText('Live', { exact: true }).waitFor()
    await blockRequests(page, '**/console/api/**')
    const notice = page.getByRole('status').filter({ hasText: UNREACHABLE })
    await notice.waitFor()
    t.match(await notice.textContent(), /Showing data from \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\.$/)
    await page.getByText('Live', { exact: true }).waitFor({ state: 'detached' })
    await page.unroute('**/console/api/**')
    await page.getByText('Live', { exact: true }).waitFor()
    await notice.waitFor({ state: 'detached' })
  })

  await t.test('a failed logout shows an error', async t => {
    const { page, faults } = await open('/models')
    await blockRequests(page, '**/console/api/session/logout')
    await page.getByRole('button', { name: 'Log out' }).click()
    await page.getByRole('alert').getByText(UNREACHABLE).waitFor()
    t.strictSame(faults.filter(fault => !fault.includes('ERR_FAILED')), [])
    await page.unroute('**/console/api/session/logout')
    await page.getByRole('button', { name: 'Log out' }).click()
    await page.getByRole('heading', { name: 'Model Gateway', level: 1 }).waitFor()
  })

  await t.test('the list of statements shows an error, and loads when the user retries', async () => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await blockRequests(page, '**/console/api/billing?*by=owner*')
    await page.goto('/console/statement')
    await page.getByRole('alert').getByText(UNREACHABLE).waitFor()
    await page.unroute('**/console/api/billing?*by=owner*')
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByText('No owners with usage').waitFor()
  })

  await t.test('a page whose script cannot be loaded shows an error, and loads when the user retries', async () => {
    const { page } = await open('/')
    await blockRequests(page, '**/console/assets/models-*.js')
    await page.getByRole('link', { name: 'Models' }).click()
    await page.getByRole('alert').getByText(UNREACHABLE).waitFor()
    await page.unroute('**/console/assets/models-*.js')
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByRole('heading', { name: 'Models', level: 1 }).waitFor()
  })

  await t.test('the dialog for a new key stays open until the response arrives', async t => {
    const { page } = await open('/keys')
    const response = Promise.withResolvers<void>()
    await page.route('**/console/api/keys', async route => {
      await response.promise
      await route.continue()
    })
    await page.getByRole('button', { name: 'New key' }).click()
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('slow')
    await page.keyboard.press('Enter')
    await page.locator('button[data-loading]').waitFor()
    await page.keyboard.press('Escape')
    t.equal(await page.getByRole('button', { name: 'Cancel' }).isDisabled(), true)
    response.resolve()
    t.match(await page.getByTestId('new-key').textContent(), /^mgw_/)
  })

  await t.test('the playground shows the login when the session has expired', async () => {
    const { page } = await open('/playground')
    await page.context().clearCookies()
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByRole('heading', { name: 'Model Gateway', level: 1 }).waitFor()
  })
})

/** Makes requests fail as if nothing listened. */
async function blockRequests(page: Page, address: string): Promise<void> {
  await page.route(address, route => route.abort())
}
