import t from 'tap'
import { PASSWORD, YAML, startConsole } from '../../behaviour/console/console.ts'
import type { Answer } from '../../behaviour/console/console.ts'
import { KEY } from '../../support/gateway.ts'

const BEHIND_PROXY = YAML.replace(
  'listen: 127.0.0.1:0 }', 'listen: 127.0.0.1:0, trusted_proxies: [127.0.0.1] }',
)
const from = (address: string) => ({ 'x-forwarded-for': address })
const WRONG = { name: 'ops', password: 'wrong' }

t.test('the wait after a failed login doubles with each failure of the address, until a login succeeds', async t => {
  const { browser, clock } = await startConsole(t)
  for (let i = 0; i < 5; i++) t.equal((await browser().login(WRONG)).status, 401, `attempt ${i}`)
  const refused = await browser().login({ name: 'ops', password: PASSWORD })
  t.match(refused, { status: 429, json: { code: 'too_many' } }, 'a login with the right password has to wait too')
  t.equal(refused.headers.get('retry-after'), '1')
  t.match(refused.json, { message: /in 1 second\.$/ })
  clock.advance(1_000)
  t.equal((await browser().login({ key: 'sk-wrong' })).status, 401, 'a login with a wrong key counts as a failure')
  t.equal((await browser().login({ key: KEY })).headers.get('retry-after'), '2')
  clock.advance(2_000)
  t.equal((await browser().login({ name: 'nobody', password: 'x' })).status, 401)
  t.equal((await browser().login(WRONG)).headers.get('retry-after'), '4')
  clock.advance(4_000)
  t.equal((await browser().login({ name: 'ops', password: PASSWORD })).status, 201)
  t.equal((await browser().login(WRONG)).status, 401, 'the next failure does not cause a wait')
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

t.test('concurrent failed logins are limited like successive failed logins', async t => {
  const { browser } = await startConsole(t)
  const answers = await Promise.all(Array.from({ length: 12 }, () => browser().login(WRONG)))
  t.equal(answers.filter(({ status }) => status === 401).length, 5)
  t.equal(answers.filter(({ status }) => status === 429).length, 7)
})

t.test('after failed logins for a name from many addresses, unknown addresses have to wait and a known address does not', async t => {
  const { browser, clock } = await startConsole(t, BEHIND_PROXY)
  const login = (body: object, address: string): Promise<Answer> =>
    browser().ask('/session', { method: 'POST', body, headers: from(address) })
  t.equal((await login({ name: 'ops', password: PASSWORD }, '192.0.2.1')).status, 201)
  for (let i = 1; i <= 5; i++) t.equal((await login(WRONG, `198.51.100.${i}`)).status, 401)
  t.equal((await login(WRONG, '198.51.100.99')).status, 429)
  t.equal(
    (await login({ ...WRONG, name: 'eye' }, '198.51.100.99')).status, 401, 'logins for other names do not wait',
  )
  t.equal(
    (await login({ name: 'ops', password: PASSWORD }, '192.0.2.1')).status, 201,
    'the address of an earlier login of that name does not wait',
  )
  for (let i = 0; i < 20; i++) {
    const wait = Number((await login(WRONG, `203.0.113.${i}`)).headers.get('retry-after') ?? 0)
    t.ok(wait <= 30, 'a login for that name from an unknown address waits at most half a minute')
    clock.advance(wait * 1_000)
  }
})

t.test('failed logins from one IPv6 network are counted together', async t => {
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

t.test('behind a trusted TLS proxy the session cookie is accepted only with TLS and only from the host that set it', async t => {
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
  t.equal((await asking.ask('/panel')).status, 401, 'a request without TLS is not logged in by the cookie')
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
