import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { startTokenIssuer } from '../../support/token-issuer.ts'
import { gateway, listening } from '../command.ts'

const YAML = `server: { listen: 127.0.0.1:0 }
upstreams: { demo: { simulator: true } }
routes: [{ to: demo }]
keys: [{ name: team, key: "\${TEAM_KEY}" }, { name: other, key: other-key-that-is-long }]
ledger: { file: data/ledger.db }
`
const ENV = { TEAM_KEY: 'a-key-that-is-long-enough' }

async function ask(base: string, key: string): Promise<number> {
  const response = await fetch(`${base}/v1/models`, { headers: { authorization: `Bearer ${key}` } })
  await response.arrayBuffer()
  return response.status
}

t.test('after `keys block` returns the key is refused, and after `keys unblock` returns the key is accepted', async t => {
  const cwd = t.testdir({ 'gateway.yaml': YAML })
  const run = (...args: string[]) => gateway(['keys', ...args], { cwd, env: ENV })
  const { base } = await listening(t, ['serve'], { cwd, env: ENV })
  const blocked = async () => (await run('list', '--json')).stdout.trim().split('\n')
    .map(line => JSON.parse(line) as { name: string, blocked_at: string | null })
    .filter(({ blocked_at }) => blocked_at !== null).map(({ name }) => name)
  t.match(await run('block', '-n', 'team'), { code: 0, stdout: 'Blocked the key "team".\n', stderr: '' })
  t.strictSame([await ask(base, ENV.TEAM_KEY), await ask(base, 'other-key-that-is-long')], [401, 200])
  t.strictSame(await blocked(), ['team'])
  t.match(await run('block', '-n', 'team'), { code: 0, stdout: 'The key "team" was blocked already.\n' })
  t.match(await run('unblock', '-n', 'team'), { code: 0, stdout: 'Unblocked the key "team".\n', stderr: '' })
  t.equal(await ask(base, ENV.TEAM_KEY), 200)
  t.strictSame(await blocked(), [])
  t.match(await run('unblock', '-n', 'team'), {
    code: 1, stdout: '', stderr: 'error: "team" is not blocked\n',
  })
})

t.test('a key that cannot be blocked or unblocked is reported, and no key store is created', async t => {
  const cwd = t.testdir({ 'gateway.yaml': YAML, 'none.yaml': YAML.replace(/^ledger.*\n/m, '') })
  const run = (...args: string[]) => gateway(['keys', ...args], { cwd, env: ENV })
  for (const command of ['block', 'unblock']) {
    t.match(await run(command, '-n', 'taem'), {
      code: 1, stdout: '', stderr: 'error: gateway.yaml has no key named "taem"; did you mean "team"?\n',
    })
    t.match(await run(command, '-n', 'team', '-c', 'none.yaml'), { code: 2, stderr: 'has no ledger' })
    t.match(await run(command), { code: 2, stdout: '', stderr: "missing required argument 'name'" })
  }
  t.match(await run('unblock', '-n', 'team'), { code: 1, stderr: 'error: "team" is not blocked\n' })
  t.notOk(existsSync(join(cwd, 'data')))
})

t.test('all secrets of a blocked key are refused, and the key cannot be rotated', async t => {
  const cwd = t.testdir({ 'gateway.yaml': YAML })
  const run = (...args: string[]) => gateway(['keys', ...args], { cwd, env: ENV })
  const { base } = await listening(t, ['serve'], { cwd, env: ENV })
  const old = (await run('create', '-n', 'made')).stdout.trim()
  const secret = (await run('rotate', 'made', '--grace', '1h')).stdout.trim()
  t.match(await run('block', '-n', 'made'), { code: 0, stdout: 'Blocked the key "made".\n' })
  t.strictSame([await ask(base, old), await ask(base, secret)], [401, 401])
  t.match(await run('rotate', 'made'), { code: 1, stderr: '"made" is blocked, and its new secret would not be' })
  t.match(await run('unblock', '-n', 'made'), { code: 0, stdout: 'Unblocked the key "made".\n' })
  t.strictSame([await ask(base, old), await ask(base, secret)], [200, 200])
})

t.test('a caller with a token is blocked, listed and unblocked by its name', async t => {
  const issuer = await startTokenIssuer(t)
  const callers = `callers: [{ name: corp, issuer: "${issuer.issuer}", audience: gateway, require: { sub: "*" } }]\n`
  const cwd = t.testdir({ 'gateway.yaml': YAML + callers })
  const run = (...args: string[]) => gateway(['keys', ...args], { cwd, env: ENV })
  const { base } = await listening(t, ['serve'], { cwd, env: ENV })
  const token = await issuer.token()
  t.equal(await ask(base, token), 200)
  t.match(await run('block', 'corp:alice'), { code: 0, stdout: 'Blocked the caller "corp:alice".\n', stderr: '' })
  t.strictSame([await ask(base, token), await ask(base, await issuer.token({ sub: 'bob' }))], [401, 200])
  t.match((await run('list')).stdout, /corp:alice .* token /)
  t.match(await run('unblock', 'corp:alice'), { code: 0, stdout: 'Unblocked the caller "corp:alice".\n' })
  t.equal(await ask(base, token), 200)
  t.notMatch((await run('list')).stdout, /corp:alice/)
})

t.test('a block of a caller holds if a created key has the same name', async t => {
  const issuer = await startTokenIssuer(t)
  const callers = `callers: [{ name: corp, issuer: "${issuer.issuer}", audience: gateway, require: { sub: "*" } }]\n`
  const cwd = t.testdir({ 'gateway.yaml': YAML })
  const run = (...args: string[]) => gateway(['keys', ...args], { cwd, env: ENV })
  // After the issuer is configured, no key with such a name can be created.
  const secret = (await run('create', '-n', 'corp:alice')).stdout.trim()
  writeFileSync(join(cwd, 'gateway.yaml'), YAML + callers)
  t.match(await run('create', '-n', 'corp:bob'), { code: 2, stderr: /names that begin with "corp:" belong to callers/ })
  const { base } = await listening(t, ['serve'], { cwd, env: ENV })
  const token = await issuer.token()
  t.strictSame([await ask(base, secret), await ask(base, token)], [200, 200])
  t.match(await run('block', 'corp:alice'), { code: 0 })
  t.strictSame([await ask(base, secret), await ask(base, token)], [401, 401])
  t.match(await run('unblock', 'corp:alice'), { code: 0 })
  t.strictSame([await ask(base, secret), await ask(base, token)], [200, 200])
})
