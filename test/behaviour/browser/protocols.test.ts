import t from 'tap'
import { go, openBrowser, visit } from './browser.ts'
import { ADMIN } from './scene/people.ts'
import { startScene } from './scene/scene.ts'

t.test('the playground supports every protocol', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const { origin } = await startScene(t)

  for (const protocol of ['Chat completions', 'Responses', 'Messages', 'Generate content']) {
    await t.test(`${protocol}: response, events and cost are shown`, async t => {
      const { page, faults } = await visit(t, browser, { origin, as: ADMIN })
      await go(page, '/playground?model=gpt-5.1')
      await page.getByLabel('Protocol').selectOption(protocol)
      await page.getByRole('button', { name: 'Send' }).click()
      t.match(await page.getByTestId('cost').innerText(), /^\$0\.\d+$/)
      t.match(await page.getByTestId('response').innerText(), /^w1 w2 .+ w16$/)
      t.equal(await page.getByText('200 Complete').count(), 1)
      await page.getByRole('tab', { name: /^Events/ }).click()
      t.match(await page.getByRole('region', { name: 'Raw response' }).innerText(), /data: \{/)

      await page.getByRole('switch', { name: 'Stream' }).click()
      await page.getByRole('button', { name: 'Send' }).click()
      await page.getByRole('tab', { name: 'Raw' }).waitFor()
      await page.getByText('200 Complete').waitFor()
      await page.getByRole('tab', { name: 'Response' }).click()
      t.match(await page.getByTestId('response').innerText(), /w16$/)
      t.strictSame(faults, [])
    })
  }
})
