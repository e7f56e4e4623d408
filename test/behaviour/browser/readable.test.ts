import { dirname, join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { row } from '../../ledger/rows.ts'
import { KEY } from '../../support/gateway.ts'
import { chat, PASSWORD, startConsole, YAML } from '../console/console.ts'
import { go, openBrowser, overflow, visit } from './browser.ts'
import type { Page } from './browser.ts'
import { writeRows } from './scene/past.ts'

const TEAM = 'data-platform-evaluation-of-summaries-in-the-region-eu-west-1-for-production'
const OWNER = `owners-of-${TEAM}`
const MODEL = `accounts/fireworks/models/llama-v3p1-405b-instruct-long-context-preview-${'x'.repeat(120)}`
const UPSTREAM = `${TEAM}-upstream`
const PAGES = [
  '/', '/billing', '/billing?by=key,model', '/statement', `/statement?key=${TEAM}`, '/logs', `/logs/long`, '/upstreams', `/upstreams/${UPSTREAM}`,
  '/keys', '/models', '/routes', '/configuration', '/audit', '/playground',
]

t.test('long names, times and shares are readable', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const gateway = await startConsole(t, YAML
    .replace('sim: { simulator: true }', `sim: { simulator: true }, ${UPSTREAM}: { url: "http://127.0.0.1:9/${'path/'.repeat(20)}" }`)
    .replace('routes: [', `routes: [{ model: ["${MODEL}", lost], to: ${UPSTREAM}, retries: 0 }, `)
    .replace('keys: [', `keys: [{ name: ${TEAM}, key: sk-long-0123456789abcdef, owner: ${OWNER}, models: ["${MODEL}", "demo*"] }, `))
  await writeRows(join(dirname(gateway.file), 'data/ledger.db'), [
    row('long', { startedAt: Date.now() - 60_000, key: TEAM, owner: OWNER, model: MODEL, upstream: 'sim' }),
  ])
  for (let n = 0; n < 4; n++) await chat(gateway, KEY, 'lost')
  const open = (t: Test, width: 1280 | 390) => visit(t, browser, {
    origin: gateway.console, as: { name: 'ops', password: PASSWORD }, look: { scheme: 'light', width },
  })

  for (const width of [1280, 390] as const) {
    await t.test(`long names and times are readable, ${width} px`, async t => {
      const { page } = await open(t, width)
      for (const path of PAGES) {
        await go(page, path)
        t.equal(await overflow(page), 0, `${path} is not wider than the screen`)
        t.strictSame(await page.evaluate(CUT_OFF), [], `${path}: a text that is cut off is complete in a tooltip`)
        t.strictSame(await page.evaluate(WITHOUT_ZONE), [], `${path}: times have a zone`)
      }
    })
  }

  await t.test('a printed statement shows long names in full', async t => {
    const { page } = await open(t, 1280)
    await go(page, `/statement?key=${TEAM}`)
    await page.emulateMedia({ media: 'print' })
    t.equal(await isWhole(page, MODEL), true)
  })

  await t.test('an upstream without requests has no share of errors', async t => {
    const { page } = await open(t, 1280)
    await page.clock.setFixedTime(Date.now() - 40 * 86_400_000)
    await go(page, '/upstreams?range=yesterday')
    const cells = await page.getByRole('row').filter({ hasText: /^sim/ }).locator('td').allInnerTexts()
    t.strictSame(cells.slice(2, 4), ['0', '–'])
  })
})

/** Is the element with this text completely visible? */
function isWhole(page: Page, text: string): Promise<boolean> {
  return page.evaluate<boolean>(`[...document.querySelectorAll('article *')]
    .filter(each => each.textContent === ${JSON.stringify(text)}).every(({ scrollWidth, clientWidth }) => scrollWidth <= clientWidth)`)
}

/** Texts with a hidden part and no tooltip, and elements that scroll neither by touch nor by keyboard. */
const CUT_OFF = `[...document.querySelectorAll('main *')].filter(each => {
  const { overflowX, clipPath } = getComputedStyle(each)
  return each.scrollWidth > each.clientWidth + 1 && each.clientWidth > 0 && clipPath === 'none'
    && ['hidden', 'clip'].includes(overflowX) && each.matches(':not(input, textarea)')
    && each.checkVisibility() && getComputedStyle(each.closest('thead') ?? each).clipPath === 'none' && !each.closest('[title]') && !each.querySelector('[title]') && each.textContent !== ''
}).map(each => each.className + ': ' + each.textContent.slice(0, 60))`

/** Times without UTC in the text, in the title of the column, or in the title of the fact. */
const WITHOUT_ZONE = String.raw`[...document.querySelectorAll('main time, main td, main th, main dd, main small')].filter(each => {
  if (!/\d{4}-\d\d-\d\d \d\d:\d\d/.test(each.textContent) || each.querySelector('time, dd, small')) return false
  const cell = each.closest('td, th')
  const title = cell ? cell.closest('table').tHead.rows[0].cells[cell.cellIndex].textContent : each.closest('div')?.querySelector('dt')?.textContent
  return !/UTC|GMT/.test(each.parentElement.textContent + each.textContent + title)
}).map(each => each.textContent)`
