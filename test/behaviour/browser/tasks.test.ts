import { dirname, join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { openLedger } from '../../../src/ledger/ledger.ts'
import { monthName } from '../../../src/console/web/src/format.ts'
import { row } from '../../ledger/rows.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'
import { chat, makeKey, PASSWORD, startConsole, YAML } from '../console/console.ts'
import { barriers, go, openBrowser, overflow, visit } from './browser.ts'
import type { Page } from './browser.ts'

const OPS = { name: 'ops', password: PASSWORD }
const USD = 10n ** 12n
const MAX_CLICKS = 3

type Locator = ReturnType<Page['locator']>
type Click = (target: Locator) => Promise<void>

t.test('what operators ask most takes three clicks from the panel', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  let failures = 0
  const { url } = await startUpstream(t, async (req, res) => {
    await bodyOf(req)
    res.writeHead(503, { 'content-type': 'application/json' })
      .end(`{"error":{"type":"${failures++ === 0 ? 'first_fault' : 'overloaded'}","message":"disk full on node 7"}}`)
  })
  const gateway = await startConsole(t, YAML.replace('sim: { simulator: true }', `sim: { simulator: true }, alpha: { url: "${url}" }`)
    .replace('routes: [', 'routes: [{ model: lost, to: alpha, retries: 0 }, '))
  const now = new Date()
  const lastMonth = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 1, 15)
  const ledger = openLedger({
    file: join(dirname(gateway.file), 'data/ledger.db'), keep: null, onFailure: trouble => { throw trouble }, onRecovered: () => {},
  })
  const startedAt = now.getTime() - 600_000
  for (const each of [
    row('1', { startedAt, key: 'team-a', model: 'large', costPico: 7n * USD }), row('2', { startedAt, key: 'test', model: 'demo', costPico: 2n * USD }),
    row('3', { startedAt, key: 'test', model: 'new-model', costPico: null }), row('4', { startedAt: lastMonth, key: 'team-a', costPico: 42n * USD }),
  ]) ledger.close(each)
  await ledger.flush()
  await ledger.shutdown()
  const oldKey = await makeKey(await gateway.login(OPS), 'team-a')
  const failed = (await chat(gateway, undefined, 'lost')).headers.get('x-gateway-request-id') ?? ''
  for (let n = 0; n < 3; n++) await chat(gateway, undefined, 'lost')
  const rowOf = (page: Page, text: string) => page.locator('tbody tr').filter({ hasText: text })
  const link = (page: Page, name: string) => page.getByRole('link', { name, exact: true })

  const tasks: Readonly<Record<string, (t: Test, page: Page, click: Click) => Promise<void>>> = {
    'who spends most on which model': async (t, page, click) => {
      await click(link(page, 'By key and model'))
      const table = page.getByRole('table', { name: 'Spend by key and model' })
      await table.waitFor()
      const [first] = await table.locator('tbody tr').allInnerTexts()
      t.match(first, /team-a[^]*large[^]*\$7\.00/)
    },
    'why did a request fail': async (_t, page, click) => {
      await click(page.getByRole('button', { name: 'Find a request' }).first())
      await page.keyboard.type(failed)
      await page.keyboard.press('Enter')
      await page.getByText('disk full on node 7').first().waitFor()
    },
    'since when is alpha down, and what broke first': async (t, page, click) => {
      await click(page.getByRole('region', { name: 'Alerts' }).getByRole('link', { name: 'Upstream', exact: true }))
      const circuits = page.getByRole('table', { name: 'Open circuits' })
      await circuits.getByText('status 503 first_fault').waitFor()
      t.match(await circuits.locator('time').first().getAttribute('datetime'), now.toISOString().slice(0, 10))
    },
    'what did a team cost last month, printed': async (t, page, click) => {
      await click(link(page, 'Statements'))
      await click(page.getByRole('link', { name: `, statement of team-a, ${monthName(new Date(lastMonth).toISOString().slice(0, 7))}` }))
      await page.getByText('Final', { exact: true }).waitFor()
      t.match(await page.getByRole('article').innerText(), '$42.00')
      await click(page.getByRole('button', { name: 'Print or save' }))
      t.equal(await page.title(), 'printed')
    },
    'rotate a key without an outage': async (t, page, click) => {
      await click(link(page, 'Keys of all clients'))
      await click(rowOf(page, 'team-a').getByRole('button', { name: 'Rotate team-a' }))
      await click(page.getByRole('button', { name: 'Rotate key' }))
      const fresh = await page.getByTestId('new-key').innerText()
      t.equal((await chat(gateway, fresh)).status, 200)
      t.equal((await chat(gateway, oldKey)).status, 200)
    },
    'which requests were unpriced': async (_t, page, click) => {
      await click(link(page, 'Unpriced requests'))
      await page.getByRole('table', { name: /^Requests/ }).getByText('new-model').first().waitFor()
    },
  }
  for (const width of [1280, 390] as const) {
    for (const [task, solve] of Object.entries(tasks)) {
      await t.test(`${task}, ${width}`, async t => {
        const { page, faults } = await visit(t, browser, { origin: gateway.console, as: OPS, look: { scheme: 'dark', width } })
        await page.addInitScript('window.print = () => { document.title = "printed" }')
        await go(page, '/')
        let clicks = 0
        await solve(t, page, async target => {
          clicks++
          await target.click()
        })
        t.ok(clicks <= MAX_CLICKS, `${clicks} clicks`)
        t.strictSame(await barriers(page), [])
        t.equal(await overflow(page), 0)
        t.strictSame(faults, [])
      })
    }
  }
})
