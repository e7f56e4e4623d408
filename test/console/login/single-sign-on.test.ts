import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { CLIENT_ID, CLIENT_SECRET, startIdentityProvider } from '../../support/identity-provider.ts'
import type { ProviderOptions, TestIdentityProvider } from '../../support/identity-provider.ts'
import { startPostgres, withoutPostgres } from '../../support/postgres.ts'
import { PASSWORD, YAML, startConsole } from '../../behaviour/console/console.ts'
import type { Answer, Browser, Extra, TestConsole } from '../../behaviour/console/console.ts'

const OPS = { name: 'ops', password: PASSWORD }
const MINUTE = 60_000

interface Setting {
  readonly idp: TestIdentityProvider
  readonly gateway: TestConsole
  /** Logs in with a new browser. */
  logIn(account: string | null): Promise<Attempt>
}

interface Attempt {
  readonly browser: Browser
  /** The address to which the provider has sent the browser back. */
  readonly back: string
  readonly answer: Answer
}

function yamlOf(issuer: string, oidc = ''): string {
  return YAML.replace('  users:', `  oidc:
    issuer: ${issuer}
    client_id: ${CLIENT_ID}
    client_secret: ${CLIENT_SECRET}
    scopes: [openid, email, groups]
    admins: [gateway-admins, Ada@example.com]
    viewers: [staff, "*@example.org"]
${oidc}  users:`)
}

const PUBLIC = 'https://gateway.example.com'
const FORWARDED = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'gateway.example.com' }

function behindProxy(issuer: string): string {
  return yamlOf(issuer).replace('  oidc:', `  public_url: ${PUBLIC}/\n  oidc:`).replace('server: {', 'server: { trusted_proxies: [127.0.0.1],')
}

async function setUp(t: Test, options?: ProviderOptions, oidc = ''): Promise<Setting> {
  const idp = await startIdentityProvider(t)
  idp.accounts.set('1', { email: 'ada@example.com', email_verified: true })
  idp.accounts.set('2', { email: 'bob@example.org', email_verified: true, groups: ['other'] })
  idp.accounts.set('3', { email: 'eve@example.net', email_verified: true, groups: ['gateway-admins', 'other'] })
  idp.accounts.set('4', { groups: ['staff'] })
  idp.accounts.set('5', { email: 'ada@example.com', email_verified: false, groups: ['ada@example.com', 'Staff'] })
  const gateway = await startConsole(t, yamlOf(idp.issuer, oidc))
  idp.register(gateway.console, options)
  return { idp, gateway, logIn: account => logIn(gateway, idp, account) }
}

function begin(browser: Browser, returnTo = '/console/logs?key=a'): Promise<Answer> {
  return browser.ask('/session/single-sign-on', { method: 'POST', body: { return_to: returnTo } })
}

async function logIn(gateway: TestConsole, idp: TestIdentityProvider, account: string | null, returnTo?: string): Promise<Attempt> {
  const browser = gateway.browser()
  const { json, text } = await begin(browser, returnTo)
  const { url } = json as { url?: string }
  if (url === undefined) throw new Error(text)
  const back = await idp.logIn(url, account)
  return { browser, back, answer: await browser.ask(back.slice(gateway.console.length)) }
}

const userOf = async (browser: Browser) => ((await browser.ask('/session')).json as { user: object | null }).user

t.test('single sign-on gives a role by mail address or group', async t => {
  for (const inToken of [true, false]) {
    const { logIn } = await setUp(t, { inToken })
    for (const [account, name, role] of [
      ['1', 'ada@example.com', 'admin'], ['2', 'bob@example.org', 'viewer'], ['3', 'eve@example.net', 'admin'], ['4', '4', 'viewer'],
    ] as const) {
      const { browser, answer } = await logIn(account)
      t.match(answer, { status: 302 })
      t.equal(answer.headers.get('location'), '/console/logs?key=a')
      t.match(await userOf(browser), { name, role })
    }
  }
})

