import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { KeyFile } from '../../../src/auth/key-file.ts'
import { gateway as command, listening } from '../../cli/command.ts'
import { withFolder } from '../../support/folder.ts'
import type { FolderOwner } from '../../support/folder.ts'
import { startTestGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { PASSWORD as OPERATOR_PASSWORD, cheapHash } from '../../support/operator.ts'
import { PASSWORD, startPostgres, withoutPostgres } from '../../support/postgres.ts'
import { startTcpProxy } from '../../support/tcp-proxy.ts'
import { Browser } from '../../behaviour/console/console.ts'

const start = (machine: FolderOwner, instance: string, url: string): Promise<TestGateway> => startTestGateway(machine, `
console: { listen: 127.0.0.1:0, users: [{ name: ops, password: "${cheapHash(OPERATOR_PASSWORD)}", role: admin }] }
upstreams: { demo: { simulator: true } }
routes: [{ to: demo }]
ledger: { file: gateway.db }
cluster: { instance: ${instance}, postgres: "${url}" }
`)

async function ask({ url }: TestGateway, key: string): Promise<number> {
  const response = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${key}` } })
  await response.text()
  return response.status
}

async function chat({ url }: TestGateway, key: string): Promise<void> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'demo', messages: [{ role: 'user', content: 'Hello' }] }),
  })
  await response.text()
}

const askAll = (gateways: readonly TestGateway[], key: string) => Promise.all(gateways.map(gateway => ask(gateway, key)))

async function login({ addresses }: TestGateway): Promise<Browser> {
  const browser = new Browser(addresses.console ?? '')
  await browser.login({ name: 'ops', password: OPERATOR_PASSWORD })
  return browser
}

const keys = ({ file }: TestGateway, ...args: string[]) => command(['keys', ...args, '--config', file])

t.test('keys of several gateways', { skip: withoutPostgres, timeout: 120_000 }, async t => {
  const postgres = await startPostgres(t)

  t.test('each change is active at all gateways when the command returns', async t => {
    const gateways = [await start(withFolder(t), 'gw1', postgres.url()), await start(withFolder(t), 'gw2', postgres.url())]
    const [first, second] = gateways as [TestGateway, TestGateway]
    const created = await keys(first, 'create', '--name', 'team-a', '--owner', 'research', '--limit', 'budget=50/month')
    t.equal(created.code, 0, created.stderr)
    t.notMatch(created.stderr, 'warning')
    const secret = created.stdout.trim()
    t.strictSame(await askAll(gateways, secret), [200, 200])
    t.match((await keys(second, 'create', '--name', 'team-a')).stderr, /a live key has the name "team-a" already/)

    const rotated = (await keys(second, 'rotate', 'team-a', '--grace', '1h')).stdout.trim()
    t.strictSame([...await askAll(gateways, secret), ...await askAll(gateways, rotated)], [200, 200, 200, 200])
    t.match((await keys(first, 'list')).stdout, /team-a .* research .* 50 USD a month/)
    const lastUsed = async (of: TestGateway) => {
      const { stdout } = await keys(of, 'list', '--json')
      return stdout.split('\n').filter(line => line.includes('"team-a"')).map(line => (JSON.parse(line) as Record<string, unknown>)['last_used_at'])[0]
    }
    await chat(second, rotated)
    while (await lastUsed(first) === null) await new Promise(resolve => setTimeout(resolve, 50))
    t.match(await lastUsed(first), /Z$/, 'last_used is shared with the other gateway')
    const revoked = await keys(first, 'revoke', secret)
    t.equal(revoked.code, 0, revoked.stderr)
    t.strictSame([...await askAll(gateways, secret), ...await askAll(gateways, rotated)], [401, 401, 401, 401])

    const admin = await login(second)
    const made = (await admin.ask('/keys', { method: 'POST', body: { name: 'made', group: undefined } })).json as { key: string }
    t.strictSame(await askAll(gateways, made.key), [200, 200])
    t.equal((await admin.ask('/keys/made', { method: 'PATCH', body: { models: ['nothing'] } })).status, 204)
    t.match((await keys(first, 'list', '--json')).stdout, /"name":"made".*"models":\["nothing"\]/)
    t.equal((await admin.ask('/keys/test', { method: 'DELETE' })).status, 204, 'blocks a key of gateway.yaml')
    t.strictSame(await askAll(gateways, 'sk-test-0123456789abcdef'), [401, 401])
    t.equal((await keys(first, 'unblock', '--name', 'test')).code, 0)
    t.strictSame(await askAll(gateways, 'sk-test-0123456789abcdef'), [200, 200])
  })

  t.test('each worker of a gateway applies a change before the command returns', async t => {
    await postgres.createDatabase()
    const { folder } = withFolder(t)
    using before = new KeyFile(join(folder, 'keys.db'))
    before.create({ name: 'before', digest: Buffer.alloc(32, 1), models: null, limits: null }, 1, { actor: 'command line: root', address: null })
    const file = join(folder, 'gateway.yaml')
    writeFileSync(file, `
server: { listen: 127.0.0.1:0, workers: 2 }
upstreams: { demo: { simulator: true } }
routes: [{ to: demo }]
ledger: { file: gateway.db }
cluster: { instance: gw1, postgres: "${postgres.url()}" }
`)
    const running = await listening(t, ['serve', '--config', file])
    const processes = async () => (await postgres.query('SELECT count(*)::int AS n FROM gateway.instances'))[0]?.['n']
    while (await processes() !== 2) await new Promise(resolve => setTimeout(resolve, 50))
    const run = (...args: string[]) => command(['keys', ...args, '--config', file])
    // Each request on a new connection, so that both workers get requests.
    const statuses = async (key: string) => {
      const all = await Promise.all(Array.from({ length: 12 }, async () => {
        const response = await fetch(`${running.base}/v1/models`, { headers: { authorization: `Bearer ${key}`, connection: 'close' } })
        await response.text()
        return response.status
      }))
      return [...new Set(all)]
    }
    const created = await run('create', '--name', 'team-a')
    t.notMatch(created.stderr, 'warning')
    const secret = created.stdout.trim()
    t.strictSame(await statuses(secret), [200])
    const revoked = await run('revoke', 'team-a')
    t.equal(revoked.code, 0, revoked.stderr)
    t.strictSame(await statuses(secret), [401])
    const names = await postgres.query('SELECT name FROM gateway.keys ORDER BY id')
    t.strictSame(names.map(({ name }) => name), ['before', 'team-a'], 'two workers upload a key once')
  })

  t.test('sessions and the audit list are shared by all consoles', async t => {
    await postgres.createDatabase()
    const gateways = [await start(withFolder(t), 'gw1', postgres.url()), await start(withFolder(t), 'gw2', postgres.url())]
    const [first, second] = gateways as [TestGateway, TestGateway]
    const browser = await login(first)
    const other = new Browser(second.addresses.console ?? '')
    Object.assign(other, { cookie: browser.cookie, csrf: browser.csrf })
    t.equal((await other.ask('/keys', { method: 'POST', body: { name: 'made' } })).status, 201)
    const { entries } = (await browser.ask('/audit')).json as { entries: Record<string, unknown>[] }
    t.match(entries, [{ action: 'key.created', subject: 'made', actor: 'console: ops' }, { action: 'login' }])
    t.equal((await other.ask('/session', { method: 'DELETE' })).status, 204)
    t.equal((await browser.ask('/audit')).status, 401, 'logged out at both')
  })

  t.test('while PostgreSQL is unreachable, known keys work, also after a restart, and changes of keys are refused', async t => {
    await postgres.createDatabase()
    const proxy = await startTcpProxy(t, postgres.port)
    const place = withFolder(t)
    const gateway = await start(place, 'gw1', postgres.url(proxy.port))
    const secret = (await keys(gateway, 'create', '--name', 'team-a')).stdout.trim()
    proxy.cut()
    t.equal(await ask(gateway, secret), 200)
    const refused = await keys(gateway, 'revoke', 'team-a')
    t.equal(refused.code, 1)
    t.match(refused.stderr, /^error: the keys are in PostgreSQL: .*; nothing was changed\n$/)
    t.notMatch(refused.stderr, PASSWORD)
    t.match(await keys(gateway, 'list'), { code: 0, stdout: /team-a/, stderr: /these are the keys that this gateway knows/ })
    const admin = await login(gateway)
    t.match(await admin.ask('/keys', { method: 'POST', body: { name: 'made' } }), { status: 503, json: { message: /Nothing was changed/ } })
    t.match((await admin.ask('/keys')).json, { keys: [{ name: 'test' }, { name: 'team-a' }] })
    await gateway.close()

    const again = await start(place, 'gw1', postgres.url(proxy.port))
    t.equal(await ask(again, secret), 200, 'from the copy on disk')
    await again.waitForLog(({ msg }) => msg === 'keys in PostgreSQL cannot be read: the keys read before stay active')
    const direct = await start(withFolder(t), 'gw2', postgres.url())
    // The first gateway, without PostgreSQL, cannot report its end.
    t.match(await keys(direct, 'revoke', 'team-a'), { code: 1, stderr: /a running gateway has not confirmed it/ })
    t.equal(await ask(direct, secret), 401)
    t.equal(await ask(again, secret), 200, 'the gateway without PostgreSQL still accepts the key')
    proxy.heal()
    await again.waitForLog(({ msg }) => msg === 'keys in PostgreSQL can be read again')
    t.equal(await ask(again, secret), 401)
    const actions = await postgres.query('SELECT action FROM gateway.audit ORDER BY id')
    t.match(actions.map(({ action }) => action), ['key.created', 'key.revoked', 'login'], 'the login during the outage is added later')
  })

  t.test('a silent connection delays a revocation by a few seconds at most', async t => {
    await postgres.createDatabase()
    const proxy = await startTcpProxy(t, postgres.port)
    const gateway = await start(withFolder(t), 'gw1', postgres.url(proxy.port))
    const direct = await start(withFolder(t), 'gw2', postgres.url())
    const secret = (await keys(direct, 'create', '--name', 'team-a')).stdout.trim()
    t.equal(await ask(gateway, secret), 200)
    proxy.silence()
    const revoked = await keys(direct, 'revoke', 'team-a')
    t.match(revoked, { code: 1, stderr: /a running gateway has not confirmed it/ })
    await gateway.waitForLog(({ msg }) => msg === 'keys in PostgreSQL cannot be read: the keys read before stay active')
    proxy.heal()
    await gateway.waitForLog(({ msg }) => msg === 'keys in PostgreSQL can be read again')
    t.equal(await ask(gateway, secret), 401)
  })

  t.test('local keys that existed before the database are shared, and are not lost with the database', async t => {
    await postgres.createDatabase()
    const places = [withFolder(t), withFolder(t)] as const
    const digest = (n: number) => Buffer.alloc(32, n)
    const by = { actor: 'command line: root', address: null }
    for (const [n, { folder }] of places.entries()) {
      using file = new KeyFile(join(folder, 'keys.db'))
      file.create({ name: 'same', digest: digest(n), models: null, limits: null }, 1, by)
      file.create({ name: `only-${n}`, digest: digest(10 + n), models: ['a'], limits: null, note: 'x' }, 2, by)
      file.create({ name: 'gone', digest: digest(20 + n), models: null, limits: null }, 3, by)
      const gone = file.find('name', 'gone')
      if (gone !== null) file.revoke(gone, 4, by)
    }
    const gateways = [await start(places[0], 'gw1', postgres.url()), await start(places[1], 'gw2', postgres.url())]
    const listed = (await keys(gateways[0]!, 'list')).stdout
    for (const name of ['same', 'same \\(gw2\\)', 'only-0', 'only-1', 'gone']) t.match(listed, new RegExp(` ${name} `))
    t.ok(gateways[1]!.logged.some(({ msg, to }) => to === 'same (gw2)' && /renamed/.test(String(msg))))
    const names = (place: { readonly folder: string }) => {
      using file = new KeyFile(join(place.folder, 'keys.db'))
      return file.list().keys.filter(({ revokedAt }) => revokedAt === null).map(({ key }) => key.name).sort()
    }
    const all = ['only-0', 'only-1', 'same', 'same (gw2)']
    await keys(gateways[0]!, 'revoke', 'nobody')
    t.strictSame(names(places[1]), all)
    const events = await postgres.query('SELECT origin, origin_id FROM gateway.audit')
    t.equal(events.length, 8, 'the audit events of the local keys are shared')
    for (const gateway of gateways) await gateway.close()

    await postgres.createDatabase()
    using file = new KeyFile(join(places[0].folder, 'keys.db'))
    file.create({ name: 'alone', digest: digest(30), models: null, limits: null }, 5, by)
    const again = await Promise.all(places.map((place, n) => start(place, `gw${n + 1}`, postgres.url())))
    t.match((await keys(again[0]!, 'list')).stdout, / only-1 /)
    const live = await postgres.query('SELECT name FROM gateway.keys WHERE revoked_at IS NULL ORDER BY name COLLATE "C"')
    t.strictSame(live.map(({ name }) => name), ['alone', ...all], 'a key that was created without the database is shared too')
    await again[0]!.close()
    file.create({ name: 'once-more', digest: digest(31), models: null, limits: null }, 6, by)
    await start(places[0], 'gw1', postgres.url())
    t.match((await keys(again[1]!, 'list')).stdout, / once-more /, 'a key that was created later in the local file is shared too')
  })
})
