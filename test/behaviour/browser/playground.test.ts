import t from 'tap'
import { barriers, go, openBrowser, overflow, visit, walk } from './browser.ts'
import type { Page } from './browser.ts'
import { ADMIN, KEYS, VIEWER } from './scene/people.ts'
import { startScene } from './scene/scene.ts'

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

  await t.test('text appears while the response streams, and the button Stop ends the request', async t => {
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
    await t.test(`two models are compared side by side, ${width} px`, async t => {
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

  for (const width of [1280, 390] as const) {
    await t.test(`a request can have images, tools and parameters, ${width} px`, async t => {
      const { page, faults } = await visit(t, browser, { origin, as: ADMIN, look: { scheme: 'light', width } })
      await go(page, '/playground?model=gpt-5.1,tool_call')
      const more = page.getByText('Images, tools and more parameters')
      await more.focus()
      await page.keyboard.press('Enter')
      const files = page.getByLabel('Image files')
      await files.setInputFiles([
        { name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('no image') },
        { name: 'large.png', mimeType: 'image/png', buffer: Buffer.alloc(4 * 1024 * 1024 + 1) },
        { name: 'pixel.png', mimeType: 'image/png', buffer: PIXEL },
      ])
      await page.getByText('notes.txt is not a PNG, JPEG, GIF or WebP image. large.png is larger than').waitFor()
      t.equal(await page.getByRole('list', { name: 'Images' }).getByRole('listitem').count(), 1)
      await page.getByLabel('System prompt').fill('Be brief.')
      await page.getByLabel('Temperature').fill('0.5')
      await page.getByLabel('Top p').fill('0.9')
      await page.getByLabel('Stop sequences').fill('END')
      await page.getByLabel('Tools').fill('[{')
      await send(page)
      await page.getByText(/JSON/).first().waitFor()
      await page.getByLabel('Tools').fill(JSON.stringify([{ name: 'weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } }]))
      const posted = page.waitForRequest(request => request.url().includes('/playground/v1/'))
      await send(page)
      t.match((await posted).postDataJSON(), {
        messages: [{ role: 'system', content: 'Be brief.' }, { role: 'user', content: [{ type: 'text' }, { type: 'image_url' }] }],
        temperature: 0.5, top_p: 0.9, stop: ['END'], tools: [{ type: 'function', function: { name: 'weather' } }],
      })
      const call = page.getByRole('list', { name: 'Tool calls' }).getByRole('listitem')
      await call.filter({ hasText: 'weather' }).waitFor()
      t.match(await call.getByRole('region').innerText(), '"city"')
      await page.getByTestId('cost').waitFor()
      t.strictSame(await barriers(page), [])
      t.equal(await overflow(page), 0)
      t.strictSame(faults, [])
      await page.getByRole('button', { name: 'Remove pixel.png' }).click()
      t.equal(await page.getByRole('list', { name: 'Images' }).count(), 0)
    })
  }

  await t.test('an error is shown with the status and body that a client gets', async t => {
    const page = await open('/playground?model=gpt-5.1')
    await page.getByRole('combobox', { name: 'Model' }).fill('no-such-model')
    await page.keyboard.press('Escape')
    await send(page)
    await page.getByText('404 Failed').waitFor()
    t.match(await page.getByRole('region', { name: 'Error response' }).innerText(), /"code": "model_not_found"/)
  })

  await t.test('an interrupted stream is shown as failed', async () => {
    const page = await open('/playground?model=gpt-5.1,cut_after=4')
    await send(page)
    await page.getByText('200 Failed').waitFor()
    await page.getByRole('alert').waitFor()
  })

  await t.test('a request of a key holder has the permissions of the own key', async () => {
    const page = await open('/playground?model=gemini-3-pro', { key: KEYS['web-app'] })
    await send(page)
    await page.getByText('403 Failed').waitFor()
  })

  await t.test('a viewer cannot send requests', async t => {
    const page = await open('/playground?model=gpt-5.1', VIEWER)
    t.ok(await page.getByRole('button', { name: 'Send' }).isDisabled())
  })

  await t.test('the curl code on the page can be run, and the code in each language has the base URL', async t => {
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

const PIXEL = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII=', 'base64')

async function send(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Send' }).click()
}
