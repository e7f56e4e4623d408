import { readFileSync } from 'node:fs'
import t from 'tap'
import { gateway } from './command.ts'

const PACKAGE = new URL('../../package.json', import.meta.url)
const { version } = JSON.parse(readFileSync(PACKAGE, 'utf8')) as { version: string }
const COMMANDS = ['serve', 'check', 'explain', 'simulate', 'init']

t.test('--version prints the version of the package', async t => {
  t.match(await gateway(['--version']), { code: 0, stdout: `${version}\n`, stderr: '' })
})

t.test('--help goes to standard output and names every command', async t => {
  const { code, stdout, stderr } = await gateway(['--help'])
  t.match({ code, stderr }, { code: 0, stderr: '' })
  for (const name of COMMANDS) t.match(stdout, new RegExp(`^  ${name} `, 'm'))
})

for (const name of COMMANDS) {
  t.test(`${name} --help is a page of its own`, async t => {
    const { code, stdout } = await gateway([name, '--help'])
    t.equal(code, 0)
    for (const part of ['Options:', 'Examples:', 'Exit codes:', `gateway ${name}`]) t.match(stdout, part)
    t.ok(stdout.split('\n').every(line => line.length <= 100), 'it fits a terminal')
    t.equal((await gateway(['help', name])).stdout, stdout)
  })
}

t.test('no command at all is bad usage, and gets the help', async t => {
  const { code, stdout, stderr } = await gateway([])
  t.match({ code, stdout }, { code: 2, stdout: '' })
  t.match(stderr, 'Usage: gateway')
})

t.test('a mistyped command or option is bad usage, and gets a suggestion', async t => {
  for (const [args, hint] of [
    [['chek'], 'Did you mean check?'],
    [['check', '--confg', 'x'], 'Did you mean --config?'],
    [['--verson'], 'Did you mean --version?'],
    [['serve', '--config'], 'argument missing'],
    [['check', 'one', 'two'], 'too many arguments'],
  ] as const) {
    const { code, stdout, stderr } = await gateway(args)
    t.match({ code, stdout }, { code: 2, stdout: '' }, args.join(' '))
    t.match(stderr, hint, args.join(' '))
    t.notMatch(stderr, /\n {4}at /, 'no stack trace')
  }
})
