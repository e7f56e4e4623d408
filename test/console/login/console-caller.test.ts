import t from 'tap'
import { ALICE, chat, run, setUp, yamlOf } from '../../behaviour/console/caller-console.ts'

t.test('a caller without a role logs in under its name on the API, and sees nothing of others', async t => {
  for (const inToken of [true, false]) {
    const { gateway, logIn } = await setUp(t, { inToken })
    const { browser, user, location } = await logIn('1')
    t.equal(location, '/console/')
    t.match(user, { name: ALICE, role: 'key' })
    t.match((await browser.ask('/own')).json, { name: ALICE, limits: { requests_per_minute: 60 }, requests: { limit: 60 } })
    t.equal((await run(browser)).status, 200)
    t.equal((await run(browser, 'other-1')).status, 403, 'the models of the group apply')
    const { url } = (await browser.ask('/session/logout', { method: 'POST' })).json as { url: string }
    const token = new URL(url).searchParams.get('id_token_hint') ?? ''
    if (inToken) {
      await gateway.waitForLog(({ msg }) => String(msg).includes('can be read again'))
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
      const onApi = await fetch(`${gateway.url}/v1/chat/completions`, { method: 'POST', headers, body: JSON.stringify(chat) })
      t.equal(onApi.status, 200, await onApi.text())
    }
    const again = await logIn('1')
    const rows = ((await again.browser.ask('/logs')).json as { rows: { key: string }[] }).rows
    t.ok(rows.length >= (inToken ? 3 : 2))
    t.ok(rows.every(({ key }) => key === ALICE), 'the console and the API have one name')
    const carol = await logIn('5')
    t.equal(((await carol.browser.ask('/logs')).json as { rows: object[] }).rows.length, 0)
    for (const path of [`/logs?key=${encodeURIComponent(ALICE)}`, '/keys', '/audit', '/routes', '/configuration', '/upstreams']) {
      t.equal((await carol.browser.ask(path)).status, 403, path)
    }
  }
})

t.test('others are refused', async t => {
  const { logIn, gateway, idp } = await setUp(t)
  t.match(await logIn('2'), { location: '/console/?login=no_role', user: null }, 'groups do not admit the account')
  t.match(await logIn('4'), { location: '/console/?login=no_role', user: null }, 'the address is not verified')
  t.match(await logIn('3'), { user: { name: 'ada@example.com', role: 'admin' } }, 'an admin stays an admin')
  await gateway.change(yamlOf(idp.issuer, { callers: false }))
  t.match(await logIn('1'), { location: '/console/?login=no_role', user: null })
})

t.test('a caller who is blocked, or whose entry changes, is logged out', async t => {
  const { logIn, gateway, idp } = await setUp(t)
  const { browser } = await logIn('1')
  const admin = await logIn('3')
  const setBlocked = (action: string) => admin.browser.ask(`/callers/${encodeURIComponent(ALICE)}/${action}`, { method: 'POST' })
  t.equal((await browser.ask(`/callers/${encodeURIComponent(ALICE)}/block`, { method: 'POST' })).status, 403)
  t.equal((await setBlocked('block')).status, 204)
  t.equal((await browser.ask('/own')).status, 401)
  t.match(await logIn('1'), { location: '/console/?login=no_role' })
  t.equal((await setBlocked('unblock')).status, 204)
  const next = await logIn('1')
  t.equal((await next.browser.ask('/own')).status, 200)
  await gateway.change(yamlOf(idp.issuer, { caller: 'sub' }))
  t.equal((await next.browser.ask('/own')).status, 401)
  t.match(await logIn('1'), { user: { name: 'corp:1' } })
})