t.test('a login sets a short-lived cookie and uses PKCE, state and nonce', async t => {
  const { gateway, idp } = await setUp(t)
  const browser = gateway.browser()
  const { headers, json } = await begin(browser)
  t.match(headers.get('set-cookie'), /^gateway_login=[\w-]+; Max-Age=600; Path=\/console\/login\/; HttpOnly; SameSite=Lax$/)
  const { searchParams } = new URL((json as { url: string }).url)
  t.match(Object.fromEntries(searchParams), {
    client_id: CLIENT_ID, response_type: 'code', code_challenge_method: 'S256', code_challenge: /^[\w-]{43}$/, state: /.{20}/, nonce: /.{20}/,
    redirect_uri: `${gateway.console}/console/login/callback`, scope: 'openid email groups',
  })
  const back = await idp.logIn((json as { url: string }).url, '1')
  const answer = await browser.ask(back.slice(gateway.console.length))
  t.match(answer.headers.getSetCookie(), [
    /^gateway_login=; .*Path=\/console\/login\//, /^gateway_console=[\w-]{43}; Path=\/console\/; HttpOnly; SameSite=Strict$/,
  ])
  t.equal(answer.headers.get('cache-control'), 'no-store')
  t.equal(answer.headers.get('referrer-policy'), 'no-referrer')
})

t.test('after a login the browser is redirected only to pages of the console', async t => {
  const { gateway, idp } = await setUp(t)
  for (const [returnTo, page] of [
    ['/console/', '/console/'], ['/console/keys', '/console/keys'], ['//example.com/console/', '/console/'], ['https://example.com/', '/console/'],
    ['/\\example.com/console/', '/console/'], ['/v1/models', '/console/'], ['/console/../v1', '/console/'], [`/console/${'a'.repeat(3_000)}`, '/console/'],
  ] as const) {
    const { answer } = await logIn(gateway, idp, '1', returnTo)
    t.equal(answer.headers.get('location'), page, returnTo.slice(0, 40))
  }
})

t.test('the login of a user without a role is refused and recorded in the audit list', async t => {
  const { gateway, logIn } = await setUp(t)
  const { browser, answer } = await logIn('5')
  t.equal(answer.headers.get('location'), '/console/?login=no_role', 'an unverified mail address and a group of that name give no role')
  t.equal(await userOf(browser), null)
  const { browser: other, answer: denied } = await logIn(null)
  t.equal(denied.headers.get('location'), '/console/?login=denied')
  t.equal(await userOf(other), null)
  const { browser: ada } = await logIn('1')
  await ada.ask('/session', { method: 'DELETE', headers: { 'x-csrf-token': ((await ada.ask('/session')).json as { csrf: string }).csrf } })
  const ops = await gateway.login(OPS)
  t.match(((await ops.ask('/audit')).json as { entries: object[] }).entries.toReversed(), [
    { action: 'login.refused', actor: 'console: 5', address: '127.0.0.1', detail: 'single sign-on: no role, sub 5' },
    { action: 'login.refused', actor: 'console: unknown', detail: 'single sign-on: the provider answers access_denied' },
    { action: 'login', actor: 'console: ada@example.com', address: '127.0.0.1', detail: 'single sign-on: sub 1' },
    { action: 'logout', actor: 'console: ada@example.com' },
    { action: 'login', actor: 'console: ops', detail: null },
  ])
})

t.test('a mail address gives a role unless the ID token or the userinfo endpoint calls the address unverified', async t => {
  const { gateway, idp, logIn } = await setUp(t, { inToken: true })
  const groups = ['other']
  const ada = { email: 'ada@example.com', groups }
  const bob = { email: 'bob@example.org', groups }
  const verified = { email_verified: true }
  for (const [title, token, userinfo, name] of [
    ['verified by the ID token', { ...ada, ...verified }, { ...ada, ...verified }, 'ada@example.com'],
    ['verified by userinfo', ada, { ...ada, ...verified }, 'ada@example.com'],
    ['verified by neither', ada, ada, 'ada@example.com'],
    ['unverified by userinfo', ada, { ...ada, email_verified: false }, null],
    ['unverified by userinfo, as text', ada, { ...ada, email_verified: 'false' }, null],
    ['unverified by userinfo without an address', ada, { email_verified: false }, null],
    ['unverified by the ID token', { ...ada, email_verified: false }, { ...ada, ...verified }, null],
    ['unverified by the ID token without an address', { groups, email_verified: false }, { ...ada, ...verified }, null],
    ['another address, verified by userinfo', ada, { ...bob, ...verified }, 'bob@example.org'],
    ['another address, unverified by userinfo', { email: ada.email, ...verified }, { ...bob, email_verified: false }, null],
    ['an address only in userinfo, verified only by the ID token', { groups, ...verified }, ada, null],
    ['an address only in the ID token, verified only by userinfo', ada, verified, null],
    ['two addresses, neither verified', bob, ada, 'bob@example.org'],
  ] as const) {
    idp.accounts.set('6', { ...token, userinfo })
    // Refused logins slow down the next ones.
    gateway.clock.advance(15 * MINUTE)
    const user = await userOf((await logIn('6')).browser)
    t.equal((user as { name: string } | null)?.name ?? null, name, title)
  }
})

