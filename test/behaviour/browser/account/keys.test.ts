import t from 'tap'
import { barriers, go, openBrowser, overflow, shoot, visit, walk } from '../browser.ts'
import type { Page } from '../browser.ts'
import { ADMIN, KEYS, VIEWER } from '../scene/people.ts'
import { startScene } from '../scene/scene.ts'

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

  await t.test('a key is created, used, limited and revoked', async t => {
    const { page, faults } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/keys')
    const key = await create(page, 'laptop of Zoë <b>', 'gpt-*')
    t.match(key, /^mgw_/)
    t.equal(await statusWith(key, 'gpt-5.1'), 200)
    t.equal(await statusWith(key, 'claude-sonnet-4.5'), 403, 'a model that the key may not use')

    const row = page.locator('tbody tr', { hasText: 'laptop of Zoë <b>' })
    await act(page, 'laptop of Zoë <b>', 'Change')
    await page.getByRole('textbox', { name: 'Requests per minute' }).fill('1')
    await page.getByRole('textbox', { name: 'Owner' }).fill('Zoë')
    await page.getByLabel('Expires (UTC)').fill('2099-12-31')
    await page.getByRole('button', { name: 'Save' }).click()
    await row.getByText('1 request per minute').waitFor()
    await row.getByText('expires 2099-12-31').waitFor()
    await page.getByText('Key laptop of Zoë <b> is changed: limits, owner, expiry.').waitFor()
    await statusWith(key, 'gpt-5.1')
    t.equal(await statusWith(key, 'gpt-5.1'), 429, 'the limit applies')

    await act(page, 'laptop of Zoë <b>', 'Revoke')
    await page.getByText('This cannot be undone').waitFor()
    t.strictSame(await barriers(page), [])
    await page.getByRole('button', { name: 'Revoke key' }).click()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await row.waitFor({ state: 'detached' })
    t.equal(await statusWith(key, 'gpt-5.1'), 401)
    await page.getByRole('switch', { name: 'Show revoked (1)' }).click()
    await row.getByText('Revoked').waitFor()

    await go(page, '/audit')
    const audit = await page.getByRole('table').innerText()
    for (const action of ['Key created', 'Key changed', 'Key revoked']) t.match(audit, action)
    t.notMatch(audit, key)
    t.strictSame(faults, [])
  })

  await t.test('a new key is shown once, until the user confirms that it is saved', async t => {
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

  await t.test('a key is rotated without an outage, by keyboard', async t => {
    const { page, faults } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/keys')
    const old = await create(page, 'rotated', 'gpt-*')
    await page.getByText('Key rotated is created and active.').waitFor()
    await page.getByRole('button', { name: 'Rotate rotated' }).press('Enter')
    await page.getByRole('combobox', { name: 'Old key stays valid for' }).waitFor()
    t.strictSame(await barriers(page), [])
    await page.getByRole('button', { name: 'Rotate key' }).press('Enter')
    const fresh = await page.getByTestId('new-key').innerText()
    t.equal(await focused(page), 'Copy')
    t.equal(await statusWith(old, 'gpt-5.1'), 200)
    t.equal(await statusWith(fresh, 'gpt-5.1'), 200)
    await page.getByRole('checkbox', { name: 'I have saved the key' }).press('Space')
    await page.getByRole('button', { name: 'Done' }).press('Enter')
    await page.getByText('Key rotated is rotated. The old key stays valid for 24 hours.').waitFor()
    await page.locator('tbody tr', { hasText: 'old key valid until' }).getByText('rotated').waitFor()
    t.equal(await focused(page), 'Rotate rotated')
    t.notMatch(await page.content(), fresh)
    t.strictSame(faults, [])
  })

  await t.test('a dialog keeps the focus while it is open, and restores the focus when it closes', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/keys')
    await page.getByRole('button', { name: 'New key' }).press('Enter')
    await page.getByRole('textbox', { name: 'Name', exact: true }).waitFor()
    const isInside = () => page.evaluate<boolean>(`document.querySelector('[role="dialog"]').contains(document.activeElement)`)
    for (let n = 0; n < 25; n++) {
      await page.keyboard.press(n < 5 ? 'Shift+Tab' : 'Tab')
      t.ok(await isInside())
    }
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    t.equal(await focused(page), 'New key')
    await page.getByRole('button', { name: 'Actions for web-app' }).press('Enter')
    await page.getByRole('menuitem', { name: 'Block' }).press('Enter')
    await page.getByRole('button', { name: 'Cancel' }).press('Enter')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    t.equal(await focused(page), 'Actions for web-app')
    await page.route('**/console/api/keys/*', route => route.fulfill({ status: 503, json: { code: 'unavailable', message: 'Not now.' } }))
    await page.getByRole('button', { name: 'Actions for web-app' }).press('Enter')
    await page.getByRole('menuitem', { name: 'Block' }).press('Enter')
    await page.getByRole('button', { name: 'Block key' }).press('Enter')
    await page.getByText('Not now.').waitFor()
    t.ok(await isInside(), 'after a failure')
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    t.equal(await focused(page), 'Actions for web-app')
  })

  await t.test('groups are listed with their shared limits, and keys are found by owner', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN, look: { scheme: 'light', width: 390 } })
    await go(page, '/keys')
    await page.getByRole('table', { name: 'Groups' }).getByText('6,000 requests per minute').waitFor()
    await page.getByRole('textbox', { name: 'Filter keys' }).fill('laboratory')
    await page.getByText('evaluation of models').waitFor()
    t.equal(await page.getByRole('table', { name: /^Keys/ }).locator('tbody tr').count(), 1)
  })

  await t.test('on a phone, keys are sorted by touch', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN, look: { scheme: 'light', width: 390 } })
    await go(page, '/keys')
    const table = page.getByRole('table', { name: /^Keys/ })
    const names = () => table.locator('tbody th').allInnerTexts()
    await table.getByText('web-app').first().waitFor()
    const sorted = (await names()).toSorted((a, b) => a.localeCompare(b))
    await table.getByRole('button', { name: 'Name' }).tap()
    t.strictSame(await names(), sorted.toReversed())
    await table.getByRole('button', { name: 'Name' }).tap()
    t.strictSame(await names(), sorted)
    t.equal(await overflow(page), 0)
    t.strictSame(await barriers(page), [])
  })

  await t.test('a key from gateway.yaml is blocked and unblocked', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/keys')
    await act(page, 'support-bot', 'Block')
    await page.getByRole('button', { name: 'Block key' }).click()
    const row = page.locator('tbody tr', { hasText: 'support-bot' })
    await row.getByText('Blocked').waitFor()
    await page.getByText('Key support-bot is blocked. Every gateway refuses it.').waitFor()
    t.equal(await statusWith(KEYS['support-bot'], 'gpt-5-mini'), 401)
    await act(page, 'support-bot', 'Unblock')
    await page.getByRole('button', { name: 'Unblock key' }).click()
    await row.getByText('Active').waitFor()
    t.equal(await statusWith(KEYS['support-bot'], 'gpt-5-mini'), 200)
  })

  await t.test('a leaked key is looked up and blocked', async t => {
    const { page, faults } = await visit(t, browser, {
      origin, as: ADMIN, look: { scheme: 'dark', width: 390 },
    })
    await go(page, '/keys')
    await page.getByRole('button', { name: 'Look up a key' }).click()
    await page.getByLabel('API key', { exact: true }).fill('sk-of-somebody-else')
    await page.keyboard.press('Enter')
    await page.getByText('Not a key of this gateway').waitFor()
    await page.getByLabel('API key', { exact: true }).fill(` ${KEYS['batch-nightly']} `)
    await page.keyboard.press('Enter')
    await page.getByText('Key: batch-nightly. State: active.').waitFor()
    t.strictSame(await barriers(page), [])
    await page.getByRole('button', { name: 'Block …' }).click()
    await page.getByRole('button', { name: 'Block key' }).click()
    await page.locator('tbody tr', { hasText: 'batch-nightly' }).getByText('Blocked').waitFor()
    t.equal(await statusWith(KEYS['batch-nightly'], 'gpt-5-mini'), 401)
    t.strictSame(faults, [])
  })

  await t.test('each invalid field shows its error', async t => {
    const { page } = await visit(t, browser, { origin, as: ADMIN })
    await go(page, '/keys')
    await page.getByRole('button', { name: 'New key' }).click()
    await page.getByRole('textbox', { name: 'Budget (USD)' }).fill('much')
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.getByText('Enter a name of 1 to 128 characters.').waitFor()
    await page.getByText('Enter an amount in USD, such as 50 or 0.25.').waitFor()
    t.strictSame(await barriers(page), [])
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('web-app')
    await page.getByRole('textbox', { name: 'Budget (USD)' }).fill('0.5')
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.getByText('gateway.yaml already has a key with this name.').waitFor()
  })

  await t.test('a viewer cannot change keys', async t => {
    const { page } = await visit(t, browser, { origin, as: VIEWER })
    await go(page, '/keys')
    await page.getByText('web-app').first().waitFor()
    t.equal(await page.getByRole('button', { name: 'New key' }).count(), 0)
    await page.getByRole('button', { name: 'Actions for web-app' }).click()
    await page.getByRole('menuitem', { name: 'Requests' }).waitFor()
    t.equal(await page.getByRole('menuitem', { name: 'Block' }).count(), 0)
  })
})

/** The label or text of the control that has the focus. */
function focused(page: Page): Promise<string | null> {
  return page.evaluate<string | null>(
    'document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent')
}

async function fill(page: Page, name: string, models: string | null): Promise<void> {
  await page.getByRole('button', { name: 'New key' }).click()
  await page.getByRole('textbox', { name: 'Name', exact: true }).fill(name)
  if (models !== null) {
    await page.getByRole('combobox', { name: 'Models' }).fill(models)
    await page.keyboard.press('Enter')
  }
  await page.getByRole('button', { name: 'Create key' }).click()
}

/** @returns the new key */
async function create(page: Page, name: string, models: string): Promise<string> {
  await fill(page, name, models)
  const key = await page.getByTestId('new-key').innerText()
  await page.getByRole('checkbox', { name: 'I have saved the key' }).check()
  await page.getByRole('button', { name: 'Done' }).click()
  return key
}

async function act(page: Page, name: string, action: string): Promise<void> {
  await page.getByRole('button', { name: `Actions for ${name}` }).click()
  await page.getByRole('menuitem', { name: action, exact: true }).click()
}
