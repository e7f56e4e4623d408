import t from 'tap'
import { ALICE, chat, setUp, yamlOf } from '../behaviour/console/caller-console.ts'
import type { Browser } from '../behaviour/console/console.ts'

const DAY = 86_400_000

const soon = () => new Date(Date.now() + 7 * DAY).toISOString()

function make(browser: Browser, label: string, extra: object = {}) {
  return browser.ask('/own/keys', { method: 'POST', body: { label, expires_at: soon(), ...extra } })
}

function secretOf({ json }: { readonly json: unknown }): string {
  return (json as { key: string }).key
}

function send(url: string, key: string, model = 'demo') {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  return fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body: JSON.stringify({ ...chat, model }) })
}

async function statusOf(url: string, key: string, model?: string): Promise<number> {
  const response = await send(url, key, model)
  await response.body?.cancel()
  return response.status
}

t.test('a caller makes keys, never more than allowed, and revokes them', async t => {
  const { gateway, logIn } = await setUp(t, undefined, { keys: 3 })
  const [{ browser }, again] = [await logIn('1'), await logIn('1')]
  t.match((await browser.ask('/own/keys')).json, { allowed: 3, max_days: 90, keys: [] })
  const answers = await Promise.all(Array.from({ length: 12 }, (_, n) => make(n % 2 ? browser : again.browser, `key ${n}`)))
  const made = answers.filter(({ status }) => status === 201)
  t.equal(made.length, 3)
  t.equal(answers.filter(({ status }) => status === 409).length, 9)
  const { keys } = (await browser.ask('/own/keys')).json as { keys: { label: string }[] }
  t.equal(keys.length, 3)
  const [first] = keys
  const key = secretOf(made.find(({ json }) => (json as { name: string }).name === `${ALICE}/${first?.label}`) ?? { json: {} })
  t.equal(await statusOf(gateway.url, key), 200)
  t.equal(await statusOf(gateway.url, key, 'other-1'), 403, 'the models of the group apply')
  const { rows } = (await browser.ask('/logs')).json as { rows: { key: string }[] }
  t.ok(rows.length > 0 && rows.every(each => each.key === ALICE), 'its requests are those of the caller')
  const carol = await logIn('5')
  t.match((await carol.browser.ask('/own/keys')).json, { keys: [] })
  t.equal((await carol.browser.ask(`/own/keys/${encodeURIComponent(first?.label ?? '')}`, { method: 'DELETE' })).status, 404)
  t.equal((await browser.ask(`/own/keys/${encodeURIComponent(first?.label ?? '')}`, { method: 'DELETE' })).status, 204)
  t.equal(await statusOf(gateway.url, key), 401)
  t.equal((await make(browser, 'next')).status, 201)
})

t.test('keys count against the limits of the caller', async t => {
  const { gateway, logIn } = await setUp(t, undefined, { keys: 2, budget: ', budget: { usd: 0.000001, per: day }' })
  const { browser } = await logIn('1')
  const keys = [secretOf(await make(browser, 'a')), secretOf(await make(browser, 'b'))]
  t.match((await browser.ask('/budgets')).json, { budgets: [{ key: ALICE, limit_usd: '0.000001' }] })
  const statuses = await Promise.all(keys.map(key => statusOf(gateway.url, key)))
  t.ok(statuses.includes(429), 'both keys share one budget')
})

t.test('keys are refused where callers may not make them', async t => {
  const { idp, gateway, logIn } = await setUp(t)
  const { browser } = await logIn('1')
  t.match((await browser.ask('/own/keys')).json, { allowed: 0 })
  t.equal((await make(browser, 'a')).status, 403, 'the default is none')
  await gateway.change(yamlOf(idp.issuer, { keys: 2 }))
  const key = secretOf(await make(browser, 'a'))
  t.equal(await statusOf(gateway.url, key), 200)
  const thief = gateway.browser()
  t.equal((await thief.login({ key })).status, 201)
  t.match((await thief.ask('/session')).json, { user: { name: ALICE, role: 'key' } })
  t.equal((await make(thief, 'b')).status, 403, 'a key cannot make keys')
  t.equal((await thief.ask('/own/keys/a', { method: 'DELETE' })).status, 403)
  const { csrf } = browser
  browser.csrf = null
  t.equal((await make(browser, 'b')).status, 403, 'without the CSRF token')
  browser.csrf = csrf
  t.equal((await make(browser, 'a')).status, 409, 'one key has this label')
  for (const body of [{ expires_at: new Date(Date.now() + 92 * DAY).toISOString() }, { expires_at: new Date(0).toISOString() }, { label: '.' }]) {
    t.equal((await make(browser, 'c', body)).status, 400)
  }
  await gateway.change(yamlOf(idp.issuer))
  t.equal(await statusOf(gateway.url, key), 401, 'keys: 0 refuses those that exist')
})

t.test('an operator revokes the key of a caller, and a blocked caller has no keys', async t => {
  const { gateway, logIn } = await setUp(t, undefined, { keys: 3 })
  const [{ browser }, admin] = [await logIn('1'), await logIn('3')]
  const [key, other] = [secretOf(await make(browser, 'a')), secretOf(await make(browser, 'b'))]
  t.match((await admin.browser.ask('/keys')).json, { keys: [{}, {}, { name: `${ALICE}/a`, owner: ALICE, state: 'live' }, {}] })
  const path = `/keys/${encodeURIComponent(`${ALICE}/a`)}`
  t.equal((await admin.browser.ask(path, { method: 'PATCH', body: { limits: { concurrent: 1 } } })).status, 409)
  t.equal((await admin.browser.ask(path, { method: 'DELETE' })).status, 204)
  t.same([await statusOf(gateway.url, key), await statusOf(gateway.url, other)], [401, 200])
  const block = (action: string) => admin.browser.ask(`/callers/${encodeURIComponent(ALICE)}/${action}`, { method: 'POST' })
  t.equal((await block('block')).status, 204)
  t.equal(await statusOf(gateway.url, other), 401)
  t.match((await admin.browser.ask('/keys')).json, { keys: [{}, {}, {}, { state: 'blocked' }] })
  t.equal((await block('unblock')).status, 204)
  t.equal(await statusOf(gateway.url, other), 200)
})

t.test('revoked keys count for a day, so that a caller cannot fill the store', async t => {
  const { logIn } = await setUp(t, undefined, { keys: 1 })
  const { browser } = await logIn('1')
  for (let n = 0; n < 10; n++) {
    t.equal((await make(browser, 'a')).status, 201)
    t.equal((await browser.ask('/own/keys/a', { method: 'DELETE' })).status, 204)
  }
  t.equal((await make(browser, 'a')).status, 429)
})
