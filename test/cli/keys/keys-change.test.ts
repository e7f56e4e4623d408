import t from 'tap'
import { gateway, listening } from '../command.ts'

const YAML = `server: { listen: 127.0.0.1:0 }
upstreams: { demo: { simulator: true } }
routes: [{ model: [a, b], to: demo }]
keys: [{ name: of-the-file, key: a-key-that-is-long-enough }]
ledger: { file: data/ledger.db }
`

t.test('a running gateway applies changed limits and models of a stored key immediately', async t => {
  const cwd = t.testdir({ 'gateway.yaml': YAML })
  const run = (...args: string[]) => gateway(['keys', ...args], { cwd })
  const { base } = await listening(t, ['serve'], { cwd })
  const key = (await run('create', '-n', 'made', '--limit', 'requests_per_minute=1', '--limit', 'concurrent=3', '--note', 'a trial')).stdout.trim()
  const ask = async (model: string): Promise<number> => {
    const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] })
    const response = await fetch(`${base}/v1/chat/completions`, { method: 'POST', headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' }, body })
    await response.arrayBuffer()
    return response.status
  }
  t.strictSame([await ask('a'), await ask('a')], [200, 429])
  t.match(await run('change', 'made', '--limit', 'requests_per_minute=100', '--models', 'b', '--owner', 'research'), {
    code: 0, stdout: 'Changed the key "made" (limits: 100 requests/min; models: b; owner: research).\n', stderr: '',
  })
  t.strictSame([await ask('a'), await ask('b')], [403, 200])
  const listed = (await run('list', '--json')).stdout.trim().split('\n').map(line => JSON.parse(line) as Record<string, unknown>)
  t.match(listed.find(({ name }) => name === 'made'), { models: ['b'], limits: { requests_per_minute: 100 }, owner: 'research', note: 'a trial' })
  t.match(await run('change', 'made', '--no-limits', '--all-models'), { code: 0, stdout: '(limits: none; models: all)' })
  t.equal(await ask('a'), 200)
})

t.test('an invalid change of a key is refused with the reason', async t => {
  const cwd = t.testdir({ 'gateway.yaml': YAML })
  const run = (...args: string[]) => gateway(['keys', ...args], { cwd })
  await run('create', '-n', 'made')
  for (const [args, code, stderr] of [
    [['mdae', '--note', 'x'], 1, 'no key is named "mdae"; did you mean "made"?'],
    [['of-the-file', '--note', 'x'], 1, '"of-the-file" is a key of gateway.yaml: change it there'],
    [['made'], 2, 'there is nothing to change'],
    [['made', '--limit', 'concurrent=1', '--no-limits'], 2, '--limit and --no-limits exclude each other'],
    [['made', '--limit', 'concurent=1'], 2, 'did you mean "concurrent"?'],
  ] as const) t.match(await run('change', ...args), { code, stdout: '', stderr }, args.join(' '))
})
