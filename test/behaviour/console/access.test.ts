import t from 'tap'
import { API as TABLE } from '../../../src/console/api/api.ts'
import type { Operation } from '../../../src/console/api/api.ts'
import { KEY } from '../../support/gateway.ts'
import { startUpstream } from '../../support/upstream.ts'
import { PASSWORD, SECOND_KEY, YAML, chat, cheapHash, makeKey, startConsole } from './console.ts'
import type { Answer, Browser } from './console.ts'

const HASH = cheapHash(PASSWORD)

/** The paths of all operations that read, with parameters filled in. */
function readings(id: string): string[] {
  return (Object.entries(TABLE) as [string, Operation][])
    .filter(([name]) => name.startsWith('GET '))
    .map(([name]) => name.slice(4).replace(':id', id))
    .map(path => (path === '/statement' ? '/statement?month=2026-01' : path))
}

async function everything(browser: Browser, id: string): Promise<Answer[]> {
  return Promise.all(readings(id).map(path => browser.ask(path)))
}

t.test('no operation of the console shows a key holder data of another key', async t => {
  const gateway = await startConsole(t)
  const [foreign, own] = [await chat(gateway, KEY, 'sim-foreign'), await chat(gateway, SECOND_KEY)]
  const idOf = (response: Response) => String(response.headers.get('x-gateway-request-id'))
  // The ledger writes rows a moment later, so the test reads the log until the last row is there.
  const admin = await gateway.login({ name: 'ops', password: PASSWORD })
  const seen = async () => ((await admin.ask('/logs')).json as { rows: unknown[] }).rows.length
  while (await seen() < 2) await new Promise(resolve => setImmediate(resolve))

  const holder = await gateway.login({ key: SECOND_KEY })
  const now = new Date(gateway.clock.wall())
  const month = now.toISOString().slice(0, 7)
  const paths = [
    ...readings(idOf(foreign)),
    ...['/panel', '/billing', '/billing.csv', '/logs', '/logs.csv'].flatMap(path => [
      `${path}?key=test`, `${path}?key=*`, `${path}?key=second&key=test`,
      `${path}?model=sim-foreign`, `${path}?upstream=sim`,
      `${path}?from=2020-01-01T00:00:00Z&to=2030-01-01T00:00:00Z`,
    ]),
    '/billing?by=key', '/billing?by=upstream', '/billing.csv?by=upstream',
    `/statement?month=${month}&key=test`, `/statement?month=${month}`,
  ]
  for (const path of paths) {
    const { status, text } = await holder.ask(path)
    t.notMatch(text, /sim-foreign/, `${path} (${status})`)
    t.notMatch(text, idOf(foreign), path)
    t.notMatch(text, /"test"|,test,/, path)
  }
  t.same(((await holder.ask(`/logs/${idOf(foreign)}`)).json as { stories: unknown[] }).stories, [])
  const { rows } = (await holder.ask('/logs')).json as { rows: Record<string, unknown>[] }
  t.match(rows, [{ request_id: idOf(own), key: 'second', upstream: null, upstream_model: null }])
  t.match((await holder.ask('/models')).json, { models: [{ name: 'demo', upstream: null }] })
})

t.test('a key holder sees no running requests of other keys, and no upstreams', async t => {
  const gateway = await startConsole(t, YAML.replace('models: [demo]', 'models: [demo, "sim*"]'))
  const stream = async (key: string) => {
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'sim,stall_after=3', stream: true, messages: [] }),
    })
    // Keeps the response, because a garbage collection of the response would cancel its body.
    t.teardown(() => response.body?.cancel())
  }
  await Promise.all([KEY, KEY, SECOND_KEY].map(stream))
  const holder = await gateway.login({ key: SECOND_KEY })
  t.match((await holder.ask('/live')).json, {
    running: 1, running_streams: 1, exchanges: { length: 1, 0: { key: 'second', upstream: null } },
  })
  const admin = await gateway.login({ name: 'ops', password: PASSWORD })
  t.match((await admin.ask('/live')).json, { running: 3, exchanges: { length: 3, 0: { upstream: 'sim' } } })
})

