import t from 'tap'
import type { Locator, Page } from 'playwright-core'
import { KEY } from '../../support/gateway.ts'
import { PASSWORD, startConsole, YAML } from '../console/console.ts'
import { barriers, go, openBrowser, overflow, visit } from './browser.ts'

const OPS = { name: 'ops', password: PASSWORD }
const MODELS = ['m1', 'm2', 'm3', 'm4', 'm5']
const LONG = 'research-inference-cluster-of-the-laboratory-in-frankfurt'
const SERVED = Array.from({ length: 12 }, (_, n) => `gpt-model-number-${n}`)

const CONFIGURATION = YAML
  .replace('sim: { simulator: true }', `dead: { url: "http://127.0.0.1:9" }, sim: { simulator: true }, ${LONG}: { simulator: true }`)
  .replace(/^routes:.*$/m, `routes:
  - { model: [${MODELS}], to: dead, retries: 0 }
  - { model: "gpt-*", to: sim }
  - { model: mixed, to: [{ upstream: sim, model: demo }, { upstream: ${LONG}, model: gpt-model-number-1 }] }`)
  .replace(/^models:.*$/m, `models: { demo: { price: { input: 1, output: 2 } }, ${SERVED.map(name => `${name}: { price: { input: 2, output: 3, cached_input: 0.1 } }`).join(', ')} }`)
  .replace(/^keys:.*$/m, `keys: [{ name: test, key: ${KEY}, owner: department of linguistics, note: nightly evaluation of all models, models: ["m*", "gpt-*"],
    limits: { requests_per_minute: 6000, tokens_per_minute: 400000, concurrent: 20 } }]`)

/** Number of names and section titles that are cut. */
const CUT = `[...document.querySelectorAll('main span, main h2')].filter(each => !each.className.includes('unseen')
  && each.scrollWidth > each.clientWidth + 1 && (each.tagName === 'H2' || getComputedStyle(each).overflow === 'hidden')).length`

t.test('during an outage all open circuits are shown, and long names are not cut off', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const gateway = await startConsole(t, CONFIGURATION)
  const { console: origin } = gateway
  for (const model of MODELS.flatMap(model => [model, model, model])) {
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST', headers: { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json' }, body: JSON.stringify({ model, messages: [] }),
    })
    await response.arrayBuffer()
    t.equal(response.status, 502)
  }
  const admin = await gateway.login(OPS)
  t.equal((await admin.ask('/keys', { method: 'POST', body: {
    name: 'evaluation-of-the-laboratory', owner: 'department of linguistics', note: 'nightly evaluation of all models', expires_at: '2099-12-31T00:00:00.000Z',
    models: ['m*', 'gpt-*', 'claude-*'], limits: { requests_per_minute: 6000, tokens_per_minute: 400_000, budget: { usd: '400', per: 'month' } },
  } })).status, 201)

  for (const look of [{ scheme: 'light', width: 1280 }, { scheme: 'dark', width: 390 }] as const) {
    await t.test(`${look.scheme}, ${look.width} px`, async t => {
      const { page, faults } = await visit(t, browser, { origin, as: OPS, look })
      await go(page, '/')
      const alert = page.getByRole('region', { name: 'Alerts' }).getByRole('listitem').filter({ hasText: '5 open circuits' })
      await alert.getByLabel('error').waitFor()
      await page.getByRole('link', { name: '2 more not closed' }).waitFor()
      await page.getByRole('link', { name: '2 more not closed' }).click()
      await page.waitForURL('**/upstreams/dead**')
      const over = page.getByRole('region', { name: 'Open circuits over time' })
      await over.getByText('Still open').first().waitFor()
      t.equal(await over.getByText('Still open').count(), 5)
      t.ok(await isInside(over.locator('i').first(), over.locator('[aria-hidden]:has(> i)').first()), 'the bar of a circuit that has just opened is in view')
      t.strictSame(await barriers(page), [])

      await go(page, '/keys')
      const rows = page.getByRole('table', { name: /^Keys/ }).locator('tbody tr')
      t.equal(await rows.count(), 2)
      for (const name of ['test', 'evaluation-of-the-laboratory']) {
        t.ok(await isInView(page, `Actions for ${name}`), name)
      }
      t.ok(await isInView(page, 'Rotate evaluation-of-the-laboratory'))
      t.equal(await page.getByRole('button', { name: 'Rotate evaluation-of-the-laboratory' }).innerText(), 'Rotate')
      t.ok(await isInside(page.getByRole('table', { name: /^Keys/ }), page.getByRole('group', { name: /^Keys/ })), 'all columns fit')
      t.equal(await overflow(page), 0)
      t.strictSame(await barriers(page), [])

      await go(page, '/models')
      t.equal(await page.evaluate<number>(CUT), 0, 'no name is cut')
      t.equal(await overflow(page), 0)

      await go(page, '/routes')
      const more = await page.getByRole('button', { name: 'Show 6 more' }).boundingBox()
      t.ok(more !== null && more.height <= 24, 'the button for more models is as high as a row of them')

      await go(page, '/configuration')
      const [title, time] = await Promise.all([
        page.getByRole('heading', { name: /gateway\.yaml$/ }).boundingBox(), page.getByText(/^loaded/).boundingBox(),
      ])
      if (title === null || time === null) throw new Error('the file has no title, or no time')
      const isApart = title.x + title.width <= time.x + 1 || title.y + title.height <= time.y + 1
      t.ok(isApart, 'the name of the file is not over the time')
      t.equal(await page.evaluate<number>(CUT), 0)
      t.equal(await overflow(page), 0)
      t.strictSame(faults, [])
    })
  }
})

/** Whether a button is on the screen without scrolling sideways, and not covered. */
async function isInView(page: Page, name: string): Promise<boolean> {
  const button = page.getByRole('button', { name, exact: true })
  const box = await button.boundingBox()
  if (box === null || box.x < 0 || box.x + box.width > (page.viewportSize()?.width ?? 0)) return false
  await button.click({ trial: true })
  return true
}

/** Is `inner` horizontally inside of `outer`? */
async function isInside(inner: Locator, outer: Locator): Promise<boolean> {
  const [one, other] = await Promise.all([inner.boundingBox(), outer.boundingBox()])
  return one !== null && other !== null && one.x >= other.x - 1 && one.x + one.width <= other.x + other.width + 1
}
