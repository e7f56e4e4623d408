import { spawnSync } from 'node:child_process'
import { hash } from 'node:crypto'
import { mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { GATEWAY, gateway, listening } from '../command.ts'

const YAML = `server: { listen: 127.0.0.1:0 }
upstreams:
  demo: { simulator: true }
  openai: { url: "\${OPENAI_URL}", auth: { bearer: "\${OPENAI_API_KEY}" } }
routes: [{ model: [demo, "sim*"], to: demo }, { model: "gpt-*", to: openai }]
models: { demo: { price: { per_request: 1 } } }
keys: [{ name: team, key: "\${TEAM_KEY}", models: [demo] }]
ledger: { file: data/ledger.db }
`
const ENV = {
  OPENAI_URL: 'http://127.0.0.1:9',
  OPENAI_API_KEY: 'sk-of-the-gateway',
  TEAM_KEY: 'a-key-that-is-long-enough',
}

async function ask(base: string, key: string, model = 'demo'): Promise<number> {
  const response = await fetch(`${base}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hello' }] }),
  })
  await response.arrayBuffer()
  return response.status
}

t.test('a new key that cannot be printed is revoked immediately', {
  skip: process.platform === 'linux' ? false : 'needs /dev/full',
}, async t => {
  const cwd = t.testdir({ 'gateway.yaml': YAML })
  const command = [process.execPath, GATEWAY, 'keys', 'create', '--name', 'c']
  const script = '"$@" >/dev/full; echo $? >&2'
  const { stderr } = spawnSync('sh', ['-c', script, 'sh', ...command], { cwd, encoding: 'utf8' })
  t.match(stderr, /error: the key could not be printed, so it was revoked: ENOSPC.*\n1\n$/)
  const { stdout } = await gateway(['keys', 'list', '--json'], { cwd })
  const keys = stdout.trimEnd().split('\n').map(line => JSON.parse(line) as { name: string; revoked_at: unknown })
  t.match(keys.find(({ name }) => name === 'c'), { revoked_at: String })
})

t.test('no key is created if standard output is closed or /dev/null', {
  skip: process.platform === 'win32' ? 'needs a POSIX shell' : false,
}, async t => {
  const cwd = t.testdir({ 'gateway.yaml': YAML })
  const command = [process.execPath, GATEWAY, 'keys', 'create', '--name', 'c']
  for (const nowhere of ['>&-', '>/dev/null']) {
    const { status, stderr } = spawnSync('sh', ['-c', `"$@" ${nowhere}`, 'sh', ...command], { cwd, encoding: 'utf8' })
    t.match({ status, stderr }, { status: 2, stderr: 'the key is shown only once' }, nowhere)
  }
  t.notMatch((await gateway(['keys', 'list', '--json'], { cwd })).stdout, '"name":"c"')
})

t.test('standard output contains only the new key, and the store contains only a hash of the key', async t => {
  const cwd = t.testdir({ 'gateway.yaml': YAML })
  const { code, stdout, stderr } = await gateway(
    ['keys', 'create', '--name', 'a', '--models', 'demo,gpt-*', '--limit', 'budget=50/month'], { cwd })
  t.equal(code, 0)
  t.match(stdout, /^mgw_[0-9A-Za-z]{38}\n$/)
  t.match(stderr, 'Created the key "a" (models: demo, gpt-*; limits: 50 USD a month).')
  t.notMatch(stderr, stdout.trim())
  const listed = await gateway(['keys', 'list', '--json'], { cwd })
  const prefix = hash('sha256', stdout.trim()).slice(0, 8)
  t.strictSame(listed.stdout.trimEnd().split('\n').map(line => JSON.parse(line) as unknown).slice(0, 1), [
    { id: null,
      name: 'team', source: 'yaml', models: ['demo'], limits: null, group: null, owner: null, note: null, caller: null, tags: null,
      created_at: null, expires_at: null, last_used_at: null, revoked_at: null, blocked_at: null, prefix: null, sha256_prefix: null,
      old_secrets: [] },
  ])
  t.match(JSON.parse(listed.stdout.split('\n')[1] ?? ''), {
    id: 1, name: 'a', source: 'store', models: ['demo', 'gpt-*'],
    limits: { budget: { usd: '50', per: 'month' } },
    created_at: /^\d{4}-.*Z$/, revoked_at: null, prefix: stdout.slice(0, 8), sha256_prefix: prefix,
  })
  for (const name of readdirSync(join(cwd, 'data'))) {
    t.notMatch(readFileSync(join(cwd, 'data', name), 'latin1'), stdout.trim().slice(4), name)
  }
})

t.test('running gateways accept a key after `keys create` returns, and refuse the key after `keys revoke` returns', async t => {
  const cwd = t.testdir({ 'gateway.yaml': YAML })
  const run = (...args: string[]) => gateway(['keys', ...args], { cwd })
  const [one, two] = await Promise.all([
    listening(t, ['serve'], { cwd, env: ENV }), listening(t, ['serve'], { cwd, env: ENV }),
  ])
  for (const round of [1, 2, 3]) {
    const key = (await run('create', '--name', 'a', '--models', 'demo')).stdout.trim()
    t.strictSame(await Promise.all([ask(one.base, key), ask(two.base, key)]), [200, 200], `round ${round}`)
    t.equal(await ask(one.base, key, 'gpt-4'), 403, 'the models of the key apply')
    t.match(await run('revoke', 'a'), { code: 0, stdout: 'Revoked the key "a".\n' })
    t.strictSame(await Promise.all([ask(one.base, key), ask(two.base, key)]), [401, 401])
  }
  t.equal(await ask(one.base, ENV.TEAM_KEY), 200, 'keys of gateway.yaml are still accepted')
})

t.test('an old secret is accepted until its grace ends, and with --grace 0s is refused immediately', async t => {
  const cwd = t.testdir({ 'gateway.yaml': YAML })
  const run = (...args: string[]) => gateway(['keys', ...args], { cwd })
  const { base } = await listening(t, ['serve'], { cwd, env: ENV })
  const first = (await run('create', '--name', 'a', '--owner', 'research', '--note', 'batch jobs', '--expires', '30d')).stdout.trim()
  const rotated = await run('rotate', 'a')
  t.match(rotated, { code: 0, stdout: /^mgw_\w{38}\n$/, stderr: /^Rotated the key "a"\. The old secret works until \d{4}-/ })
  const second = rotated.stdout.trim()
  t.strictSame(await Promise.all([ask(base, first), ask(base, second)]), [200, 200])
  const third = (await run('rotate', 'a', '--grace', '0s')).stdout.trim()
  t.strictSame(await Promise.all([ask(base, first), ask(base, second), ask(base, third)]), [200, 401, 200],
    'the grace of the first secret has not ended, the second secret has no grace')
  const { stdout } = await run('list', '--json')
  t.match(JSON.parse(stdout.split('\n')[1] ?? ''), {
    name: 'a', owner: 'research', note: 'batch jobs', prefix: third.slice(0, 8), last_used_at: String,
    old_secrets: [{ sha256_prefix: hash('sha256', first).slice(0, 8), valid_until: String }],
  })
  const table = (await run('list')).stdout
  t.match(table, third.slice(0, 8))
  t.match(table, 'research')
  t.match(await run('rotate', 'team'), { code: 1, stdout: '', stderr: /"team" is a key of gateway\.yaml/ })
  t.match(await run('rotate', 'b'), { code: 1, stdout: '', stderr: 'error: no active key is named "b"' })
  t.match(await run('rotate', 'a', '--grace', 'soon'), { code: 2, stdout: '', stderr: 'A grace is a duration' })
  t.match(await run('revoke', first), { code: 0 }, 'an old secret identifies its key')
  t.strictSame(await Promise.all([ask(base, first), ask(base, third)]), [401, 401])
})

t.test('an expired key is refused with the code key_expired', async t => {
  const cwd = t.testdir({ 'gateway.yaml': YAML })
  const run = (...args: string[]) => gateway(['keys', ...args], { cwd })
  for (const when of ['2020-01-01', '0s', 'tomorrow', '2027-02-31']) {
    t.match(await run('create', '--name', 'a', '--expires', when), { code: 2, stdout: '' }, when)
  }
  const key = (await run('create', '--name', 'a', '--expires', '1ms')).stdout.trim()
  const { base } = await listening(t, ['serve'], { cwd, env: ENV })
  const refused = await fetch(`${base}/v1/models`, { headers: { authorization: `Bearer ${key}` } })
  t.equal(refused.status, 401)
  t.equal(refused.headers.get('x-should-retry'), 'false')
  t.match(await refused.json(), { error: { code: 'key_expired' } })
})

t.test('the spend of a key name counts after a restart and for a new key with that name', async t => {
  const cwd = t.testdir({ 'gateway.yaml': YAML })
  const create = () => gateway(['keys', 'create', '-n', 'a', '-l', 'budget=2/total'], { cwd })
  const first = await listening(t, ['serve'], { cwd, env: ENV })
  const key = (await create()).stdout.trim()
  t.equal(await ask(first.base, key), 200)
  first.child.kill('SIGTERM')
  await first.ended
  const second = await listening(t, ['serve'], { cwd, env: ENV })
  t.equal(await ask(second.base, key), 200)
  t.equal(await ask(second.base, key), 429)
  await gateway(['keys', 'revoke', 'a'], { cwd })
  const again = (await create()).stdout.trim()
  t.not(again, key)
  t.equal(await ask(second.base, again), 429, 'a new key gets the remaining budget of its name')
})

t.test('keys create fails with the reason', async t => {
  const cwd = t.testdir({ 'gateway.yaml': YAML, 'none.yaml': YAML.replace(/^ledger.*\n/m, '') })
  const create = (...args: string[]) => gateway(['keys', 'create', ...args], { cwd })
  t.match(await create('-n', 'team'), {
    code: 1, stdout: '', stderr: 'has a key named "team"; choose another name',
  })
  t.match(await create('-n', 'a'), { code: 0 })
  t.match(await create('-n', 'a'), { code: 1, stdout: '', stderr: 'a live key has the name "a" already' })
  t.match(await create('-n', 'b', '-c', 'none.yaml'), { code: 2, stdout: '', stderr: 'has no ledger' })
  for (const [limit, message] of [
    ['requests_per_minut=5', 'did you mean "requests_per_minute"'],
    ['concurrent=0', 'from 1 to'],
    ['concurrent', 'NAME=VALUE'],
    ['budget=5', '50/month'],
    ['budget=5/monat', 'month'],
    ['budget=-5/day', '50/month'],
  ] as const) {
    const { code, stdout, stderr } = await create('-n', 'b', '-l', limit)
    t.equal(stdout, '', limit)
    t.equal(code, 2, limit)
    t.match(stderr.toLowerCase(), message.toLowerCase(), limit)
  }
  t.match(
    await create('-n', 'b', '-l', 'concurrent=1', '-l', 'concurrent=2'),
    { stdout: '', stderr: 'given twice' },
  )
  t.match(await create('-n', 'a\nb'), { stdout: '', stderr: 'no control characters' })
  t.match(await create('-n', 'b', '-m', 'a,,b'), { stdout: '', stderr: 'separated by commas' })
})

t.test('a key can be revoked by its name, its id or its secret', async t => {
  const cwd = t.testdir({ 'gateway.yaml': YAML })
  const run = (...args: string[]) => gateway(['keys', ...args], { cwd })
  for (const name of ['a', 'b', 'c', '2']) await run('create', '-n', name)
  const key = (await run('create', '-n', 'leaked')).stdout.trim()
  t.match(await run('revoke', key), { code: 0, stdout: 'Revoked the key "leaked".\n' })
  t.match(await run('revoke', '1'), { stdout: 'Revoked the key "a".\n' })
  t.match(await run('revoke', '2'), { stdout: 'Revoked the key "2".\n' }, 'an argument that is a name and an id is read as a name')
  t.match(await run('revoke', 'a'), { code: 0, stdout: /^The key "a" was revoked already, on \d{4}-/ })
  t.match(await run('revoke', 'team'), {
    code: 1, stderr: '"team" is a key of gateway.yaml: remove it there',
  })
  t.match(await run('revoke', 'bb'), { code: 1, stderr: 'no key is named "bb"' })
  const unknown = await run('revoke', `${key.slice(0, 4)}${'0'.repeat(32)}3VDO1M`)
  t.match(unknown, { code: 1, stderr: 'no key has this value' })
  t.notMatch(unknown.stderr, '3VDO1M')
  t.match((await run('list')).stdout, /\n *3 +c +mgw_\w{4} +[0-9a-f]{8} +- +- +store +\S+Z +- +- +- +- +all +none\n/)
})

t.test('a key name that the console cannot show or put in a URL is refused', async t => {
  const cwd = t.testdir({ 'gateway.yaml': YAML })
  for (const [name, fault] of [
    ['.', 'It cannot be one or two dots.'],
    ['..', 'It cannot be one or two dots.'],
    [' ', 'It needs something that can be seen.'],
    ['a\x07', 'It needs 1 to 128 characters, and no control characters.'],
    ['a'.repeat(129), 'It needs 1 to 128 characters, and no control characters.'],
  ] as const) {
    const { code, stdout, stderr } = await gateway(['keys', 'create', '-n', name], { cwd })
    t.match({ code, stdout }, { code: 2, stdout: '' }, JSON.stringify(name))
    t.match(stderr, fault)
  }
})

t.test('an unset variable is reported only if the ledger setting names the variable', async t => {
  const cwd = t.testdir({ 'gateway.yaml': YAML.replace('data/ledger.db', '"${LEDGER_FILE}"') })
  for (const args of [['keys', 'list'], ['keys', 'create', '-n', 'a'], ['usage']]) {
    const { code, stdout, stderr } = await gateway(args, { cwd })
    t.match({ code, stdout }, { code: 2, stdout: '' }, args.join(' '))
    t.match(stderr, 'LEDGER_FILE is not set')
    t.notMatch(stderr, 'OPENAI')
  }
})

t.test('with an unreadable key store, the gateway logs an error and accepts the keys of gateway.yaml', async t => {
  const cwd = t.testdir({ 'gateway.yaml': YAML })
  mkdirSync(join(cwd, 'data'))
  writeFileSync(join(cwd, 'data', 'keys.db'), 'x'.repeat(8_192))
  const { base, logged } = await listening(t, ['serve'], { cwd, env: ENV })
  t.match(await logged('stored keys cannot be read: the keys read before stay active'), { level: 'error' })
  t.equal(await ask(base, ENV.TEAM_KEY), 200)
  const { code, stdout, stderr } = await gateway(['keys', 'create', '-n', 'a'], { cwd })
  t.match({ code, stdout, stderr }, { code: 1, stdout: '', stderr: /keys\.db: file is not a database/ })
})

t.test('the help has an example of gateway keys revoke', async t => {
  t.match((await gateway(['keys', '--help'])).stdout, 'gateway keys revoke team-a')
})

t.test('keys block fails if the key comes from an unset variable, because the gateway may have another value', async t => {
  const yaml = YAML.replace('TEAM_KEY}', 'TEAM_KEY:-a-default-that-is-long-enough}')
  const cwd = t.testdir({ 'gateway.yaml': yaml })
  const { base } = await listening(t, ['serve'], { cwd, env: ENV })
  const block = ['keys', 'block', '--name', 'team']
  const { code, stdout, stderr } = await gateway(block, { cwd })
  t.strictSame([code, stdout], [1, ''])
  t.match(stderr, 'error: the value of "team" is not known here: set the variable')
  t.equal(await ask(base, ENV.TEAM_KEY), 200)
  t.match((await gateway(['keys', 'list', '--json'], { cwd })).stdout, '"sha256_prefix":null')
  t.match(await gateway(block, { cwd, env: ENV }), { code: 0, stdout: 'Blocked the key "team".\n' })
  t.equal(await ask(base, ENV.TEAM_KEY), 401)
})

t.test('if the key store cannot be read, each command fails with the reason', async t => {
  const cwd = t.testdir({ 'gateway.yaml': YAML })
  // A link to itself: even root cannot read the directory.
  symlinkSync('data', join(cwd, 'data'))
  for (const command of [
    ['keys', 'list'], ['keys', 'revoke', 'a'], ['keys', 'unblock', '--name', 'team'], ['usage'],
    ['explain', '--path', '/v1/chat/completions', '--model', 'demo', '--key', 'a'],
  ]) {
    const { code, stdout, stderr } = await gateway(command, { cwd, env: ENV })
    t.not(code, 0, command.join(' '))
    t.equal(stdout, '')
    t.match(stderr, /^error: [^\n]*ELOOP[^\n]*\n$/)
  }
})
