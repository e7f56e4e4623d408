import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { PASSWORD, SECOND_KEY, YAML, cheapHash, chat, makeKey, startConsole } from '../behaviour/console/console.ts'
import type { Browser } from '../behaviour/console/console.ts'
import { KEY } from '../support/gateway.ts'

const OPS = { name: 'ops', password: PASSWORD }
const MINUTE = 60_000
const HOUR = 60 * MINUTE

t.test('a session is kept in an HttpOnly cookie', async t => {
  const { browser } = await startConsole(t)
  const asking = browser()
  t.match((await asking.ask('/session')).json, { has_users: true, user: null, csrf: null })
  t.equal((await asking.ask('/panel')).status, 401)
  const answer = await asking.login(OPS)
  t.equal(answer.status, 201)
  t.match(answer.json, { user: { name: 'ops', role: 'admin' }, csrf: /^[\w-]{43}$/ })
  t.match(
    answer.headers.get('set-cookie'),
    /^gateway_console=[\w-]{43}; Path=\/console\/; HttpOnly; SameSite=Strict$/,
  )
  t.match((await asking.ask('/session')).json, { user: { name: 'ops', role: 'admin' }, csrf: asking.csrf })
  t.equal((await asking.ask('/panel')).status, 200)
})

t.test('every logged-in user gets the URL of the documentation', async t => {
  const gateway = await startConsole(t, `${YAML}docs: { listen: 0.0.0.0:8082 }\n`)
  const urlFor = async (asking: Browser) => (await asking.ask('/session')).json
  t.match(await urlFor(gateway.browser()), { docs_url: null })
  for (const body of [OPS, { key: SECOND_KEY }]) {
    const asking = gateway.browser()
    t.match((await asking.login(body)).json, { docs_url: 'http://0.0.0.0:8082' })
    t.match(await urlFor(asking), { docs_url: 'http://0.0.0.0:8082' })
  }
  await gateway.change(`${YAML}docs: { listen: 127.0.0.1:8083 }\n`)
  t.match(await urlFor(await gateway.login(OPS)), { docs_url: null }, 'a changed address of the documentation needs a restart')
  const without = await startConsole(t)
  t.match(await urlFor(await without.login(OPS)), { docs_url: null })
})

t.test('logins with a wrong name, password or key get the same response', async t => {
  const { browser } = await startConsole(t)
  const answers = await Promise.all([
    browser().login({ name: 'ops', password: 'wrong' }),
    browser().login({ name: 'nobody', password: PASSWORD }),
    browser().login({ name: 'ops', password: '' }),
  ])
  for (const { status, json, headers } of answers) {
    t.equal(status, 401)
    t.same(json, { code: 'not_logged_in', message: 'The name or the password is wrong.' })
    t.equal(headers.get('set-cookie'), null)
  }
  t.match(await browser().login({ key: 'sk-unknown' }), { status: 401, json: { code: 'not_logged_in' } })
  for (const body of [
    {}, { name: 'ops' }, { name: 'ops', password: PASSWORD, key: KEY }, [], { name: 1, password: 2 },
  ]) {
    t.match(await browser().login(body), { status: 400, json: { code: 'bad_request' } }, JSON.stringify(body))
  }
})

t.test('a key can be used to log in, and only for the data of that key', async t => {
  const { login } = await startConsole(t)
  const holder = await login({ key: SECOND_KEY })
  t.match((await holder.ask('/session')).json, { user: { name: 'second', role: 'key' } })
  t.match((await holder.ask('/own')).json, {
    name: 'second', models: ['demo'], limits: null, requests: null, tokens: null,
  })
  t.equal((await holder.ask('/keys')).status, 403)
})

t.test('without console users only the holder of a key can log in, even with auth: open', async t => {
  const { browser, login } = await startConsole(
    t, `${YAML.replace(/ {2}users:\n(.*\n){2}/, '')}\nauth: open\n`,
  )
  t.match((await browser().ask('/session')).json, { has_users: false, user: null })
  t.equal((await browser().login(OPS)).status, 401)
  t.equal((await browser().login({ key: '' })).status, 401)
  t.equal((await (await login({ key: KEY })).ask('/panel')).status, 200)
})

t.test('a second login replaces the session cookie and the CSRF token, and ends the first session', async t => {
  const { login } = await startConsole(t)
  const asking = await login(OPS)
  const { cookie, csrf } = asking
  await asking.login(OPS)
  t.not(asking.cookie, cookie)
  t.not(asking.csrf, csrf)
  t.equal((await asking.ask('/panel')).status, 200)
  asking.cookie = cookie
  t.equal((await asking.ask('/panel')).status, 401)
})

