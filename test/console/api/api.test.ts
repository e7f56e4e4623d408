import { Ajv } from 'ajv'
import addFormats from 'ajv-formats'
import t from 'tap'
import { API as TABLE } from '../../../src/console/api/api.ts'
import type { Operation, OperationName } from '../../../src/console/api/api.ts'
import { KEY } from '../../support/gateway.ts'
import { PASSWORD, chat, startConsole } from '../../behaviour/console/console.ts'
import type { Answer, Browser, Extra } from '../../behaviour/console/console.ts'

/**
 * Every operation of the table, by everybody. An operation that joins the table is
 * walked too; only where it needs something in its query, path or body it has to
 * be said here.
 */
const QUERIES: Partial<Record<OperationName, string>> = { 'GET /statement': '?month=2026-01&key=test' }
const BODIES: Partial<Record<OperationName, object>> = {
  'POST /session': { name: 'ops', password: PASSWORD },
  'POST /keys': { name: 'walked' },
  'POST /own/keys': { label: 'walked', expires_at: new Date(Date.now() + 86_400_000).toISOString() },
  'POST /keys/find': { key: KEY },
  'PATCH /keys/:name': { models: ['demo'] },
  'POST /keys/:name/rotate': {},
  'POST /session/single-sign-on': { return_to: '/console/' },
  'POST /explain': { path: '/v1/chat/completions', model: 'demo' },
}
const PARAMS: Readonly<Record<string, string>> = { ':name': 'walked', ':label': 'walked', ':id': 'no-such-request' }
/** Statuses of operations whose object does not exist, or not in the needed state. */
const ALSO: Partial<Record<OperationName, number>> = {
  // No bodies are logged.
  'GET /logs/:id/bodies': 404,
  // `walked` is a stored key and is not blocked.
  'POST /keys/:name/unblock': 404,
  // There is no identity provider.
  'POST /session/single-sign-on': 404,
  // `walked` is a key, not an upstream.
  'GET /upstreams/:name': 404,
  // `walked` was revoked by an earlier operation.
  'DELETE /keys/:name': 404,
  'PATCH /keys/:name': 404,
  'POST /keys/:name/rotate': 404,
  'POST /keys': 409,
  // No callers are configured: nobody has keys of its own or can be blocked.
  'POST /own/keys': 403,
  'POST /callers/:name/block': 404,
  'POST /callers/:name/unblock': 404,
  'DELETE /own/keys/:label': 403,
}

const OPERATIONS = Object.entries(TABLE) as [OperationName, Operation][]
const ajv = new Ajv({ strict: false })
;(addFormats as unknown as (ajv: Ajv) => void)(ajv)

function send(browser: Browser, name: OperationName, headers: Record<string, string> = {}): Promise<Answer> {
  const [method = '', path = ''] = name.split(' ')
  const extra: Extra = { method, headers, ...BODIES[name] && { body: BODIES[name] } }
  return browser.ask(path.replace(/:\w+/, param => PARAMS[param] ?? '') + (QUERIES[name] ?? ''), extra)
}

const isReading = (name: string) => name.startsWith('GET ')

const gateway = await startConsole(t)
await chat(gateway)
const people = {
  admin: () => gateway.login({ name: 'ops', password: PASSWORD }),
  viewer: () => gateway.login({ name: 'eye', password: PASSWORD }),
  key: () => gateway.login({ key: KEY }),
}

