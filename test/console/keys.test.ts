import { hash } from 'node:crypto'
import { join } from 'node:path'
import t from 'tap'
import { KeyFile, keyFileOf } from '../../src/auth/key-file.ts'
import { PASSWORD, SECOND_KEY, YAML, chat, makeKey, startConsole } from '../behaviour/console/console.ts'
import type { Browser } from '../behaviour/console/console.ts'
import { gateway as command } from '../cli/command.ts'
import { KEY } from '../support/gateway.ts'
import { connect, post } from '../support/wire.ts'

const OPS = { name: 'ops', password: PASSWORD }

async function keysOf(browser: Browser) {
  const { keys } = (await browser.ask('/keys')).json as { keys: Record<string, unknown>[] }
  return new Map(keys.map(key => [key['name'], key]))
}

async function actions(browser: Browser): Promise<string[]> {
  const { entries } = (await browser.ask('/audit')).json as { entries: Record<string, unknown>[] }
  return entries.map(
    ({ action, subject, detail, actor }) => [action, subject, detail, actor].filter(Boolean).join(' | '),
  )
}

t.test('the value of a new key is shown only at its creation, and the key is accepted immediately', async t => {
  const gateway = await startConsole(t)
  const admin = await gateway.login(OPS)
  const limits = {
    requests_per_minute: 60, budget: { usd: '0.5', per: 'day' }, models: { demo: { concurrent: 2 } },
  }
  const answer = await admin.ask('/keys', {
    method: 'POST', body: { name: 'made', models: ['demo', 'sim*'], limits },
  })
  t.match(answer, { status: 201, json: { name: 'made', key: /^mgw_\w{38}$/ } })
  const { key } = answer.json as { key: string }
  t.equal((await chat(gateway, key)).status, 200)
  t.equal((await chat(gateway, key, 'other-model')).status, 403)
  const listed = await keysOf(admin)
  t.match(listed.get('made'), {
    origin: 'store', place: null, state: 'live', models: ['demo', 'sim*'], limits, revoked_at: null,
  })
  t.match(listed.get('test'), {
    origin: 'config', place: /gateway\.yaml:\d+$/, state: 'live', created_at: null,
  })
  t.notMatch(JSON.stringify([...listed]), key.slice(4))
  t.match(await admin.ask('/keys', { method: 'POST', body: { name: 'made' } }), {
    status: 409, json: { code: 'conflict', field: 'name' },
  })
  t.match(await admin.ask('/keys', { method: 'POST', body: { name: 'test' } }), {
    status: 409, json: { code: 'conflict', field: 'name' },
  })
})

t.test('a key can be created with a description and an expiry, and rotated', async t => {
  const gateway = await startConsole(t)
  const admin = await gateway.login(OPS)
  const expires = new Date(gateway.clock.wall() + 86_400_000).toISOString()
  const described = { owner: 'research', note: 'batch jobs', expires_at: expires }
  const made = await admin.ask('/keys', { method: 'POST', body: { name: 'made', ...described } })
  t.equal(made.status, 201)
  const { key: first } = made.json as { key: string }
  t.match((await keysOf(admin)).get('made'), { ...described, prefix: first.slice(0, 8), old_secrets: [] })
  const rotated = await admin.ask('/keys/made/rotate', { method: 'POST', body: { grace_seconds: 3_600 } })
  t.equal(rotated.status, 201)
  const { key: second } = rotated.json as { key: string }
  t.strictSame([(await chat(gateway, first)).status, (await chat(gateway, second)).status], [200, 200])
  t.match((await keysOf(admin)).get('made'), {
    ...described, prefix: second.slice(0, 8),
    old_secrets: [{ sha256_prefix: hash('sha256', first).slice(0, 8), valid_until: String }],
  })
  t.match(await admin.ask('/keys/find', { method: 'POST', body: { key: first } }), { json: { owner: { name: 'made' } } })
  t.equal((await admin.ask('/keys/made', { method: 'PATCH', body: { owner: null, note: 'x' } })).status, 204)
  t.match((await keysOf(admin)).get('made'), { owner: null, note: 'x', expires_at: expires })
  t.match((await actions(admin)).slice(0, 3), [
    'key.changed | made | owner: none; note: x | console: ops',
    /^key\.rotated \| made \| old secret valid until .* \| console: ops$/,
    `key.created | made | owner: research; note: batch jobs; expires: ${expires} | console: ops`,
  ])
  t.match(await admin.ask('/keys/nobody/rotate', { method: 'POST', body: {} }), { status: 404 })
  t.match(await admin.ask('/keys/test/rotate', { method: 'POST', body: {} }), { status: 409 })
  for (const wrong of [{ expires_at: '2020-01-01T00:00:00Z' }, { owner: ' ' }, { note: 'a\nb' }]) {
    t.equal((await admin.ask('/keys', { method: 'POST', body: { name: 'wrong', ...wrong } })).status, 400, JSON.stringify(wrong))
  }
  const viewer = await gateway.login({ name: 'eye', password: PASSWORD })
  t.equal((await viewer.ask('/keys/made/rotate', { method: 'POST', body: {} })).status, 403)
})

