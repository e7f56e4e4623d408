import t from 'tap'
import { go, openBrowser, visit } from './browser.ts'
import { ADMIN } from './people.ts'
import { startScene } from './scene.ts'

t.test('the playground speaks every protocol', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const { origin } = await startScene(t)

  for (const protocol of ['Chat completions', 'Responses', 'Messages', 'Generate content']) {
    await t.test(`${protocol}: the answer, what it used and what it cost`, async t => {
      const { page, faults } = await visit(t, browser, { origin, as: ADMIN })
      await go(page, '/playground?model=gpt-5.1')
      await page.getByLabel('Protocol').selectOption(protocol)
      await page.getByRole('button', { name: 'Send' }).click()
      t.match(await page.getByTestId('cost').innerText(), /^\$0\.\d+$/)
      t.match(await page.getByTestId('answer').innerText(), /^w1 w2 .+ w16$/)
      t.equal(await page.getByText('200 Complete').count(), 1)
      await page.getByRole('tab', { name: /^Events/ }).click()
      t.match(await page.getByRole('region', { name: 'As it came' }).innerText(), /data: \{/)

      await page.getByRole('switch', { name: 'Stream' }).click()
      await page.getByRole('button', { name: 'Send' }).click()
      await page.getByRole('tab', { name: 'As it came' }).waitFor()
      await page.getByText('200 Complete').waitFor()
      await page.getByRole('tab', { name: 'Answer' }).click()
      t.match(await page.getByTestId('answer').innerText(), /w16$/)
      t.strictSame(faults, [])
    })
  }
})
