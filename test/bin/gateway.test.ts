import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, realpathSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import t from 'tap'
import { ROOT, gateway, listening } from '../cli/command.ts'

const OLD = oldNode()
const skip = OLD === null && 'there is no Node older than 24 on PATH'
const node = OLD ?? ''

/** A Node on PATH that is too old to run the gateway, not counting what npm installed; or null. */
function oldNode(): string | null {
  const places = (process.env['PATH'] ?? '').split(delimiter).map(directory => join(directory, 'node'))
  return places.find(place => {
    if (!existsSync(place)) return false
    if ([place, realpathSync(place)].some(path => path.includes('node_modules'))) return false
    const version = execFileSync(place, ['--version'], { encoding: 'utf8' })
    return Number.parseInt(version.slice(1), 10) < 24
  }) ?? null
}

t.test('an old Node without a newer Node prints the required version', { skip }, async t => {
  const cwd = t.testdir({})
  for (const name of ['bin', 'package.json']) cpSync(join(ROOT, name), join(cwd, name), { recursive: true })
  const ended = await gateway(['--version'], { cwd, node, script: join(cwd, 'bin', 'gateway.js') })
  t.match(ended, { code: 2, stdout: '' })
  t.match(ended.stderr, /^gateway needs Node 24 or newer; this is Node \d+\.\d+\.\d+ \(.+\)\n$/)
})

t.test('in a checkout, an old Node starts the pinned Node', { skip }, async t => {
  t.match(await gateway(['--version'], { node }), { code: 0, stdout: /^\d+\.\d+\.\d+\n$/, stderr: '' })
  t.match(await gateway(['chek'], { node }), { code: 2, stderr: /Did you mean check/ })
})

const YAML = `server: { listen: 127.0.0.1:0 }
upstreams: { demo: { simulator: true } }
routes: [{ to: demo }]
auth: open
`

t.test('a signal to the old Node reaches the pinned Node once', { skip }, async t => {
  const cwd = t.testdir({ 'gateway.yaml': YAML })
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    const { child, ended, lines } = await listening(t, ['serve'], { cwd, node })
    child.kill(signal)
    t.match(await ended, { code: 0, signal: null }, signal)
    t.equal(lines.filter(({ msg }) => msg === 'draining').length, 1)
    t.match(lines.at(-1), { msg: 'ended' })
  }
})

t.test('if a signal ends the pinned Node, the same signal ends the old Node', { skip }, async t => {
  const cwd = t.testdir({ 'gateway.yaml': YAML })
  const { child, ended } = await listening(t, ['serve'], { cwd, node })
  child.kill('SIGUSR2')
  t.match(await ended, { code: null, signal: 'SIGUSR2' })
})

t.test('the pinned Node ends if SIGKILL ends the old Node', { skip }, async t => {
  const cwd = t.testdir({ 'gateway.yaml': YAML })
  const { child, base, ended } = await listening(t, ['serve'], { cwd, node })
  child.kill('SIGKILL')
  // The streams close when the last process that holds them has ended.
  t.match(await ended, { signal: 'SIGKILL' })
  await t.rejects(fetch(`${base}/api/status`))
})
