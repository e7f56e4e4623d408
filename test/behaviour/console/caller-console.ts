import type { Test } from 'tap'
import { CLIENT_ID, CLIENT_SECRET, startIdentityProvider, type ProviderOptions } from '../../support/identity-provider.ts'
import { YAML, startConsole, type Browser } from './console.ts'

export const ALICE = 'corp:alice@example.com'

interface CallerOptions { readonly callers?: boolean, readonly caller?: string, readonly keys?: number, readonly budget?: string }

/** A console whose callers log in with the same issuer. */
export function yamlOf(issuer: string, { callers = true, caller = 'email', keys = 0, budget = '' }: CallerOptions = {}): string {
  return `${YAML.replace('  users:', `  oidc:
    issuer: ${issuer}
    client_id: ${CLIENT_ID}
    client_secret: ${CLIENT_SECRET}
    scopes: [openid, email, groups]
    admins: [gateway-admins]
    callers: ${callers}
  users:`)}
groups: { research: { models: ["demo"] } }
callers:
  - name: corp
    issuer: ${issuer}
    audience: ${CLIENT_ID}
    caller: ${caller}
    groups: { claim: groups, map: { "platform-*": research } }
    limits: { requests_per_minute: 60${budget} }
    keys: ${keys}
`
}

/** Alice and Carol are callers, Bob is in no group of callers, Ada is an admin; the address of account 4 is not verified. */
export async function setUp(t: Test, options?: ProviderOptions, callers?: CallerOptions) {
  const idp = await startIdentityProvider(t)
  idp.accounts.set('1', { email: 'alice@example.com', email_verified: true, groups: ['platform-a'] })
  idp.accounts.set('2', { email: 'bob@example.com', email_verified: true, groups: ['sales'] })
  idp.accounts.set('3', { email: 'ada@example.com', email_verified: true, groups: ['gateway-admins', 'platform-a'] })
  idp.accounts.set('4', { email: 'alice@example.com', email_verified: false, groups: ['platform-a'] })
  idp.accounts.set('5', { email: 'carol@example.com', email_verified: true, groups: ['platform-b'] })
  const gateway = await startConsole(t, yamlOf(idp.issuer, callers))
  idp.register(gateway.console, options)
  const logIn = async (account: string) => {
    const browser = gateway.browser()
    const { json } = await browser.ask('/session/single-sign-on', { method: 'POST', body: { return_to: '/console/' } })
    const back = await idp.logIn((json as { url: string }).url, account)
    const { headers } = await browser.ask(back.slice(gateway.console.length))
    const session = (await browser.ask('/session')).json as { csrf: string | null, user: { name: string, role: string } | null }
    browser.csrf = session.csrf
    return { browser, location: headers.get('location'), user: session.user }
  }
  return { idp, gateway, logIn }
}

export const chat = { model: 'demo', messages: [{ role: 'user', content: 'Hello' }] }

export function run(browser: Browser, model = 'demo') {
  return browser.ask('/console/api/playground/v1/chat/completions', { method: 'POST', body: { ...chat, model } })
}
