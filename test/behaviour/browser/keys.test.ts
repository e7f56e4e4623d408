import t from 'tap'
import { barriers, go, openBrowser, overflow, shoot, visit, walk } from './browser.ts'
import type { Page } from './browser.ts'
import { ADMIN, KEYS, VIEWER } from './people.ts'
import { startScene } from './scene.ts'

t.test('keys', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const { origin, base } = await startScene(t)
  const statusWith = async (key: string, model: string) => {
    const response = await fetch(`${base}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hello' }] }),
    })
    await response.arrayBuffer()
    return response.status
  }

  await walk(t, browser, { origin, as: ADMIN, path: '/keys', shot: 'keys' },
    page => page.getByText('web-app').first().waitFor())
  await walk(t, browser, { origin, as: ADMIN, path: '/audit' },
    page => page.getByText('Logged in').first().waitFor())

  await t.test('a key is made, works, is limited, is revoked, and works no more', async t => {
    const { page, faults } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/keys')
    const key = await make(page, 'laptop of Zoë <b>', 'gpt-*')
    t.match(key, /^mgw_/)
    t.equal(await statusWith(key, 'gpt-5.1'), 200)
    t.equal(await statusWith(key, 'claude-sonnet-4.5'), 403, 'a model that it may not use')

    const row = page.locator('tbody tr', { hasText: 'laptop of Zoë <b>' })
    await act(page, 'laptop of Zoë <b>', 'Change models and limits')
    await page.getByRole('textbox', { name: 'Requests a minute' }).fill('1')
    await page.getByRole('button', { name: 'Save' }).click()
    await row.getByText('1 request a minute').waitFor()
    await statusWith(key, 'gpt-5.1')
    t.equal(await statusWith(key, 'gpt-5.1'), 429, 'the limit holds from now on')

    await act(page, 'laptop of Zoë <b>', 'Revoke')
    await page.getByText('This cannot be undone').waitFor()
    t.strictSame(await barriers(page), [])
    await page.getByRole('button', { name: 'Revoke this key' }).click()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await row.waitFor({ state: 'detached' })
    t.equal(await statusWith(key, 'gpt-5.1'), 401)
    await page.getByRole('switch', { name: 'Revoked too (1)' }).click()
    await row.getByText('Revoked').waitFor()

    await go(page, '/audit')
    const audit = await page.getByRole('table').innerText()
    for (const action of ['Key created', 'Key changed', 'Key revoked']) t.match(audit, action)
    t.notMatch(audit, key)
    t.strictSame(faults, [])
  })

  await t.test('a new key has to be kept before its dialog closes, and is not told again', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN, look: { scheme: 'dark', width: 390 } })
    await go(page, '/keys')
    await fill(page, 'another', null)
    const shown = page.getByTestId('new-key')
    await shown.waitFor()
    t.strictSame(await barriers(page), [])
    t.equal(await overflow(page), 0)
    await shoot(page, 'key-made')
    const key = await shown.innerText()
    await page.keyboard.press('Escape')
    t.ok(await shown.isVisible())
    t.ok(await page.getByRole('button', { name: 'Done' }).isDisabled())
    await page.getByRole('checkbox').check()
    await page.getByRole('button', { name: 'Done' }).click()
    await shown.waitFor({ state: 'detached' })
    await page.reload()
    await page.getByText('another').waitFor()
    t.notMatch(await page.content(), key)
  })

  await t.test('a key of gateway.yaml is blocked and let in again', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/keys')
    await act(page, 'support-bot', 'Block')
    await page.getByRole('button', { name: 'Block this key' }).click()
    const row = page.locator('tbody tr', { hasText: 'support-bot' })
    await row.getByText('Blocked').waitFor()
    t.equal(await statusWith(KEYS['support-bot'], 'gpt-5-mini'), 401)
    await act(page, 'support-bot', 'Unblock')
    await page.getByRole('button', { name: 'Unblock this key' }).click()
    await row.getByText('Live').waitFor()
    t.equal(await statusWith(KEYS['support-bot'], 'gpt-5-mini'), 200)
  })

  await t.test('a key that leaked is found by itself, and cut off', async t => {
    const { page, faults } = await visit(t, browser, {
      origin, as: ADMIN, look: { scheme: 'dark', width: 390 },
    })
    await go(page, '/keys')
    await page.getByRole('button', { name: 'Whose key is this?' }).click()
    await page.getByLabel('The key', { exact: true }).fill('sk-of-somebody-else')
    await page.keyboard.press('Enter')
    await page.getByText('It is no key of this gateway').waitFor()
    await page.getByLabel('The key', { exact: true }).fill(` ${KEYS['batch-nightly']} `)
    await page.keyboard.press('Enter')
    await page.getByText('It is the key batch-nightly, and it is let in.').waitFor()
    t.strictSame(await barriers(page), [])
    await page.getByRole('button', { name: 'Cut it off …' }).click()
    await page.getByRole('button', { name: 'Block this key' }).click()
    await page.locator('tbody tr', { hasText: 'batch-nightly' }).getByText('Blocked').waitFor()
    t.equal(await statusWith(KEYS['batch-nightly'], 'gpt-5-mini'), 401)
    t.strictSame(faults, [])
  })

  await t.test('what is wrong in the form is said beside it', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/keys')
    await page.getByRole('button', { name: 'New key' }).click()
    await page.getByRole('textbox', { name: 'Budget, USD' }).fill('much')
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.getByText('A name has 1 to 128 characters.').waitFor()
    await page.getByText('An amount of USD, such as 50 or 0.25.').waitFor()
    t.strictSame(await barriers(page), [])
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('web-app')
    await page.getByRole('textbox', { name: 'Budget, USD' }).fill('0.5')
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.getByText('gateway.yaml has a key of that name').waitFor()
  })

  await t.test('a viewer looks and changes nothing', async t => {
    const { page } = await visit(t, browser, { origin, as: VIEWER })
    await go(page, '/keys')
    await page.getByText('web-app').first().waitFor()
    t.equal(await page.getByRole('button', { name: 'New key' }).count(), 0)
    await page.getByRole('button', { name: 'Actions for web-app' }).click()
    await page.getByRole('menuitem', { name: 'Its requests' }).waitFor()
    t.equal(await page.getByRole('menuitem', { name: 'Block' }).count(), 0)
  })
})

async function fill(page: Page, name: string, models: string | null): Promise<void> {
  await page.getByRole('button', { name: 'New key' }).click()
  await page.getByRole('textbox', { name: 'Name', exact: true }).fill(name)
  if (models !== null) {
    await page.getByRole('combobox', { name: 'Models' }).fill(models)
    await page.keyboard.press('Enter')
  }
  await page.getByRole('button', { name: 'Create key' }).click()
}

/** @returns the key */
async function make(page: Page, name: string, models: string): Promise<string> {
  await fill(page, name, models)
  const key = await page.getByTestId('new-key').innerText()
  await page.getByRole('checkbox', { name: /find it again/ }).check()
  await page.getByRole('button', { name: 'Done' }).click()
  return key
}

async function act(page: Page, name: string, deed: string): Promise<void> {
  await page.getByRole('button', { name: `Actions for ${name}` }).click()
  await page.getByRole('menuitem', { name: deed, exact: true }).click()
}
