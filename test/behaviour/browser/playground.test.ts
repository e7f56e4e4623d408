import t from 'tap'
import { barriers, go, openBrowser, overflow, visit, walk } from './browser.ts'
import type { Page } from './browser.ts'
import { ADMIN, KEYS, VIEWER } from './people.ts'
import { startScene } from './scene.ts'

t.test('playground', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const { origin, base } = await startScene(t)
  const open = async (path: string, as: Parameters<typeof visit>[2]['as'] = ADMIN) => {
    const { page } = await visit(t, browser, { origin, as })
    await go(page, path)
    return page
  }

  await walk(t, browser, { origin, as: ADMIN, path: '/playground?model=gpt-5.1', shot: 'playground' },
    async page => {
    await send(page)
    await page.getByTestId('cost').waitFor()
  })

  await t.test('text appears as it arrives, and Stop stops it', async t => {
    const page = await open('/playground?model=gpt-5.1,pace=50ms,tokens=2000')
    await send(page)
    await page.getByTestId('response').getByText('w1 w2').waitFor()
    await page.getByText('200 Receiving').waitFor()
    await page.getByRole('button', { name: 'Stop' }).click()
    await page.getByText('200 Stopped').waitFor()
    await page.getByTestId('cost').waitFor()
    await page.getByRole('link', { name: 'Details' }).click()
    await page.getByText('The client disconnected').first().waitFor()
    t.match(page.url(), /\/logs\/[0-9a-f-]{36}$/)
  })

  for (const width of [1280, 390] as const) {
    await t.test(`two models are compared side by side, ${width}`, async t => {
      const { page, faults } = await visit(t, browser, { origin, as: ADMIN, look: { scheme: 'dark', width } })
      await go(page, '/playground?model=gpt-5.1')
      await page.getByRole('combobox', { name: 'Compare with' }).fill('claude-sonnet-4.5')
      await page.keyboard.press('Escape')
      await send(page)
      for (const name of ['gpt-5.1', 'claude-sonnet-4.5']) {
        await page.getByRole('region', { name, exact: true }).getByTestId('cost').waitFor()
      }
      t.strictSame(await barriers(page), [])
      t.equal(await overflow(page), 0)
      t.strictSame(faults, [])
    })
  }

  await t.test('an error is shown as the client gets it', async t => {
    const page = await open('/playground?model=gpt-5.1')
    await page.getByRole('combobox', { name: 'Model' }).fill('no-such-model')
    await page.keyboard.press('Escape')
    await send(page)
    await page.getByText('404 Failed').waitFor()
    t.match(await page.getByRole('region', { name: 'Error response' }).innerText(), /"code": "model_not_found"/)
  })

  await t.test('an interrupted stream has failed', async () => {
    const page = await open('/playground?model=gpt-5.1,cut_after=4')
    await send(page)
    await page.getByText('200 Failed').waitFor()
    await page.getByRole('alert').waitFor()
  })

  await t.test('a key holder sends with the own key and its permissions', async () => {
    const page = await open('/playground?model=gemini-3-pro', { key: KEYS['web-app'] })
    await send(page)
    await page.getByText('403 Failed').waitFor()
  })

  await t.test('a viewer cannot send', async t => {
    const page = await open('/playground?model=gpt-5.1', VIEWER)
    t.ok(await page.getByRole('button', { name: 'Send' }).isDisabled())
  })

  await t.test('the code sends the same request', async t => {
    const page = await open('/playground?model=gpt-5.1')
    await page.getByLabel('Base URL').fill(base)
    const code = await page.getByRole('region', { name: 'curl code' }).innerText()
    const [, body = ''] = /-d '([^]+)'$/.exec(code.trim()) ?? []
    const [, url = ''] = /'(http[^']+)'/.exec(code) ?? []
    const response = await fetch(url, {
      method: 'POST', body,
        headers: { authorization: `Bearer ${KEYS.research}`, 'content-type': 'application/json' },
    })
    t.equal(response.status, 200)
    t.match(await response.text(), /\[DONE\]/)
    for (const language of ['JavaScript', 'Python']) {
      await page.getByRole('tab', { name: language }).click()
      t.match(await page.getByRole('region', { name: `${language} code` }).innerText(), `${base}/v1`)
    }
  })
})

async function send(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Send' }).click()
}
