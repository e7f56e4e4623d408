import t from 'tap'
import { go, openBrowser, visit, walk } from './browser.ts'
import { ADMIN, KEYS } from './people.ts'
import { startScene } from './scene.ts'

t.test('story', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const { origin, requests } = await startScene(t)
  const tell = async (id: string, as: Parameters<typeof visit>[2]['as'] = ADMIN) => {
    const { page } = await visit(t, browser, { origin, as })
    await go(page, `/logs/${id}`)
    await page.getByRole('heading', { name: 'Timeline' }).waitFor()
    return page
  }
  const headline = (words: RegExp) => ({ hasText: words })

  await walk(t, browser, { origin, as: ADMIN, path: `/logs/${requests.continued}`, shot: 'story' }, page =>
    page.getByRole('heading', { name: 'Timeline' }).waitFor())

  await t.test('one that was answered: its cost adds up', async t => {
    const page = await tell(requests.answered)
    await page.locator('p', headline(/^It was answered in full after .+ It cost \$/)).waitFor()
    const bill = page.getByRole('table', { name: 'The arithmetic of the cost, USD' })
    t.match(await bill.innerText(), /1,200 × \$0\.125 \/ 1,000,000/, 'what the cache gave has its own price')
    // 3,000 x 1.25 + 1,200 x 0.125 + 180 x 10 millionths
    t.equal(await bill.locator('tfoot td').innerText(), '$0.0057')
  })

  await t.test('one that failed: who failed, and what to do', async t => {
    const page = await tell(requests.failed)
    await page.locator('p', headline(/^It failed with 503 after .+ It cost nothing\.$/)).waitFor()
    await page.getByText('The upstream answered with an error of its own').first().waitFor()
    await page.getByText('its text says what to change').waitFor()
    t.equal(await page.getByText('503 Error').count(), 1)
  })

  await t.test('one that was rescued: each attempt with its outcome', async t => {
    const page = await tell(requests.rescued)
    const text = await page.getByRole('table', { name: /^What happened/ }).innerText()
    t.match(text, /openai, gpt-5\.1\s+Answered\s+HTTP 200/)
    t.match(await page.locator('section',
      { has: page.getByRole('heading', { name: 'Why this route' }) }).innerText(), 'gpt-5.1-eu')
    await page.getByRole('link', { name: 'Explain where such a request goes now' }).click()
    await page.getByText('Target 2 of 2').waitFor()
    t.match(page.url(), /\/routes\?path=%2Fv1%2Fchat%2Fcompletions&model=gpt-5\.1-eu&key=research$/)
  })

  await t.test('one that was continued: two attempts, each with its share of the cost', async t => {
    const page = await tell(requests.continued)
    await page.locator('p', headline(/put together from 2 attempts\. It cost \$/)).waitFor()
    const text = await page.getByRole('table', { name: /^What happened/ }).innerText()
    t.match(text, /Attempt 1[^]+upstream_cut[^]+Attempt 2[^]+Answered/)
    const bill = page.getByRole('table', { name: 'The arithmetic of the cost, USD' })
    t.match(await bill.innerText(), /attempt 1, openai[^]+attempt 2, anthropic/)
  })

  await t.test('one whose client left: that is nobody’s failure, and what was generated is billed',
    async t => {
    const page = await tell(requests.gone)
    const line = page.locator('p', headline(/^The client closed its connection after /))
    t.match(await line.innerText(), /What was generated until then cost \$.+ as the gateway estimates\.$/)
    t.equal(await page.getByText('200 Client left').count(), 1)
  })

  await t.test('one that is still running goes on by itself', async () => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/')
    await page.getByRole('heading', { name: 'Running now' }).waitFor()
    await page.locator('main a[href*="/logs/"]').first().click()
    const line = page.locator('p', headline(/^It is still running, for /))
    const before = await line.innerText()
    await page.getByText(before).waitFor({ state: 'detached' })
    await line.waitFor()
  })

  await t.test('an id of a proxy’s own is looked for as it is', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/logs')
    const asked = page.waitForRequest(/\/api\/logs\/proxy/)
    const field = page.getByRole('textbox', { name: 'Request id' })
    await field.fill('proxy:7f3a.1')
    await field.press('Enter')
    t.match((await asked).url(), /\/api\/logs\/proxy%3A7f3a\.1$/)
    await page.getByText('proxy:7f3a.1').waitFor()
  })

  await t.test('its key’s holder is told no upstream', async t => {
    const page = await tell(requests.continued, { key: KEYS.research })
    t.notMatch(await page.locator('main').innerText(), /openai|anthropic|claude-sonnet|cut_after|routes\[/)
    await page.getByText('put together from 2 attempts').waitFor()
  })
})
