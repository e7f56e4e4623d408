import t from 'tap'
import { KEY } from '../../support/gateway.ts'
import { chat, PASSWORD, startConsole, YAML } from '../console/console.ts'
import { go, openBrowser, settled, visit } from './browser.ts'

const KEYS = 250
const names = Array.from({ length: KEYS }, (_, n) => `customer-${String(n).padStart(3, '0')}`)
const keys = names.map(name => `{ name: ${name}, key: sk-${name}-0123456789 }`).join(', ')

t.test('pages with many keys or budgets show the first rows, and more rows on demand', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const yaml = YAML.replace(/^keys: .*$/m, `keys: [${keys}]\nlimits: { budget: { usd: 5, per: month } }`)
  const { console: origin } = await startConsole(t, yaml)
  const { page, faults } = await visit(t, browser, { origin, as: { name: 'ops', password: PASSWORD } })

  await go(page, '/keys')
  const rows = page.locator('tbody tr')
  t.equal(await rows.count(), 50)
  for (let shown = 50; shown < KEYS; shown += 50) {
    await page.getByText(`${shown} of 250 shown`).waitFor()
    await page.getByRole('button', { name: 'Show 50 more' }).click()
  }
  t.equal(await rows.count(), KEYS)
  t.equal(await page.getByRole('button', { name: /^Show/ }).count(), 0)

  await page.reload()
  await settled(page)
  await page.getByRole('textbox', { name: 'Filter keys' }).fill('customer-249')
  await page.getByText('customer-249').waitFor()
  t.equal(await rows.count(), 1, 'the filter finds rows that are not shown')

  await go(page, '/billing')
  await page.getByText('60 of 250 shown').waitFor()
  t.strictSame(faults, [])
})

t.test('pages with many models show the first rows, and all rows on demand', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const models = Array.from({ length: 250 }, (_, n) => `model-${n}`).join(', ')
  const { console: origin } = await startConsole(t, YAML.replace('model: [demo,', `model: [demo, ${models},`))
  const ops = { name: 'ops', password: PASSWORD }
  for (const [as, path] of [[ops, '/models'], [{ key: KEY }, '/own']] as const) {
    const { page } = await visit(t, browser, { origin, as })
    await go(page, path)
    await page.getByRole('button', { name: 'Show 51 more' }).click()
    t.equal(await page.getByRole('group', { name: 'Models' }).locator('tbody tr').count(), 251)
  }
})

t.test('the panel groups alerts of one kind, and shows each alert on demand', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const gateway = await startConsole(t, YAML.replace('"sim*"', '"*"'))
  for (let n = 0; n < 15; n++) await chat(gateway, KEY, `invented-${n}`)
  const { page } = await visit(t, browser, {
    origin: gateway.console, as: { name: 'ops', password: PASSWORD },
  })
  await go(page, '/')
  const alerts = page.getByRole('region', { name: 'Alerts' })
  await alerts.getByText('15 models without a price').first().waitFor()
  t.equal(await alerts.getByRole('listitem').count(), 1)
  await alerts.getByRole('button', { name: 'Show all 15 models without a price' }).click()
  await alerts.getByText('12 of 15 shown').waitFor()
  await alerts.getByRole('button', { name: 'Show 3 more' }).click()
  t.equal(await alerts.getByRole('listitem').count(), 1 + 15)
})
