import t from 'tap'
import { go, openBrowser, visit, walk } from './browser.ts'
import { ADMIN, KEYS } from './scene/people.ts'
import { startScene } from './scene/scene.ts'

t.test('request details', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const { origin, requests } = await startScene(t)
  const open = async (id: string, as: Parameters<typeof visit>[2]['as'] = ADMIN) => {
    const { page } = await visit(t, browser, { origin, as })
    await go(page, `/logs/${id}`)
    await page.getByRole('heading', { name: 'Timeline' }).waitFor()
    return page
  }
  const headline = (words: RegExp) => ({ hasText: words })

  await walk(t, browser, { origin, as: ADMIN, path: `/logs/${requests.continued}`, shot: 'request' }, page =>
    page.getByRole('heading', { name: 'Timeline' }).waitFor())

  await t.test('a completed request: the parts of the cost add up to the total', async t => {
    const page = await open(requests.answered)
    await page.locator('p', headline(/^Completed in .+ Cost: \$/)).waitFor()
    const costs = page.getByRole('table', { name: 'Cost breakdown, USD' })
    t.match(await costs.innerText(), /1,200 × \$0\.125 \/ 1,000,000/, 'cached tokens have their own price')
    // 3,000 x 1.25 + 1,200 x 0.125 + 180 x 10 millionths
    t.equal(await costs.locator('tfoot td').innerText(), '$0.0057')
  })

  await t.test('a failed request: the page shows cause and advice', async t => {
    const page = await open(requests.failed)
    await page.locator('p', headline(/^Failed with 503 after .+ Not billed\.$/)).waitFor()
    await page.getByText('The upstream responded with an error').first().waitFor()
    await page.getByText('Its message says what to change').waitFor()
    t.equal(await page.getByText('503 Error').count(), 1)
  })

  await t.test('a request after failover: each attempt has its outcome', async t => {
    const page = await open(requests.rescued)
    const text = await page.getByRole('table', { name: /^Timeline/ }).innerText()
    t.match(text, /openai, gpt-5\.1\s+OK\s+HTTP 200/)
    t.match(await page.locator('section',
      { has: page.getByRole('heading', { name: 'Route', exact: true }) }).innerText(), 'gpt-5.1-eu')
    await page.getByRole('link', { name: 'Explain how such a request is routed now' }).click()
    await page.getByText('Target 2 of 2').waitFor()
    t.match(page.url(), /\/routes\?path=%2Fv1%2Fchat%2Fcompletions&model=gpt-5\.1-eu&key=research$/)
  })

  await t.test('a continued request: each attempt has its own cost', async t => {
    const page = await open(requests.continued)
    await page.locator('p', headline(/combined from 2 attempts\. Cost: \$/)).waitFor()
    const text = await page.getByRole('table', { name: /^Timeline/ }).innerText()
    t.match(text, /Attempt 1[^]+upstream_cut[^]+Attempt 2[^]+OK/)
    const costs = page.getByRole('table', { name: 'Cost breakdown, USD' })
    t.match(await costs.innerText(), /attempt 1, openai[^]+attempt 2, anthropic/)
  })

  await t.test('a request whose client disconnected: the partial response is billed',
    async t => {
    const page = await open(requests.gone)
    const line = page.locator('p', headline(/^The client disconnected after /))
    t.match(await line.innerText(), /Cost until then: \$.+ \(estimated\)\.$/)
    t.equal(await page.getByText('200 Client disconnected').count(), 1)
  })

  await t.test('a running request updates without a reload', async () => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/')
    await page.getByRole('heading', { name: 'Running now' }).waitFor()
    await page.locator('main a[href*="/logs/"]').first().click()
    const line = page.locator('p', headline(/^Running for /))
    const before = await line.innerText()
    await page.getByText(before).waitFor({ state: 'detached' })
    await line.waitFor()
  })

  await t.test('a request ID that a proxy assigned can be looked up', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/logs')
    const request = page.waitForRequest(/\/api\/logs\/proxy/)
    const field = page.getByRole('textbox', { name: 'Request ID' })
    await field.fill('proxy:7f3a.1')
    await field.press('Enter')
    t.match((await request).url(), /\/api\/logs\/proxy%3A7f3a\.1$/)
    await page.getByText('proxy:7f3a.1').waitFor()
  })

  await t.test('a key holder sees no upstream', async t => {
    const page = await open(requests.continued, { key: KEYS.research })
    t.notMatch(await page.locator('main').innerText(), /openai|anthropic|claude-sonnet|cut_after|routes\[/)
    await page.getByText('combined from 2 attempts').waitFor()
  })
})