t.test('a logout makes the session cookie invalid', async t => {
  const { login } = await startConsole(t)
  const asking = await login(OPS)
  const { cookie } = asking
  const { status, headers } = await asking.ask('/session', { method: 'DELETE' })
  t.equal(status, 204)
  t.match(headers.get('set-cookie'), /^gateway_console=; /)
  asking.cookie = cookie
  t.equal((await asking.ask('/panel')).status, 401)
  t.match((await asking.ask('/session')).json, { user: null })
})

t.test('a session ends after 30 minutes without a request; requests that the page repeats by itself do not count', async t => {
  const { login, clock } = await startConsole(t)
  const asking = await login(OPS)
  clock.advance(29 * MINUTE)
  t.equal((await asking.ask('/panel')).status, 200)
  clock.advance(29 * MINUTE)
  const live = { headers: { 'x-live': '1' } }
  t.equal((await asking.ask('/live', live)).status, 200)
  clock.advance(2 * MINUTE)
  t.equal((await asking.ask('/live', live)).status, 401)
  t.equal((await asking.ask('/panel')).status, 401)
})

t.test('a session ends twelve hours after its login', async t => {
  const { login, clock } = await startConsole(t)
  const asking = await login(OPS)
  for (let passed = 0; passed < 12 * HOUR - 20 * MINUTE; passed += 20 * MINUTE) {
    clock.advance(20 * MINUTE)
    t.equal((await asking.ask('/filters')).status, 200)
  }
  clock.advance(20 * MINUTE)
  t.equal((await asking.ask('/filters')).status, 401)
})

t.test('a reload that changes or removes a user ends the sessions of that user only', async t => {
  const gateway = await startConsole(t)
  const [ops, eye] = [await gateway.login(OPS), await gateway.login({ ...OPS, name: 'eye' })]
  t.match(await gateway.change(YAML.replace('role: viewer', 'role: admin')), { applied: true })
  t.equal((await eye.ask('/panel')).status, 401)
  t.equal((await ops.ask('/panel')).status, 200)
  t.match(await gateway.change(YAML.replace(cheapHash(PASSWORD), cheapHash('another'))), { applied: true })
  t.equal((await ops.ask('/panel')).status, 401)
  const again = await gateway.login({ name: 'ops', password: 'another' })
  t.match(await gateway.change(YAML.replace(/.*name: ops.*\n/, '')), { applied: true })
  t.equal((await again.ask('/panel')).status, 401)
  // An ended session stays ended, even if the user is added again.
  t.match(await gateway.change(YAML.replace(cheapHash(PASSWORD), cheapHash('another'))), { applied: true })
  t.equal((await again.ask('/panel')).status, 401)
})

t.test('the sessions of a key end when the key is blocked, revoked or removed', async t => {
  const gateway = await startConsole(t)
  const ops = await gateway.login(OPS)
  const made = await makeKey(ops, 'made')
  const [holder, configured] = [
    await gateway.login({ key: made }), await gateway.login({ key: SECOND_KEY }),
  ]
  t.equal((await holder.ask('/own')).status, 200)
  t.equal((await ops.ask('/keys/made', { method: 'DELETE' })).status, 204)
  t.equal((await holder.ask('/own')).status, 401)
  t.equal((await configured.ask('/own')).status, 200)
  t.equal((await ops.ask('/keys/second', { method: 'DELETE' })).status, 204)
  t.equal((await configured.ask('/own')).status, 401)
  t.equal((await gateway.browser().login({ key: SECOND_KEY })).status, 401)
  t.equal((await ops.ask('/keys/second/unblock', { method: 'POST' })).status, 204)
  const again = await gateway.login({ key: SECOND_KEY })
  await gateway.change(YAML.replace(/, \{ name: second.*\}\]/, ']'))
  t.equal((await again.ask('/own')).status, 401)
})

t.test('the sessions of a key end when the key gets another name', async t => {
  const gateway = await startConsole(t)
  const holder = await gateway.login({ key: SECOND_KEY })
  await gateway.change(YAML.replace('name: second', 'name: third').replace('name: test', 'name: second'))
  t.equal((await holder.ask('/own')).status, 401)
  t.match((await (await gateway.login({ key: SECOND_KEY })).ask('/own')).json, { name: 'third' })
})

t.test('sessions survive a restart, and console.db contains no token', async t => {
  const gateway = await startConsole(t)
  const asking = await gateway.login(OPS)
  await chat(gateway)
  const { cookie } = asking
  const file = join(gateway.file, '..', 'data', 'console.db')
  await gateway.close()
  using db = new DatabaseSync(file, { readOnly: true })
  const rows = JSON.stringify(db.prepare('SELECT *, hex(digest) AS hex FROM sessions').all())
  t.match(rows, '"name":"ops"')
  t.notMatch(rows, String(cookie?.split('=')[1]))
})
