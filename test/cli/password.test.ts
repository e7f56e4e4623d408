import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { open } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { verifyPassword, parsePasswordHash } from '../../src/base/secrets/password.ts'
import { GATEWAY, gateway } from './command.ts'

/** Runs the command with something on its standard input. */
async function password(input: string) {
  const child = spawn(process.execPath, [GATEWAY, 'password'], { stdio: 'pipe' })
  const output = Promise.all([text(child.stdout), text(child.stderr)])
  child.stdin.end(input)
  const [[stdout, stderr], [code]] = await Promise.all([output, once(child, 'close') as Promise<[number]>])
  return { code, stdout, stderr }
}

t.test('the command hashes the first line of its input and prints only the hash to standard output', async t => {
  for (const [input, meant] of [
    ['correct horse battery staple\n', 'correct horse battery staple'],
    ['without a line break', 'without a line break'],
    ['from elsewhere\r\nand more\n', 'from elsewhere'],
    ['  spaces are part of it  \n', '  spaces are part of it  '],
    ['pässwörter gehen auch\n', 'pa\u0308sswo\u0308rter gehen auch'],
  ] as const) {
    const { code, stdout, stderr } = await password(input)
    t.equal(code, 0, input)
    t.equal(stderr, '')
    t.match(stdout, /^scrypt:N=\d+:r=\d+:p=\d+:[\w-]+:[\w-]+\n$/)
    const hash = parsePasswordHash(stdout.trim())
    t.ok(await verifyPassword(meant, hash))
    t.notOk(await verifyPassword(`${meant}x`, hash))
    t.notOk(await verifyPassword('', hash))
    t.notMatch(stdout, meant)
  }
})

t.test('two hashes of the same password differ', async t => {
  const [one, two] = await Promise.all([password('correct horse\n'), password('correct horse\n')])
  t.not(one.stdout, two.stdout)
})

t.test('an empty password and a password above 1,024 bytes are refused; a short password causes a warning', async t => {
  for (const input of ['', '\n', '\r\nsecond line\n']) {
    t.match(
      await password(input), { code: 2, stdout: '', stderr: 'there is no password' }, JSON.stringify(input),
    )
  }
  t.match(await password(`${'x'.repeat(1025)}\n`), { code: 2, stdout: '', stderr: 'at most 1024 bytes' })
  t.match(await password('short\n'), {
    code: 0, stdout: /^scrypt:/, stderr: 'warning: fewer than 12 characters',
  })
})

t.test('endless input is refused as a too long password', async t => {
  const zero = await open('/dev/zero')
  const child = spawn(process.execPath, [GATEWAY, 'password'], { stdio: [zero.fd, 'pipe', 'pipe'] })
  const stderr = text(child.stderr!)
  const [code] = await once(child, 'close') as [number]
  await zero.close()
  t.equal(code, 2)
  t.equal(await stderr, 'error: a password has at most 1024 bytes\n')
})

t.test('the help shows where in gateway.yaml the hash belongs', async t => {
  const { code, stdout } = await gateway(['password', '--help'])
  t.equal(code, 0)
  t.match(stdout, 'users:')
})
