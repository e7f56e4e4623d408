import { dirname, join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { monthName } from '../../../src/console/web/src/format.ts'
import { row } from '../../ledger/rows.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'
import { chat, makeKey, PASSWORD, startConsole, YAML } from '../console/console.ts'
import { FAR_LOOKS, barriers, go, openBrowser, overflow, visit } from './browser.ts'
import type { Page } from './browser.ts'
import { keyboard, mouse } from './operator.ts'
import type { Operator } from './operator.ts'
import { writeRows } from './scene/past.ts'

const OPS = { name: 'ops', password: PASSWORD }
const USD = 10n ** 12n
const MAX_CLICKS = 3

interface Task {
  /** The steps up to the result. */
  solve(t: Test, page: Page, by: Operator): Promise<void>
  /** The steps after the result. */
  finish?(t: Test, page: Page, by: Operator): Promise<void>
}

/** Each theme and screen with the mouse, and one of them with only the keyboard. */
const VARIANTS = [
  ...FAR_LOOKS.map(look => ({ look, with: 'the mouse', operator: mouse })),
  { look: { scheme: 'light', width: 1280 }, with: 'the keyboard', operator: keyboard },
] as const

t.test('the most common questions of operators take at most three clicks from the panel', async t => {
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
  const midnight = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate())
  const startedAt = Math.max(now.getTime() - 600_000, midnight)
  await writeRows(join(dirname(gateway.file), 'data/ledger.db'), [
    row('1', { startedAt, key: 'team-a', model: 'large', costPico: 7n * USD }), row('2', { startedAt, key: 'test', model: 'demo', costPico: 2n * USD }),
    row('3', { startedAt, key: 'test', model: 'new-model', costPico: null }), row('4', { startedAt: lastMonth, key: 'team-a', costPico: 42n * USD }),
  ])
  let secret = await makeKey(await gateway.login(OPS), 'team-a')
  const failed = (await chat(gateway, undefined, 'lost')).headers.get('x-gateway-request-id') ?? ''
  for (let n = 0; n < 3; n++) await chat(gateway, undefined, 'lost')
  const link = (page: Page, name: string) => page.getByRole('link', { name, exact: true })

  const tasks: Readonly<Record<string, Task>> = {
    'who spends most on which model': {
      solve: async (t, page, by) => {
        await by.activate(link(page, 'By key and model'))
        const table = page.getByRole('table', { name: 'Spend by key and model' })
        await table.waitFor()
        const [first] = await table.locator('tbody tr').allInnerTexts()
        t.match(first, /team-a[^]*large[^]*\$7\.00/)
      },
    },
    'why did a request fail': {
      solve: async (_t, page, by) => {
        await by.activate(page.getByRole('button', { name: 'Find a request' }).first())
        await page.locator('[role=dialog] input:focus').waitFor()
        await page.keyboard.type(failed)
        await page.keyboard.press('Enter')
        await page.getByText('disk full on node 7').first().waitFor()
      },
    },
    'since when is alpha down, and what broke first': {
      solve: async (t, page, by) => {
        await by.activate(page.getByRole('region', { name: 'Alerts' }).getByRole('link', { name: 'Upstream', exact: true }))
        const circuits = page.getByRole('table', { name: 'Open circuits' })
        await circuits.getByText('status 503 first_fault').waitFor()
        t.match(await circuits.locator('time').first().getAttribute('datetime'), now.toISOString().slice(0, 10))
      },
    },
    'what did a team cost last month, printed': {
      solve: async (t, page, by) => {
        await by.activate(link(page, 'Statements'))
        const month = monthName(new Date(lastMonth).toISOString().slice(0, 7))
        await by.activate(page.getByRole('link', { name: `, statement of team-a, ${month}` }))
        await page.getByText('Final', { exact: true }).waitFor()
        t.match(await page.getByRole('article').innerText(), '$42.00')
        await by.activate(page.getByRole('button', { name: 'Print or save' }))
        t.equal(await page.title(), 'printed')
      },
    },
    'rotate a key without an outage': {
      solve: async (t, page, by) => {
        await by.activate(link(page, 'Keys of all clients'))
        await by.activate(page.getByRole('button', { name: 'Rotate team-a' }))
        await by.activate(page.getByRole('button', { name: 'Rotate key' }))
        const fresh = await page.getByTestId('new-key').innerText()
        for (const each of [secret, fresh]) t.equal((await chat(gateway, each)).status, 200)
        secret = fresh
      },
      finish: async (t, page, by) => {
        await by.activate(page.getByRole('checkbox', { name: 'I have saved the key' }))
        await by.activate(page.getByRole('button', { name: 'Done' }))
        await page.getByRole('dialog').waitFor({ state: 'detached' })
        await page.getByText('Key team-a is rotated.').waitFor()
        t.equal(await page.locator(':focus').getAttribute('aria-label'), 'Rotate team-a')
      },
    },
    'which requests were unpriced': {
      solve: async (_t, page, by) => {
        await by.activate(link(page, 'Unpriced requests'))
        await page.getByRole('table', { name: /^Requests/ }).getByText('new-model').first().waitFor()
      },
    },
  }
  for (const { look, with: hand, operator } of VARIANTS) {
    await t.test(`${look.scheme}, ${look.width} px, with ${hand}`, async t => {
      const { page, faults } = await visit(t, browser, { origin: gateway.console, as: OPS, look })
      await page.addInitScript('window.print = () => { document.title = "printed" }')
      for (const [task, { solve, finish }] of Object.entries(tasks)) {
        await t.test(task, async t => {
          await go(page, '/')
          const by = operator(page)
          await solve(t, page, by)
          t.ok(by.activated <= MAX_CLICKS, `${by.activated} clicks`)
          t.strictSame(await barriers(page), [])
          t.equal(await overflow(page), 0)
          await finish?.(t, page, by)
          t.strictSame([...by.faults, ...faults], [])
        })
      }
    })
  }
})
