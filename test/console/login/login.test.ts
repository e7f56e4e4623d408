import t from 'tap'
import { PASSWORD, YAML, startConsole } from '../../behaviour/console/console.ts'
import type { Answer } from '../../behaviour/console/console.ts'
import { KEY } from '../../support/gateway.ts'

const BEHIND_PROXY = YAML.replace(
  'listen: 127.0.0.1:0 }', 'listen: 127.0.0.1:0, trusted_proxies: [127.0.0.1] }',
)
const from = (address: string) => ({ 'x-forwarded-for': address })
const WRONG = { name: 'ops', password: 'wrong' }

t.test('failed logins from one address wait longer each time, until a login succeeds', async t => {
  const { browser, clock } = await startConsole(t)
  for (let i = 0; i < 5; i++) t.equal((await browser().login(WRONG)).status, 401, `attempt ${i}`)
  const refused = await browser().login({ name: 'ops', password: PASSWORD })
  t.match(refused, { status: 429, json: { code: 'too_many' } }, 'even the right password has to wait')
  t.equal(refused.headers.get('retry-after'), '1')
  t.match(refused.json, { message: /in 1 second\.$/ })
  clock.advance(1_000)
  t.equal((await browser().login({ key: 'sk-wrong' })).status, 401, 'keys count too')
  t.equal((await browser().login({ key: KEY })).headers.get('retry-after'), '2')
  clock.advance(2_000)
  t.equal((await browser().login({ name: 'nobody', password: 'x' })).status, 401)
  t.equal((await browser().login(WRONG)).headers.get('retry-after'), '4')
  clock.advance(4_000)
  t.equal((await browser().login({ name: 'ops', password: PASSWORD })).status, 201)
  t.equal((await browser().login(WRONG)).status, 401, 'it begins anew')
})

t.test('the wait after failed logins is at most 15 minutes', async t => {
  const { browser, clock } = await startConsole(t)
  let longest = 0
  for (let i = 0; i < 40; i++) {
    const { headers } = await browser().login({ key: 'sk-wrong' })
    const wait = Number(headers.get('retry-after') ?? 0)
    longest = Math.max(longest, wait)
    clock.advance(wait * 1_000)
  }
  t.equal(longest, 15 * 60)
})

t.test('logins at the same time are limited like successive ones', async t => {
  const { browser } = await startConsole(t)
  const answers = await Promise.all(Array.from({ length: 12 }, () => browser().login(WRONG)))
  t.equal(answers.filter(({ status }) => status === 401).length, 5)
  t.equal(answers.filter(({ status }) => status === 429).length, 7)
})

t.test('a name with failed logins from many addresses has to wait, except from a known address', async t => {
  const { browser, clock } = await startConsole(t, BEHIND_PROXY)
  const login = (body: object, address: string): Promise<Answer> =>
    browser().ask('/session', { method: 'POST', body, headers: from(address) })
  t.equal((await login({ name: 'ops', password: PASSWORD }, '192.0.2.1')).status, 201)
  for (let i = 1; i <= 5; i++) t.equal((await login(WRONG, `198.51.100.${i}`)).status, 401)
  t.equal((await login(WRONG, '198.51.100.99')).status, 429)
  t.equal(
    (await login({ ...WRONG, name: 'eye' }, '198.51.100.99')).status, 401, 'other names are not concerned',
  )
  t.equal(
    (await login({ name: 'ops', password: PASSWORD }, '192.0.2.1')).status, 201,
    'where it has logged in before',
  )
  for (let i = 0; i < 20; i++) {
    const wait = Number((await login(WRONG, `203.0.113.${i}`)).headers.get('retry-after') ?? 0)
    t.ok(wait <= 30, 'anyone else with the name waits half a minute at most')
    clock.advance(wait * 1_000)
  }
})

t.test('all IPv6 addresses of a network count as one address', async t => {
  const { browser } = await startConsole(t, BEHIND_PROXY)
  const login = (address: string) =>
    browser().ask('/session', { method: 'POST', body: { key: 'sk-wrong' }, headers: from(address) })
  for (let i = 1; i <= 5; i++) t.equal((await login(`2001:db8:1:2::${i}`)).status, 401)
  t.equal((await login('2001:db8:1:2:ffff::1')).status, 429)
  t.equal((await login('2001:db8:1:3::1')).status, 401)
  t.equal((await login('2001:db8::1')).status, 401)
})

t.test('logins and logouts are in the audit list, without passwords and keys', async t => {
  const { browser, login } = await startConsole(t)
  await browser().login(WRONG)
  await browser().login({ name: 'hunter2', password: 'ops' })
  await browser().login({ key: 'sk-hunter2' })
  const holder = await login({ key: KEY })
  await holder.ask('/session', { method: 'DELETE' })
  const admin = await login({ name: 'ops', password: PASSWORD })
  const { json, text } = await admin.ask('/audit')
  t.match(json, {
    entries: [
      { actor: 'console: ops', action: 'login', address: '127.0.0.1' },
      { actor: 'key: test', action: 'logout' },
      { actor: 'key: test', action: 'login' },
      { actor: 'key: unknown', action: 'login.refused' },
      { actor: 'console: unknown', action: 'login.refused' },
      { actor: 'console: ops', action: 'login.refused' },
    ],
    next: null,
  })
  t.notMatch(text, 'hunter2')
})

t.test('behind a trusted TLS proxy the cookie is restricted to TLS and to the host', async t => {
  const { browser } = await startConsole(t, BEHIND_PROXY)
  const headers = {
    'x-forwarded-proto': 'https', 'x-forwarded-host': 'console.example', ...from('192.0.2.1'),
  }
  const asking = browser()
  const body = { name: 'ops', password: PASSWORD }
  const answer = await asking.ask('/session', {
    method: 'POST', body, headers: { ...headers, origin: 'https://console.example' },
  })
  t.equal(answer.status, 201)
  t.match(
    answer.headers.get('set-cookie'),
    /^__Host-gateway_console=[\w-]{43}; Path=\/; HttpOnly; Secure; SameSite=Strict$/,
  )
  t.match(answer.headers.get('strict-transport-security'), 'max-age=')
  t.equal((await asking.ask('/panel', { headers })).status, 200)
  t.equal((await asking.ask('/panel')).status, 401, 'without TLS it is not looked at')
  for (const origin of ['http://console.example', 'https://evil.example']) {
    t.equal(
      (await browser().ask('/session', { method: 'POST', body, headers: { ...headers, origin } })).status,
      403, origin,
    )
  }
})

t.test('forwarding headers of an untrusted peer are ignored', async t => {
  const { browser } = await startConsole(t)
  const headers = {
    'x-forwarded-proto': 'https', 'x-forwarded-host': 'evil.example', 'origin': 'https://evil.example',
  }
  const body = { name: 'ops', password: PASSWORD }
  t.equal((await browser().ask('/session', { method: 'POST', body, headers })).status, 403)
  const { headers: told } = await browser().ask('/session', { headers: { 'x-forwarded-proto': 'https' } })
  t.equal(told.get('strict-transport-security'), null)
})