t.test('a key name that is invisible or cannot be part of a URL is refused', async t => {
  const gateway = await startConsole(t)
  const admin = await gateway.login(OPS)
  for (const name of ['.', '..', ' ', '\u3000', '\u200b', '\u3164', 'a\ud800']) {
    t.match(await admin.ask('/keys', { method: 'POST', body: { name } }), {
      status: 400, json: { code: 'bad_request', field: 'name' },
    }, JSON.stringify(name))
  }
  t.match(await admin.ask('/keys', { method: 'POST', body: { name: '...' } }), { status: 201 })
  t.match(await admin.ask('/keys/...', { method: 'DELETE' }), { status: 204 })
})

t.test('a key can be looked up by its value, which returns only its name, origin and state', async t => {
  const gateway = await startConsole(t)
  const admin = await gateway.login(OPS)
  const key = await makeKey(admin, 'made')
  const find = async (text: string) => {
    const answer = await admin.ask('/keys/find', { method: 'POST', body: { key: text } })
    t.equal(answer.status, 200)
    t.notMatch(answer.text, text)
    return (answer.json as { owner: unknown }).owner
  }
  t.strictSame(await find(key), { name: 'made', origin: 'store', state: 'live' })
  t.strictSame(await find(KEY), { name: 'test', origin: 'config', state: 'live' })
  for (const name of ['made', 'test']) {
    t.equal((await admin.ask(`/keys/${name}`, { method: 'DELETE' })).status, 204)
  }
  t.strictSame(await find(key), { name: 'made', origin: 'store', state: 'revoked' })
  t.strictSame(await find(KEY), { name: 'test', origin: 'config', state: 'blocked' })
  t.equal(await find(key.slice(0, -1)), null)
})

t.test('changed limits and models apply as soon as the call returns', async t => {
  const gateway = await startConsole(t)
  const admin = await gateway.login(OPS)
  const key = await makeKey(admin, 'made')
  const change = (body: object) => admin.ask('/keys/made', { method: 'PATCH', body })
  t.equal((await chat(gateway, key, 'sim')).status, 200)
  t.equal((await change({ models: ['demo'] })).status, 204)
  t.equal((await chat(gateway, key, 'sim')).status, 403)
  t.equal((await change({ limits: { requests_per_minute: 1 } })).status, 204)
  t.same([(await chat(gateway, key)).status, (await chat(gateway, key)).status], [200, 429])
  t.match(
    (await keysOf(admin)).get('made'),
    { models: ['demo'], limits: { requests_per_minute: 1 } },
    'members that the change does not name stay',
  )
  t.equal((await change({ models: null, limits: null })).status, 204)
  t.equal((await chat(gateway, key, 'sim')).status, 200)
  t.equal((await change({})).status, 204)
  t.match((await actions(admin)).slice(0, 3), [
    /^key\.changed \| made \| models: all; limits: none/,
    /limits: 1 requests\/min/,
    /models: demo/,
  ])
  t.match(await admin.ask('/keys/nobody', { method: 'PATCH', body: {} }), { status: 404 })
  t.match(await admin.ask('/keys/test', { method: 'PATCH', body: { models: null } }), {
    status: 409, json: { message: /gateway\.yaml/ },
  })
})

t.test('two concurrent changes of different members of a key both apply', async t => {
  const gateway = await startConsole(t)
  const admin = await gateway.login(OPS)
  await makeKey(admin, 'made')
  const change = (body: object) => admin.ask('/keys/made', { method: 'PATCH', body })
  await Promise.all([change({ models: ['demo'] }), change({ limits: { concurrent: 2 } })])
  t.match((await keysOf(admin)).get('made'), { models: ['demo'], limits: { concurrent: 2 } })
  await Promise.all([change({ limits: null }), change({ models: null })])
  t.match((await keysOf(admin)).get('made'), { models: null, limits: null })
})