t.test('a login can be completed once, within ten minutes, and only in the browser that started the login', async t => {
  const { gateway, idp } = await setUp(t)
  const EXPIRED = '/console/?login=expired'
  const start = async () => {
    const browser = gateway.browser()
    const { url } = (await begin(browser)).json as { url: string }
    const cookie = browser.cookie
    const path = (await idp.logIn(url, '1')).slice(gateway.console.length)
    const end = async (path: string, cookie: string | null) => {
      browser.cookie = cookie
      return (await browser.ask(path)).headers.get('location')
    }
    return { cookie, path, end }
  }
  const { cookie, path, end } = await start()
  t.equal(await end(path, null), EXPIRED, 'the login cookie is missing')
  t.equal(await end(path, 'gateway_login=AAAA'), EXPIRED)
  t.equal(await end(path, `${cookie?.slice(0, -8)}AAAAAAAA`), EXPIRED)
  t.equal(await end(path.replace(/state=[^&]+/, 'state=other'), cookie), EXPIRED)
  t.equal(await end((await start()).path, cookie), EXPIRED, 'the code belongs to another login')
  t.equal(await end(path, cookie), '/console/logs?key=a')
  t.equal(await end(path, cookie), EXPIRED, 'the provider refuses a second use of a code')
  const late = await start()
  gateway.clock.advance(10 * MINUTE)
  t.equal(await late.end(late.path, late.cookie), EXPIRED)
  gateway.clock.advance(-10 * MINUTE)
  t.equal(await end('/console/login/callback', null), EXPIRED)
})

t.test('logins with wrong codes are slowed down', async t => {
  const { gateway, idp } = await setUp(t)
  const browser = gateway.browser()
  const answers: (string | null)[] = []
  for (let count = 0; count < 6; count++) {
    const state = new URL(((await begin(browser)).json as { url: string }).url).searchParams.get('state') ?? ''
    const query = new URLSearchParams({ code: 'guess', state, iss: idp.issuer })
    answers.push((await browser.ask(`/console/login/callback?${query}`)).headers.get('location'))
  }
  t.strictSame(answers, [...Array<string>(5).fill('/console/?login=expired'), '/console/?login=too_many'])
})

t.test('a reload that changes or removes single sign-on applies to open sessions', async t => {
  const { gateway, idp, logIn } = await setUp(t)
  const { browser } = await logIn('1')
  const { browser: viewer } = await logIn('2')
  await gateway.change(yamlOf(idp.issuer).replace('[gateway-admins, Ada@example.com]', '[gateway-admins]').replace('[staff,', '[staff, Ada@example.com,'))
  t.match(await userOf(browser), { name: 'ada@example.com', role: 'viewer' })
  await gateway.change(yamlOf(idp.issuer).replace(', Ada@example.com]', ']'))
  t.equal(await userOf(browser), null)
  t.match(await userOf(viewer), { role: 'viewer' })
  await gateway.change(YAML)
  t.equal(await userOf(viewer), null)
  t.match(await begin(viewer), { status: 404, json: { code: 'not_found', message: 'Single sign-on is not configured.' } })
})

t.test('only administrators can create keys, and only with the CSRF token', async t => {
  const { logIn } = await setUp(t)
  const { browser: admin } = await logIn('1')
  const { browser: viewer } = await logIn('2')
  const create = { method: 'POST', body: { name: 'made' } }
  t.equal((await admin.ask('/keys', create)).status, 403, 'without the CSRF token')
  for (const each of [admin, viewer]) each.csrf = ((await each.ask('/session')).json as { csrf: string }).csrf
  t.equal((await viewer.ask('/keys', create)).status, 403)
  t.equal((await admin.ask('/keys', create)).status, 201)
})

