import t from 'tap'
import type { Test } from 'tap'
import { withFolder } from '../../../support/folder.ts'
import { startTestGateway } from '../../../support/gateway.ts'
import { CLIENT_ID, CLIENT_SECRET, startIdentityProvider } from '../../../support/identity-provider.ts'
import { barriers, go, FAR_LOOKS, openBrowser, overflow, visit } from '../browser.ts'
import type { Page } from '../browser.ts'

t.test('single sign-on', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const idp = await startIdentityProvider(t)
  idp.accounts.set('ada', { email: 'ada@example.com', email_verified: true })
  idp.accounts.set('bob', { groups: ['staff'] })
  idp.accounts.set('eve', { email: 'eve@example.net', email_verified: true })
  const start = starter(t, `
console:
  listen: 127.0.0.1:0
  oidc:
    issuer: ${idp.issuer}
    client_id: ${CLIENT_ID}
    client_secret: ${CLIENT_SECRET}
    scopes: [openid, email, groups]
    admins: [ada@example.com]
    viewers: [staff]
upstreams: { demo: { simulator: true } }
routes: [{ to: demo }]
ledger: { file: gateway.db }
`)
  let gateway = await start()
  const originOf = () => gateway.addresses.console ?? ''
  idp.register(originOf())
  const host = new URL(idp.issuer).host

  for (const look of FAR_LOOKS) {
    await t.test(`the login page says that the account has no role: ${look.scheme}, ${look.width} px`, async t => {
      const { page, faults } = await visit(t, browser, { origin: originOf(), look })
      await go(page, '/?login=no_role')
      await page.getByRole('alert').getByText('your account has no role here').waitFor()
      t.equal(await page.getByText(`at ${host}`).count(), 1)
      t.equal(await page.getByRole('tab').count(), 1, 'only one way to log in is offered')
      t.strictSame(await barriers(page), [])
      t.equal(await overflow(page), 0)
      t.strictSame(faults, [])
    })
  }

  await t.test('login by keyboard opens the requested page, then logout', async t => {
    const { page, faults } = await visit(t, browser, { origin: originOf() })
    await go(page, '/keys')
    await page.keyboard.press('Enter')
    await atProvider(page, 'ada')
    await page.getByRole('heading', { name: 'Keys', level: 1 }).waitFor()
    t.match(page.url(), /\/console\/keys$/)
    await page.getByRole('button', { name: 'New key' }).waitFor()
    t.equal(await page.getByText('ada@example.com').first().isVisible(), true)
    await page.getByRole('button', { name: 'Log out' }).click()
    await page.getByRole('button', { name: 'Yes, sign me out' }).click()
    await page.getByRole('button', { name: 'Log in with single sign-on' }).click()
    await page.getByLabel('Account').waitFor()
    t.strictSame(faults.filter(fault => !fault.startsWith(`request: ${idp.issuer}/`) && !fault.includes('favicon')), [])
  })

  await t.test('a user gets the role viewer by group, and stays logged in over a restart', async t => {
    const { page } = await visit(t, browser, { origin: originOf() })
    await go(page, '/keys')
    await page.getByRole('button', { name: 'Log in with single sign-on' }).click()
    await atProvider(page, 'bob')
    await page.getByRole('heading', { name: 'Keys', level: 1 }).waitFor()
    t.equal(await page.getByRole('button', { name: 'New key' }).count(), 0)
    await gateway.close()
    gateway = await start()
    idp.register(originOf())
    await page.goto(`${originOf()}/console/keys`)
    await page.getByRole('heading', { name: 'Keys', level: 1 }).waitFor()
    t.equal(await page.getByText('bob', { exact: true }).first().isVisible(), true)
  })

  await t.test('after a login without a role or a cancelled login, the user sees the reason and can retry', async t => {
    const { page } = await visit(t, browser, { origin: originOf() })
    await go(page, '/')
    await page.getByRole('button', { name: 'Log in with single sign-on' }).click()
    await atProvider(page, 'eve')
    await page.getByRole('alert').getByText('your account has no role here').waitFor()
    await page.context().clearCookies()
    await page.getByRole('button', { name: 'Log in with single sign-on' }).click()
    await page.getByRole('button', { name: 'Refuse' }).click()
    await page.getByRole('alert').getByText('access was denied').waitFor()
    await page.getByRole('button', { name: 'Log in with single sign-on' }).click()
    await atProvider(page, 'ada')
    await page.getByRole('heading', { name: 'Panel', level: 1 }).waitFor()
    t.notMatch(page.url(), 'login=')
  })

  await t.test('if the provider cannot be reached, the login page says so and offers login by key', async t => {
    await gateway.close()
    gateway = await start()
    idp.fault = res => res.destroy()
    const { page } = await visit(t, browser, { origin: originOf() })
    await go(page, '/')
    await page.getByRole('button', { name: 'Log in with single sign-on' }).click()
    await page.getByRole('alert').getByText(`Single sign-on at ${host} is not possible: the provider cannot be reached`).waitFor()
    t.equal(await page.getByRole('textbox', { name: 'API key' }).isVisible(), true, 'login by API key is offered')
  })
})

/** Starts a gateway again and again with the same files. */
function starter(t: Test, yaml: string) {
  const owner = withFolder(t)
  return () => startTestGateway(owner, yaml)
}

async function atProvider(page: Page, account: string): Promise<void> {
  await page.getByLabel('Account').fill(account)
  await page.getByRole('button', { name: 'Sign in' }).click()
}