t.test('the revocation or block of a key refuses new requests of the key and ends its running requests', async t => {
  const gateway = await startConsole(t)
  const admin = await gateway.login(OPS)
  const key = await makeKey(admin, 'made')
  const stream = async (credential: string) => {
    const wire = await connect(t, gateway.url)
    const body = { model: 'sim,stall_after=2', stream: true, messages: [] }
    wire.send(post('/v1/chat/completions', body).replace(KEY, credential))
    await wire.until(/data: .*\n\n/)
    return wire
  }
  const [made, other] = [await stream(key), await stream(KEY)]
  t.match((await admin.ask('/live')).json, {
    running: 2, exchanges: [{ key: 'made', stream: true }, { key: 'test' }],
  })
  t.equal((await admin.ask('/keys/made', { method: 'DELETE' })).status, 204)
  await made.ended
  t.match(made.text, /key_revoked/)
  t.equal((await chat(gateway, key)).status, 401)
  t.match((await keysOf(admin)).get('made'), { state: 'revoked', revoked_at: /^20/ })
  t.equal((await admin.ask('/keys/made', { method: 'DELETE' })).status, 404)

  t.equal((await admin.ask('/keys/test', { method: 'DELETE' })).status, 204)
  await other.ended
  t.equal((await chat(gateway, KEY)).status, 401)
  t.match((await keysOf(admin)).get('test'), { state: 'blocked', origin: 'config' })
  t.match(await gateway.waitForLog(({ error }) => error === 'key_revoked'), { end: 'error', status: 200 })
})

t.test('the revocation of a key ends a request of the key whose body is incomplete', async t => {
  const gateway = await startConsole(t)
  const admin = await gateway.login(OPS)
  const key = await makeKey(admin, 'made')
  const wire = await connect(t, gateway.url)
  const whole = post('/v1/chat/completions', { model: 'sim', messages: [] }).replace(KEY, key)
  const [head, body = ''] = whole.split('\r\n\r\n')
  wire.send(`${head}\r\nExpect: 100-continue\r\n\r\n`)
  await wire.until(/100 Continue\r\n\r\n$/)
  wire.clear()
  wire.send(body.slice(0, -1))
  t.equal((await admin.ask('/keys/made', { method: 'DELETE' })).status, 204)
  t.match(await wire.until(/\}$/), /^HTTP\/1\.1 401 [^]*"code":"key_revoked"/)
  t.match(await gateway.waitForLog(({ error }) => error === 'key_revoked'), { end: 'error', status: 401 })
})

t.test('the revocation of a stored key does not end its requests if gateway.yaml has the same key', async t => {
  const gateway = await startConsole(t)
  const admin = await gateway.login(OPS)
  const key = await makeKey(admin, 'made')
  const sha256 = hash('sha256', key)
  const moved = YAML.replace('keys: [', `keys: [{ name: moved, sha256: ${sha256} }, `)
  t.match(await gateway.change(moved), { applied: true })
  const wire = await connect(t, gateway.url)
  const body = { model: 'sim,pace=20ms', stream: true, messages: [] }
  wire.send(post('/v1/chat/completions', body).replace(KEY, key))
  await wire.until(/data: .*\n\n/)
  t.equal((await admin.ask('/keys/made', { method: 'DELETE' })).status, 204)
  await wire.until(/data: \[DONE\]|key_revoked/)
  t.notMatch(wire.text, /key_revoked/)
  t.equal((await chat(gateway, key)).status, 200)
})

t.test('a key stays blocked after reloads, even with another name, until the key is unblocked', async t => {
  const gateway = await startConsole(t)
  const admin = await gateway.login(OPS)
  t.equal((await admin.ask('/keys/second', { method: 'DELETE' })).status, 204)
  t.equal((await admin.ask('/keys/second', { method: 'DELETE' })).status, 204, 'a second block has no effect')
  t.equal((await chat(gateway, SECOND_KEY)).status, 401)
  t.match(await gateway.change(`${YAML}\nbilling: { abandoned: none }\n`), { applied: true })
  t.equal((await chat(gateway, SECOND_KEY)).status, 401)
  // The block applies to the value of the key, whatever its name.
  t.match(await gateway.change(YAML.replace('name: second', 'name: renamed')), { applied: true })
  t.equal((await chat(gateway, SECOND_KEY)).status, 401)
  t.equal((await admin.ask('/keys/second/unblock', { method: 'POST' })).status, 404)
  t.equal((await admin.ask('/keys/renamed/unblock', { method: 'POST' })).status, 204)
  t.equal((await chat(gateway, SECOND_KEY)).status, 200)
})