t.test('a logout redirects to the logout page of the provider, if the provider has such a page', async t => {
  const logOut = async (browser: Browser) => {
    browser.csrf = ((await browser.ask('/session')).json as { csrf: string }).csrf
    return browser.ask('/session/logout', { method: 'POST' })
  }
  const { gateway, idp, logIn } = await setUp(t)
  const { browser } = await logIn('1')
  const { browser: later } = await logIn('1')
  const { status, json } = await logOut(browser)
  t.equal(status, 200)
  const url = new URL((json as { url: string }).url)
  t.equal(url.origin, idp.issuer)
  t.match(Object.fromEntries(url.searchParams), {
    client_id: CLIENT_ID, id_token_hint: /^[\w-]+\.[\w-]+\.[\w-]+$/, post_logout_redirect_uri: `${gateway.console}/console/`,
  })
  t.equal((await fetch(url)).status, 200, 'the provider accepts the logout request')
  t.equal(await userOf(browser), null)
  const ops = await gateway.login(OPS)
  t.match(await logOut(ops), { status: 200, json: { url: null } })
  t.equal(await userOf(ops), null)
  idp.fault = res => res.destroy()
  gateway.clock.advance(6 * MINUTE)
  t.match(await logOut(later), { status: 200, json: { url: null } }, 'without a reachable provider only the session of the console ends')
  t.equal(await userOf(later), null)
  const without = await setUp(t, { withLogout: false })
  t.match(await logOut((await without.logIn('1')).browser), { status: 200, json: { url: null } })
})

t.test('while the provider is unreachable, requests are served and a login reports why it failed', async t => {
  const { gateway, idp, logIn } = await setUp(t)
  const host = new URL(idp.issuer).host
  const refused = async (fault: TestIdentityProvider['fault']) => {
    idp.fault = fault
    gateway.clock.advance(6 * MINUTE)
    const { status, json } = await begin(gateway.browser())
    t.equal(status, 503)
    return (json as { message: string }).message
  }
  t.equal(await refused(res => res.destroy()), `Single sign-on at ${host} is not possible: the provider cannot be reached: UND_ERR_SOCKET.`)
  t.equal(await refused(res => res.writeHead(500).end()), `Single sign-on at ${host} is not possible: the provider answers 500.`)
  t.equal(await refused(res => res.writeHead(404).end()), `Single sign-on at ${host} is not possible: the provider answers 404.`)
  t.match(await refused(res => res.end('<html>')), /^Single sign-on at \S+ is not possible: unexpected response content-type/)
  t.match(await refused(res => res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ issuer: 'https://other.example' }))),
    /^Single sign-on at \S+ is not possible: the provider calls itself https:\/\/other\.example/)
  t.match(await refused(res => res.writeHead(200, { 'content-type': 'application/json' }).end(' '.repeat(70_000))), /the response of the token server is too long/)
  t.match(await userOf(await gateway.login(OPS)), { role: 'admin' }, 'users of the configuration can still log in')
  idp.fault = null
  gateway.clock.advance(1_000)
  t.match(await userOf((await logIn('1')).browser), { role: 'admin' })
})

t.test('a login reports a provider that becomes unreachable during the login', async t => {
  const { gateway, idp } = await setUp(t)
  const browser = gateway.browser()
  const back = await idp.logIn(((await begin(browser)).json as { url: string }).url, '1')
  idp.fault = res => res.destroy()
  t.equal((await browser.ask(back.slice(gateway.console.length))).headers.get('location'), '/console/?login=unavailable')
  const { reason } = await gateway.waitForLog(({ reason }) => reason !== undefined)
  t.equal(reason, 'the provider cannot be reached: UND_ERR_SOCKET')
})

t.test('a login works after the provider rotates its signing keys', async t => {
  const { gateway, idp, logIn } = await setUp(t)
  t.match(await userOf((await logIn('1')).browser), { role: 'admin' })
  idp.register(gateway.console)
  t.match(await userOf((await logIn('1')).browser), { role: 'admin' })
})

t.test('a login tolerates a clock difference of 20 s to the provider, and reports one of two minutes', async t => {
  const { gateway, idp, logIn } = await setUp(t, { ahead: 20 })
  t.match(await userOf((await logIn('1')).browser), { role: 'admin' }, 'a difference of 20 s is accepted')
  for (const ahead of [120, -7_200]) {
    idp.register(gateway.console, { ahead })
    t.equal((await logIn('1')).answer.headers.get('location'), '/console/?login=clock')
  }
})

