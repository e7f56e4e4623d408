import t from 'tap'
import { PASSWORD, startConsole } from '../console/console.ts'
import { go, openBrowser, visit } from './browser.ts'
import type { Page } from './browser.ts'

const ADMIN = { name: 'ops', password: PASSWORD }
const SILENCE = 'The gateway does not answer. It may be restarting.'

t.test('the gateway does not answer any more', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const { console: origin } = await startConsole(t)
  const open = async (path: string) => {
    const { page, faults } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, path)
    return { page, faults }
  }

  await t.test('a page that goes on showing what it knows says of when that is', async t => {
    const { page } = await open('/')
    await page.getByText('Live', { exact: true }).waitFor()
    await silence(page, '**/console/api/**')
    const notice = page.getByRole('status').filter({ hasText: SILENCE })
    await notice.waitFor()
    t.match(await notice.textContent(), /What stands here is of \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\.$/)
    await page.getByText('Live', { exact: true }).waitFor({ state: 'detached' })
    await page.unroute('**/console/api/**')
    await page.getByText('Live', { exact: true }).waitFor()
    await notice.waitFor({ state: 'detached' })
  })

  await t.test('a logout that fails is told', async t => {
    const { page, faults } = await open('/models')
    await silence(page, '**/console/api/session')
    await page.getByRole('button', { name: 'Log out' }).click()
    await page.getByRole('alert').getByText(SILENCE).waitFor()
    t.strictSame(faults.filter(fault => !fault.includes('ERR_FAILED')), [])
    await page.unroute('**/console/api/session')
    await page.getByRole('button', { name: 'Log out' }).click()
    await page.getByRole('heading', { name: 'Model Gateway', level: 1 }).waitFor()
  })

  await t.test('a statement of nobody knows whom is not waited for', async () => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await silence(page, '**/console/api/filters')
    await page.goto('/console/statement')
    await page.getByRole('alert').getByText(SILENCE).waitFor()
    await page.unroute('**/console/api/filters')
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByText('No key has been used yet').waitFor()
  })

  await t.test('nobody leaves before the key that is being made', async t => {
    const { page } = await open('/keys')
    const answers = Promise.withResolvers<void>()
    await page.route('**/console/api/keys', async route => {
      await answers.promise
      await route.continue()
    })
    await page.getByRole('button', { name: 'New key' }).click()
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('slow')
    await page.keyboard.press('Enter')
    await page.locator('button[data-loading]').waitFor()
    await page.keyboard.press('Escape')
    t.equal(await page.getByRole('button', { name: 'Cancel' }).isDisabled(), true)
    answers.resolve()
    t.match(await page.getByTestId('new-key').textContent(), /^mgw_/)
  })

  await t.test('the playground gives way to the login when the session is over', async () => {
    const { page } = await open('/playground')
    await page.context().clearCookies()
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByRole('heading', { name: 'Model Gateway', level: 1 }).waitFor()
  })
})

/** As if nobody listened there. */
async function silence(page: Page, address: string): Promise<void> {
  await page.route(address, route => route.abort())
}