t.test('a key holder sees no budget of another key', async t => {
  const limits = 'limits: { budget: { usd: 5, per: day } }'
  const gateway = await startConsole(t, `${YAML.replace('name: test,', `name: test, ${limits},`)}${limits}\n`)
  const keysOf = async (login: object) => {
    const { json } = await (await gateway.login(login)).ask('/budgets')
    const { budgets, total } = json as { budgets: { key: string }[]; total: number }
    return [total, budgets.map(({ key }) => key)]
  }
  t.strictSame(await keysOf({ key: SECOND_KEY }), [1, ['second']])
  t.strictSame(await keysOf({ name: 'ops', password: PASSWORD }), [2, ['test', 'second']])
})

t.test('no response of the console contains a secret, for any role', async t => {
  const upstream = await startUpstream(t, (_req, res) => res.writeHead(401).end('wrong key, from the account HOLDERS-DO-NOT-SEE'))
  const SECRETS = {
    UP: 'SECRET-FROM-ENVIRONMENT-1', HEADER: 'SECRET-FROM-ENVIRONMENT-2', TEAM: 'team-key-SECRET-FROM-ENVIRONMENT-3',
  }
  const gateway = await startConsole(t, `${YAML.replace(/^upstreams.*$/m, `
upstreams:
  sim: { simulator: true }
  up:
    url: "${upstream.url}"
    auth: { header: x-api-key, value: "\${UP}" }
    headers: { x-one: "\${HEADER}", x-two: SECRET-WRITTEN-OUT, x-three: "\${NONE:-SECRET-DEFAULT}" }
`).replace('routes: [', 'routes: [{ model: up, to: up }, ')
  .replace('keys: [', 'keys: [{ name: team, key: "${TEAM}" }, ')}
# SECRET-IN-A-COMMENT
`, SECRETS)
  await chat(gateway, SECRETS.TEAM, 'up')
  const response = await chat(gateway)
  const id = String(response.headers.get('x-gateway-request-id'))
  const admin = await gateway.login({ name: 'ops', password: PASSWORD })
  const made = await makeKey(admin, 'made')
  await gateway.browser().login({ key: 'SECRET-MISTYPED' })
  await gateway.browser().login({ name: 'SECRET-IN-THE-WRONG-FIELD', password: 'SECRET-PASSWORD' })
  await gateway.change(`${YAML}\nupstream: { x: { auth: { bearer: SECRET-IN-A-BROKEN-FILE } } }`)

  const forbidden = [
    KEY, SECOND_KEY, made, PASSWORD, HASH, HASH.split(':').at(-1) as string,
    admin.cookie?.split('=')[1] as string,
    'SECRET',
  ]
  const people = [
    admin,
    await gateway.login({ name: 'eye', password: PASSWORD }),
    await gateway.login({ key: KEY }),
    gateway.browser(),
  ]
  for (const [index, browser] of people.entries()) {
    const answers = [
      ...await everything(browser, id),
      await browser.ask('/openapi.json'),
      await browser.ask('/explain', {
        method: 'POST', body: { path: '/v1/chat/completions', model: 'up', key: 'team' },
      }),
    ]
    for (const { text, headers } of answers) {
      const all = text + JSON.stringify([...headers])
      for (const secret of index < 2 ? forbidden : [...forbidden, 'HOLDERS-DO-NOT-SEE']) {
        t.notOk(all.includes(secret), `${secret.slice(0, 12)} in ${text.slice(0, 80)}`)
      }
    }
  }
  const { text } = await admin.ask('/configuration')
  for (const name of ['${UP}', '${HEADER}', '${TEAM}', '${NONE:-***}']) t.match(text, name)
  t.match((await admin.ask('/live')).json, {
    concerns: [{ kind: 'reload_failed' }, { kind: 'upstream_key_rejected' }],
  })
  t.notMatch(JSON.stringify(gateway.logged), /SECRET-/)
})