t.test('each login reads the client secret from its file, and the console and the log do not show the secret', async t => {
  const { gateway, idp, logIn } = await setUp(t)
  const inFile = yamlOf(idp.issuer).replace(`client_secret: ${CLIENT_SECRET}`, 'client_secret: { file: secret }')
  const file = join(gateway.file, '..', 'secret')
  writeFileSync(file, 'a-wrong-secret-0123456789')
  await gateway.change(inFile)
  t.equal((await logIn('1')).answer.headers.get('location'), '/console/?login=rejected')
  writeFileSync(file, `${CLIENT_SECRET}\n`)
  t.match(await userOf((await logIn('1')).browser), { role: 'admin' })
  await gateway.change(yamlOf(idp.issuer))
  const ops = await gateway.login(OPS)
  const shown = [(await ops.ask('/configuration')).text, (await ops.ask('/audit')).text, JSON.stringify(gateway.logged)]
  for (const text of shown) {
    t.notMatch(text, CLIENT_SECRET)
    t.notMatch(text, 'a-wrong-secret-0123456789')
    t.notMatch(text, 'eyJ', 'no ID token is shown')
  }
})

t.test('behind a proxy single sign-on uses console.public_url', async t => {
  const idp = await startIdentityProvider(t)
  idp.accounts.set('1', { email: 'ada@example.com', email_verified: true })
  const yaml = behindProxy(idp.issuer)
  const gateway = await startConsole(t, yaml)
  idp.register(PUBLIC)
  const browser = gateway.browser()
  const ask = (host: Record<string, string>) => browser.ask('/session/single-sign-on', { method: 'POST', body: { return_to: '/console/' }, headers: host })
  t.match(await ask({ ...FORWARDED, 'x-forwarded-host': 'evil.example' }), {
    status: 503, json: { message: `Single sign-on works at ${PUBLIC}/console/ only. Open the console there.` },
  })
  const { json, headers } = await ask(FORWARDED)
  t.match(headers.get('set-cookie'), /^__Host-gateway_login=[\w-]+; Max-Age=600; Path=\/; HttpOnly; Secure; SameSite=Lax$/)
  const { url } = json as { url: string }
  t.equal(new URL(url).searchParams.get('redirect_uri'), `${PUBLIC}/console/login/callback`)
  const back = await idp.logIn(url, '1')
  t.equal(back.startsWith(`${PUBLIC}/console/login/callback?code=`), true)
  const answer = await browser.ask(back.slice(PUBLIC.length), { headers: FORWARDED })
  t.equal(answer.headers.get('location'), '/console/')
  t.match(answer.headers.getSetCookie()[1], /^__Host-gateway_console=[\w-]{43}; Path=\/; HttpOnly; Secure; SameSite=Strict$/)

  const without = await startConsole(t, yaml.replace(/ {2}public_url.*\n/, ''))
  t.match(await without.browser().ask('/session/single-sign-on', { method: 'POST', body: { return_to: '/console/' }, headers: FORWARDED }), {
    status: 503, json: { message: 'Single sign-on needs console.public_url: the address of the console in the browser.' },
  })
})

t.test('a login can start at one gateway of a cluster and end at another, and the session survives a restart', { skip: withoutPostgres, timeout: 120_000 }, async t => {
  const postgres = await startPostgres(t)
  const idp = await startIdentityProvider(t)
  idp.accounts.set('1', { email: 'ada@example.com', email_verified: true })
  idp.register(PUBLIC)
  const start = (instance: string) => startConsole(t, `${behindProxy(idp.issuer)}cluster: { instance: ${instance}, postgres: "${postgres.url()}" }\n`)
  const [first, second] = [await start('gw1'), await start('gw2')]
  const ask = (gateway: TestConsole, browser: Browser, path: string, extra: Extra = {}) => {
    const there = gateway.browser()
    there.cookie = browser.cookie
    return there.ask(path, { headers: FORWARDED, ...extra }).finally(() => {
      browser.cookie = there.cookie
    })
  }
  const browser = first.browser()
  const { json } = await ask(first, browser, '/session/single-sign-on', { method: 'POST', body: { return_to: '/console/' } })
  const back = await idp.logIn((json as { url: string }).url, '1')
  t.equal((await ask(second, browser, back.slice(PUBLIC.length))).headers.get('location'), '/console/')
  t.match((await ask(first, browser, '/session')).json, { user: { name: 'ada@example.com', role: 'admin' } })
  await Promise.all([first.close(), second.close()])
  t.match((await ask(await start('gw1'), browser, '/session')).json, { user: { name: 'ada@example.com', role: 'admin' } })
})