for (const [name, { roles, status = 200, response }] of OPERATIONS) {
  t.test(name, async t => {
    for (const role of ['admin', 'viewer', 'key'] as const) {
      const browser = await people[role]()
      const answer = await send(browser, name)
      if (roles === null || roles.includes(role)) {
        t.ok(
          answer.status === status || answer.status === ALSO[name],
          `${role}: ${answer.status} ${answer.text.slice(0, 200)}`,
        )
        if (answer.status === 200 && response !== null) {
          t.ok(
            ajv.validate(response, answer.json),
            `${role}: the response is as the table says: ${ajv.errorsText()}`,
          )
        }
      } else {
        t.match(answer, { status: 403, json: { code: 'forbidden' } }, role)
      }
      t.equal(answer.headers.get('cache-control'), 'no-store')
    }

    const stranger = await send(gateway.browser(), name)
    if (roles !== null) t.match(stranger, { status: 401, json: { code: 'not_logged_in' } }, 'nobody')

    const late = await people.admin()
    gateway.clock.advance(31 * 60_000)
    if (roles !== null) t.match(await send(late, name), { status: 401 }, 'an expired session')

    const allowed = await people[roles?.includes('admin') === false ? 'key' : 'admin']()
    const { csrf } = allowed
    if (!isReading(name)) {
      // A login has no session, and so no CSRF token.
      if (name !== 'POST /session' && name !== 'POST /session/single-sign-on') {
        for (const wrong of [null, '', 'x'.repeat(43)]) {
          allowed.csrf = wrong
          t.match(await send(allowed, name), { status: 403, json: { code: 'forbidden' } }, `token ${wrong}`)
        }
      }
      allowed.csrf = csrf
      for (const origin of [
        'https://evil.example', 'null', gateway.console.replace('http:', 'https:'),
        `${gateway.console}.evil.example`,
      ]) {
        t.match(
          await send(allowed, name, { origin }),
          { status: 403, json: { code: 'forbidden' } }, `origin ${origin}`,
        )
      }
    }
    for (const site of ['cross-site', 'same-site']) {
      t.match(await send(allowed, name, { 'sec-fetch-site': site }), { status: 403 }, site)
    }
    const own = await send(allowed, name, { 'origin': gateway.console, 'sec-fetch-site': 'same-origin' })
    t.ok(own.status === status || own.status === ALSO[name], `from the console itself: ${own.status}`)
  })
}

t.test('an unknown operation gives 404 to every role', async t => {
  const admin = await people.admin()
  for (
    const [method, path] of [
      ['GET', '/nothing'], ['PUT', '/keys'], ['DELETE', '/panel'], ['GET', '/'],
    ] as const
  ) {
    t.match(
      await admin.ask(path, { method }), { status: 404, json: { code: 'not_found' } }, `${method} ${path}`,
    )
  }
})

t.test('an invalid query is refused, and the response names the invalid parameter', async t => {
  const admin = await people.admin()
  for (const [path, field] of [
    ['/panel?from=yesterday', 'from'],
    ['/panel?fron=2026-01-01T00:00:00Z', 'fron'],
    ['/logs?limit=0', 'limit'],
    ['/logs?limit=ten', 'limit'],
    ['/logs?status=9xx', 'status'],
    ['/billing?by=colour', 'by'],
    ['/statement', 'month'],
    ['/statement?month=2026-13', 'month'],
    [`/panel?key=${'x'.repeat(300)}`, 'key'],
  ] as const) {
    t.match(await admin.ask(path), { status: 400, json: { code: 'bad_request', field } }, path)
  }
  for (const [body, field] of [
    [{}, 'name'],
    [{ name: 5 }, 'name'],
    [{ name: '' }, 'name'],
    [{ name: 'console:x' }, 'name'],
    [{ name: 'a\nb' }, 'name'],
    [{ name: 'a', colour: 'red' }, 'colour'],
    [{ name: 'a', limits: { concurrent: 0 } }, 'limits.concurrent'],
    [{ name: 'a', limits: { concurrent: '5' } }, 'limits'],
    [{ name: 'a', limits: { budget: { usd: '1e9', per: 'day' } } }, undefined],
    [{ name: 'a', models: [''] }, 'models'],
  ] as const) {
    const answer = await admin.ask('/keys', { method: 'POST', body })
    t.match(
      answer,
      { status: 400, json: { code: 'bad_request', ...field !== undefined && { field } } },
      JSON.stringify(body),
    )
  }
  const large = { name: 'x', models: Array.from({ length: 1000 }, () => 'y'.repeat(200)) }
  t.match(await admin.ask('/keys', { method: 'POST', body: large }), {
    status: 413, json: { code: 'bad_request' },
  })
  t.match(await admin.ask('/keys', {
    method: 'POST', body: { name: 'x' }, headers: { 'content-type': 'text/plain' },
  }),
    { status: 415, json: { code: 'bad_request' } })
})
