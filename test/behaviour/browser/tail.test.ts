import t from 'tap'
import { chat, PASSWORD, startConsole } from '../console/console.ts'
import { go, openBrowser, visit } from './browser.ts'

/** More requests than the live tail keeps. */
const REQUESTS = 530

t.test('no request is missing between the list and the live tail', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const gateway = await startConsole(t)
  await chat(gateway)
  const { page, faults } = await visit(t, browser, {
    origin: gateway.console, as: { name: 'ops', password: PASSWORD },
  })
  await go(page, '/logs?live=1')
  await page.getByText('1 request in this time range').waitFor()
  for (let sent = 0; sent < REQUESTS; sent += 10) {
    await Promise.all(Array.from({ length: 10 }, () => chat(gateway)))
  }
  await page.getByRole('button', { name: 'Load older' }).waitFor()
  await page.getByRole('switch', { name: 'Live' }).press('Space')
  for (;;) {
    const older = page.getByRole('button', { name: 'Load older' })
    const all = page.getByText(/in this time range$/)
    await older.or(all).waitFor()
    if (await all.isVisible()) break
    await older.click()
    await page.locator('button[data-loading]').waitFor({ state: 'detached' })
  }
  await page.getByText(`${REQUESTS + 1} requests in this time range`).waitFor()
  t.strictSame(faults, [])
})
