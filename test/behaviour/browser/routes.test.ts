import { readFileSync } from 'node:fs'
import t from 'tap'
import { go, openBrowser, visit, walk } from './browser.ts'
import { ADMIN, KEYS, VIEWER } from './scene/people.ts'
import { startScene } from './scene/scene.ts'

t.test('models and routes', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const { origin, file } = await startScene(t)
  const open = async (path: string, as: Parameters<typeof visit>[2]['as'] = ADMIN) => {
    const { page } = await visit(t, browser, { origin, as })
    await go(page, path)
    return page
  }

  await walk(t, browser, { origin, as: ADMIN, path: '/models', shot: 'models' },
    page => page.getByText('claude-sonnet-4.5').first().waitFor())
  await walk(t, browser, {
    origin, as: VIEWER, path: '/routes?path=/v1/chat/completions&model=gpt-5.1-eu', shot: 'routes',
  }, page => page.getByText('Target 2 of 2').waitFor())

  await t.test('the page shows the price of each target, and which price is billed', async t => {
    const page = await open('/models')
    const row = page.getByRole('row').filter({ has: page.getByRole('rowheader', { name: /^steady/ }) })
    const targets = await row.getByRole('listitem').allInnerTexts()
    t.equal(targets.length, 2)
    t.match(targets[0], /openai[^]*input[^]*\$1\.25[^]*output[^]*\$10\.00/)
    t.match(targets[1], /anthropic[^]*claude-sonnet-4\.5[^]*input[^]*\$3\.00[^]*output[^]*\$15\.00/)
    t.match(await row.innerText(), 'billed at the price of the target that serves it')
    t.match(await row.innerText(), /\+ 1 more target/)
  })

  await t.test('the page explains which route matches, and why the other routes do not', async t => {
    const page = await open('/routes')
    await page.getByRole('combobox', { name: 'Path' }).fill('/v1/messages')
    await page.getByRole('combobox', { name: 'Model' }).fill('claude-sonnet-4.5')
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Explain' }).click()
    await page.waitForURL(/path=%2Fv1%2Fmessages&model=claude-sonnet-4\.5/)
    const steps =
      page.locator('section', { hasText: 'Explain a request' }).locator('ol').first().locator('li')
    await steps.filter({ hasText: /\bmatches\b/ }).waitFor()
    const texts = await steps.allInnerTexts()
    t.match(texts[0], /routes\[0\].*models do not match/)
    t.match(texts.at(-1), /routes\[3\].*matches/)
    t.match(await page.locator('tbody tr', { hasText: 'matches' }).innerText(), 'claude-*')
  })

  await t.test('the page explains why a key may not use a model', async () => {
    const page = await open('/routes?path=/v1/chat/completions&model=gemini-3-pro&key=web-app')
    await page.getByText('403 model_not_allowed').waitFor()
  })

  await t.test('no secret reaches the browser', async t => {
    const page = await open('/configuration')
    const text = await page.getByRole('region', { name: /^Contents of/ }).innerText()
    t.match(text, 'budget: { usd: 400, per: month }', 'other values are shown')
    const answers =
      [await page.content(), ...await Promise.all(['configuration', 'keys', 'routes'].map(async name =>
      (await page.request.get(`/console/api/${name}`)).text()))]
    const hash = /password: "([^"]+)"/.exec(readFileSync(file, 'utf8'))?.[1] ?? ''
    for (const secret of [...Object.values(KEYS), hash]) {
      t.ok(secret.length > 8)
      t.notOk(answers.some(answer => answer.includes(secret)))
    }
  })

  await t.test('the page shows the models that a glob matches, and links to the line of each route', async t => {
    const page = await open('/routes')
    const row = page.getByRole('row').filter({ hasText: 'gpt-*' })
    await row.getByText('gpt-5-mini').first().waitFor()
    t.match(await row.innerText(), /serves\s+gpt-5-mini\s+gpt-5.1/)
    await row.getByRole('link', { name: /^line \d+/ }).click()
    await page.locator('[aria-current=location]').filter({ hasText: 'model: ["gpt-*"' }).waitFor()
  })

  await t.test('a key holder sees the allowed models without targets', async t => {
    const page = await open('/models', { key: KEYS['web-app'] })
    await page.getByText('gpt-5-mini').first().waitFor()
    const text = await page.locator('main').innerText()
    t.notMatch(text, /gemini-3-pro|openai|anthropic/)
    await go(page, '/routes')
    await page.getByRole('heading', { name: 'Page not found', level: 1 }).waitFor()
  })
})
