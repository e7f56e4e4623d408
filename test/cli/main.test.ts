import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t from 'tap'
import { GATEWAY, gateway } from './command.ts'

const PACKAGE = new URL('../../package.json', import.meta.url)
const { version } = JSON.parse(readFileSync(PACKAGE, 'utf8')) as { version: string }
const COMMANDS = ['serve', 'check', 'explain', 'simulate', 'init']

t.test('--version prints the version of the package', async t => {
  t.match(await gateway(['--version']), { code: 0, stdout: `${version}\n`, stderr: '' })
})

t.test('--help lists all commands on standard output', async t => {
  const { code, stdout, stderr } = await gateway(['--help'])
  t.match({ code, stderr }, { code: 0, stderr: '' })
  for (const name of COMMANDS) t.match(stdout, new RegExp(`^  ${name} `, 'm'))
})

for (const name of COMMANDS) {
  t.test(`${name} --help prints the help of that command`, async t => {
    const { code, stdout } = await gateway([name, '--help'])
    t.equal(code, 0)
    for (const part of ['Options:', 'Examples:', 'Exit codes:', `gateway ${name}`]) t.match(stdout, part)
    t.ok(stdout.split('\n').every(line => line.length <= 100), 'no line is wider than a terminal')
    t.equal((await gateway(['help', name])).stdout, stdout)
  })
}

t.test('help prints the help of a subcommand', async t => {
  const { stdout } = await gateway(['keys', 'create', '--help'])
  t.match(stdout, 'Usage: gateway keys create')
  for (const args of [['help', 'keys', 'create'], ['keys', 'help', 'create']]) {
    t.match(await gateway(args), { code: 0, stdout, stderr: '' }, args.join(' '))
  }
})

t.test('without a command the help is printed to standard error, and the exit code is 2', async t => {
  const { code, stdout, stderr } = await gateway([])
  t.match({ code, stdout }, { code: 2, stdout: '' })
  t.match(stderr, 'Usage: gateway')
})

t.test('for a mistyped command or option the exit code is 2 and the error has a suggestion', async t => {
  for (const [args, hint] of [
    [['chek'], 'Did you mean check?'],
    [['check', '--confg', 'x'], 'Did you mean --config?'],
    [['--verson'], 'Did you mean --version?'],
    [['serve', '--config'], 'argument missing'],
    [['check', 'one', 'two'], 'too many arguments'],
    [['check', '--config', ''], 'takes the name of a file'],
    [['help', 'chek'], 'did you mean "check"?'],
    [['help', 'bogus'], 'gateway has no command "bogus"'],
    [['help', 'keys', 'creat'], 'did you mean "create"?'],
    [['keys', 'help', 'creat'], 'did you mean "create"?'],
  ] as const) {
    const { code, stdout, stderr } = await gateway(args)
    t.match({ code, stdout }, { code: 2, stdout: '' }, args.join(' '))
    t.match(stderr, hint, args.join(' '))
    t.notMatch(stderr, /\n {4}at /, 'no stack trace')
  }
})

t.test('a command whose output cannot be written fails with the reason', {
  skip: process.platform === 'linux' ? false : 'needs /dev/full',
}, async t => {
  const full = openSync('/dev/full', 'w')
  t.teardown(() => closeSync(full))
  const { status, stderr } = spawnSync(process.execPath, [GATEWAY, '--help'], {
    stdio: ['ignore', full, 'pipe'], encoding: 'utf8',
  })
  t.equal(status, 1)
  t.match(stderr, /^error: cannot write to standard output: ENOSPC.*\n$/)
})

t.test('a gateway serves requests after the reader of its standard error has ended', async t => {
  // In a short path, because the path of the control socket can have at most 100 bytes.
  const cwd = mkdtempSync(join(tmpdir(), 'gateway-'))
  t.teardown(() => rmSync(cwd, { recursive: true, force: true }))
  writeFileSync(join(cwd, 'gateway.yaml'), `server: { listen: 127.0.0.1:0 }
upstreams: { demo: { simulator: true } }
routes: [{ model: demo, to: demo }]
keys: [{ name: demo, key: "\${NO_SUCH_VARIABLE:-a-key-that-is-long-enough}" }]
ledger: { file: gateway.db }
`)
  // `env -i` removes the variables that the test runner adds to each process.
  const child = spawn('env', ['-i', process.execPath, GATEWAY, 'serve'], {
    cwd, stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  // The gateway writes the example request to standard error.
  child.stderr.destroy()
  const messages: unknown[] = []
  const lines = createInterface(child.stdout).on('line', line => {
    messages.push((JSON.parse(line) as { msg: unknown }).msg)
  })
  await once(lines, 'line')
  child.kill('SIGTERM')
  const [code] = await once(child, 'close')
  t.equal(code, 0)
  t.same(messages, ['listening', 'draining', 'ended'])
})
