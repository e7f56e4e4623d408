import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { monthName } from '../../../src/console/web/src/format.ts'
import { row } from '../../ledger/rows.ts'
import { setUp } from '../console/caller-console.ts'
import { PASSWORD, YAML, startConsole } from '../console/console.ts'
import { FAR_LOOKS, barriers, go, openBrowser, overflow, visit, type Page } from './browser.ts'
import { keyboard, mouse, type Operator } from './operator.ts'
import { writeRows } from './scene/past.ts'

const USD = 10n ** 12n
const MAX_CLICKS = 3
const VARIANTS = [
  ...FAR_LOOKS.map(look => ({ look, with: 'the mouse', operator: mouse })),
  { look: { scheme: 'light', width: 1280 }, with: 'the keyboard', operator: keyboard },
] as const

t.test('questions about projects, users and callers take at most three clicks from the panel', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const gateway = await startConsole(t, `${YAML}
attribution: { user: [body], tags: { project: [header] } }
groups: { research: {} }
callers:
  - name: corp
    issuer: https://login.example.com
    audience: a
    groups: { default: research }
    limits: { requests_per_minute: 77, budget: { usd: 20, per: month } }
`)
  const now = new Date()
  const lastMonth = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 1, 15)
  const startedAt = Math.max(now.getTime() - 600_000, Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate()))
  await writeRows(join(dirname(gateway.file), 'data/ledger.db'), [
    row('1', { startedAt: lastMonth, model: 'large', tags: { project: 'alpha' }, costPico: 30n * USD }),
    row('2', { startedAt: lastMonth, model: 'small', tags: { project: 'alpha' }, costPico: 12n * USD }),
    row('3', { startedAt: lastMonth, model: 'small', tags: { project: 'beta' }, costPico: 500n * USD }),
    row('4', { startedAt, user: 'u-big', costPico: 9n * USD }), row('5', { startedAt, user: 'u-small', costPico: 2n * USD }),
    row('6', { startedAt, key: 'corp:alice@example.com', group: 'research', costPico: USD }),
  ])
  const link = (page: Page, name: string) => page.getByRole('link', { name, exact: true })
  const tasks: Readonly<Record<string, (t: Test, page: Page, by: Operator) => Promise<void>>> = {
    'what did project alpha cost last month, by model': async (t, page, by) => {
      await by.activate(link(page, 'Statements'))
      await by.activate(page.getByRole('link', { name: `, statement of alpha, ${monthName(new Date(lastMonth).toISOString().slice(0, 7))}` }))
      const lines = page.getByRole('table', { name: 'By model' })
      await lines.waitFor()
      t.match(await lines.innerText(), /large[^]*\$30\.00[^]*small[^]*\$12\.00/)
      t.match(await page.getByRole('article').innerText(), /project=alpha/)
    },
    'which user spends most': async (t, page, by) => {
      await by.activate(link(page, 'By user'))
      const table = page.getByRole('table', { name: 'Spend by user' })
      await table.getByText('u-big').waitFor()
      const [first] = await table.locator('tbody tr').allInnerTexts()
      t.match(first, /u-big[^]*\$9\.00/)
    },
    'who is this caller and what may they do': async (t, page, by) => {
      await by.activate(link(page, 'Keys of all clients'))
      const table = page.getByRole('table', { name: 'Callers' })
      await table.getByText('corp:alice@example.com').waitFor()
      t.match(await table.innerText(), /research[^]*Active[^]*77 requests per minute[^]*\$20\.00 per month/)
    },
  }
  for (const { look, with: hand, operator } of VARIANTS) {
    await t.test(`${look.scheme}, ${look.width} px, with ${hand}`, async t => {
      const { page, faults } = await visit(t, browser, { origin: gateway.console, as: { name: 'ops', password: PASSWORD }, look })
      for (const [task, solve] of Object.entries(tasks)) {
        await t.test(task, async t => {
          await go(page, '/')
          const by = operator(page)
          await solve(t, page, by)
          t.ok(by.activated <= MAX_CLICKS, `${by.activated} clicks`)
          t.strictSame(await barriers(page), [])
          t.equal(await overflow(page), 0)
          t.strictSame([...by.faults, ...faults], [])
        })
      }
    })
  }
  await t.test('an admin blocks and unblocks a caller', async t => {
    const { page } = await visit(t, browser, { origin: gateway.console, as: { name: 'ops', password: PASSWORD } })
    await go(page, '/keys')
    for (const [verb, said] of [['Block', 'is blocked'], ['Unblock', 'is active again']] as const) {
      await page.getByRole('button', { name: `${verb} corp:alice@example.com` }).click()
      await page.getByRole('button', { name: `${verb} caller` }).click()
      await page.getByText(said).waitFor()
    }
    t.pass('both are said')
  })
})

t.test('a caller makes a key on its page and revokes it', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const { gateway } = await setUp(t, undefined, { keys: 1 })
  for (const look of FAR_LOOKS) {
    await t.test(`${look.scheme}, ${look.width} px`, async t => {
      const { page, faults } = await visit(t, browser, { origin: gateway.console, look })
      await go(page, '/own')
      await page.getByRole('button', { name: 'Log in with single sign-on' }).click()
      await page.getByLabel('Account').fill('1')
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.getByRole('heading', { name: 'My keys' }).waitFor()
      t.equal(await page.locator('main').getByText('corp:alice@example.com').first().isVisible(), true)
      t.equal(await page.getByRole('link', { name: 'Upstreams' }).count(), 0, 'nothing of the operator')
      await page.getByRole('button', { name: 'New key' }).click()
      await page.getByLabel('Label').fill('laptop')
      t.strictSame(await barriers(page), [])
      await page.getByRole('button', { name: 'Create key' }).click()
      const key = await page.getByTestId('new-key').innerText()
      const models = () => fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } })
      t.equal((await models()).status, 200)
      await page.getByRole('checkbox', { name: 'I have saved the key' }).click()
      await page.getByRole('button', { name: 'Done' }).click()
      await page.getByText('1 of 1 keys').waitFor()
      t.equal(await page.getByRole('button', { name: 'New key' }).isDisabled(), true)
      t.strictSame(await barriers(page), [])
      t.equal(await overflow(page), 0)
      await page.getByRole('button', { name: 'Revoke laptop' }).click()
      await page.getByRole('button', { name: 'Revoke key' }).click()
      await page.getByText('0 of 1 keys').waitFor()
      t.equal((await models()).status, 401)
      t.strictSame(faults.filter(fault => !fault.startsWith('request:') && !fault.includes('favicon')), [])
    })
  }
})
