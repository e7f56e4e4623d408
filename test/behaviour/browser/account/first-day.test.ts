import { dirname, join } from 'node:path'
import t from 'tap'
import { row } from '../../../ledger/rows.ts'
import { KEY } from '../../../support/gateway.ts'
import { chat, PASSWORD, startConsole, YAML } from '../../console/console.ts'
import { barriers, go, openBrowser, overflow, visit } from '../browser.ts'
import { writeRows } from '../scene/past.ts'

const CLIPPED = `[...document.querySelectorAll('dl dd')].filter(each => each.scrollWidth > each.clientWidth)
  .map(each => each.textContent)`
const AXES = `[...document.querySelectorAll('[data-plot]')].map(({ previousElementSibling: axis }) =>
  [...axis.children].map(each => each.textContent))`
const ADMIN = { name: 'ops', password: PASSWORD }

t.test('empty pages are accessible', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const { console: origin } = await startConsole(t)
  for (const path of ['/', '/billing', '/statement', '/logs']) {
    const { page, faults } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, path)
    t.strictSame(await barriers(page), [], path)
    t.strictSame(faults, [])
  }
})

t.test('model names of spaces or control characters do not break a page', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const gateway = await startConsole(t, YAML.replace('"sim*"', '"*"'))
  await chat(gateway, KEY, '\0none')
  // Of a gateway that did not refuse such names yet.
  const startedAt = Date.now()
  await writeRows(join(dirname(gateway.file), 'data/ledger.db'), [
    row('1', { startedAt, model: '-'.repeat(256) }), row('2', { startedAt, model: ' ' }),
  ])
  const { page, faults } = await visit(t, browser, { origin: gateway.console, as: ADMIN })
  await go(page, '/logs')
  await page.getByRole('combobox', { name: 'Model' }).click()
  await page.getByRole('option').filter({ hasText: 'none' }).click()
  await page.waitForURL(/model=%00none/)
  await page.getByText('1 request in this time range').waitFor()
  await go(page, '/billing?by=model')
  t.strictSame(await barriers(page), [], 'a name of spaces is a visible link')
  await page.getByRole('link', { name: '" "' }).click()
  await page.getByText('1 request in this time range').waitFor()
  t.strictSame(faults, [])
})

t.test('very small amounts are readable', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const gateway = await startConsole(t, YAML.replace('input: 1, output: 2', 'input: 0.02, output: 0.02'))
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${KEY}`, 'content-type': 'application/json', 'x-simulate': 'input=3,tokens=1',
    },
    body: JSON.stringify({ model: 'demo', messages: [{ role: 'user', content: 'hi' }] }),
  })
  t.equal(response.status, 200)
  await response.arrayBuffer()

  for (const path of ['/', '/billing']) {
    const { page, faults } = await visit(t, browser, { origin: gateway.console, as: ADMIN })
    await go(page, path)
    await page.getByText('$0.00000008', { exact: true }).first().waitFor()
    t.equal(await page.getByRole('alert').count(), 0, path)
    t.strictSame(await page.evaluate(CLIPPED), [], 'no figure is cut off')
    const axes = await page.evaluate<string[][]>(AXES)
    t.equal(axes.length, path === '/' ? 3 : 1)
    t.notOk(axes.some(lines => new Set(lines).size < lines.length), 'axis labels are distinct')
    t.equal(await page.getByText('$0.00000005', { exact: true }).count(), 1, `the axis of ${path}`)
    t.equal(await overflow(page), 0)
    t.strictSame(faults, [])
  }
})