t.test('gateway keys and the console have the same blocks and the same audit list', async t => {
  const gateway = await startConsole(t)
  const run = (...args: string[]) => command(['keys', ...args, '--config', gateway.file])
  const admin = await gateway.login(OPS)
  t.match(await run('block', '--name', 'second'), { code: 0, stdout: 'Blocked the key "second".\n' })
  t.equal((await chat(gateway, SECOND_KEY)).status, 401)
  t.match(await run('block', '--name', 'second'), { code: 0, stdout: 'was blocked already' })
  t.match((await keysOf(admin)).get('second'), { state: 'blocked' })
  const { stdout } = await run('list', '--json')
  const listed = stdout.trimEnd().split('\n').map(line => JSON.parse(line) as Record<string, unknown>)
  t.match(listed.find(({ name }) => name === 'second'), {
    blocked_at: /^20/, sha256_prefix: hash('sha256', SECOND_KEY).slice(0, 8),
  })
  t.match((await run('list')).stdout, 'BLOCKED')
  t.match(await run('unblock', '--name', 'second'), { code: 0, stdout: 'Unblocked the key "second".\n' })
  t.equal((await chat(gateway, SECOND_KEY)).status, 200)
  t.match(await run('unblock', '--name', 'second'), { code: 1, stderr: '"second" is not blocked' })
  t.match(await run('block', '--name', 'secund'), { code: 1, stderr: 'did you mean "second"' })
  t.match(await run('create', '--name', 'console:ops'), { code: 2, stdout: '' })
  const { stdout: key } = await run('create', '--name', 'line')
  t.equal((await admin.ask('/keys/line', { method: 'PATCH', body: { models: ['demo'] } })).status, 204)
  t.equal((await chat(gateway, key.trim())).status, 200)
  await run('revoke', 'line')
  t.equal((await chat(gateway, key.trim())).status, 401)
  const who = /command line: \S+/
  const told = await actions(admin)
  t.match(told, [
    /^key\.revoked \| line \| command line: /,
    'key.changed | line | models: demo | console: ops',
    /^key\.created \| line \| command line: /,
    /^key\.unblocked \| second \| command line: /,
    /^key\.blocked \| second \| command line: /,
    'login | console: ops',
  ])
  t.match(told[0], who)
  t.equal(told.length, 6)
})

t.test('without a ledger, the console stores no keys and gives the reason', async t => {
  const gateway = await startConsole(t, YAML.replace(/^ledger.*$/m, ''))
  const admin = await gateway.login(OPS)
  t.match((await admin.ask('/keys')).json, {
    store: { writable: false, reason: /ledger/ }, keys: [{ name: 'test' }, { name: 'second' }],
  })
  for (
    const [method, path] of [['POST', '/keys'], ['DELETE', '/keys/test'], ['PATCH', '/keys/test']] as const
  ) {
    const answer = await admin.ask(path, { method, ...method !== 'DELETE' && { body: { name: 'x' } } })
    t.match(answer.status, method === 'PATCH' ? 400 : 409, `${method} ${path}`)
  }
  t.match((await admin.ask('/audit')).json, { entries: [{ action: 'login' }] })
  t.match((await admin.ask('/panel')), { status: 503, json: { code: 'unavailable', message: /ledger/ } })
  t.match((await admin.ask('/live')).json, { concerns: [{ kind: 'ledger' }] })
  t.equal((await admin.ask('/upstreams')).status, 200)
})

t.test('the audit list has pages of 100 events', async t => {
  const gateway = await startConsole(t)
  const admin = await gateway.login(OPS)
  using file = new KeyFile(keyFileOf(join(gateway.file, '..', 'data', 'ledger.db')))
  for (let at = 1; at <= 102; at++) {
    file.recordAuditEvent({ at, actor: 'test', address: null, action: 'key.changed', subject: `key ${at}`, detail: null })
  }
  const first = (await admin.ask('/audit')).json as { entries: { id: number }[]; next: number }
  t.equal(first.entries.length, 100)
  const second = (await admin.ask(`/audit?before=${first.next}`)).json as {
    entries: { id: number; action: string }[]
    next: null
  }
  t.equal(second.entries.length, 3)
  t.equal(second.next, null)
  t.equal(second.entries.at(-1)?.action, 'login')
  t.equal(new Set([...first.entries, ...second.entries].map(({ id }) => id)).size, 103)
})
