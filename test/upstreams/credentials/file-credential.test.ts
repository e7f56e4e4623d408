import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pino } from 'pino'
import t from 'tap'
import type { Test } from 'tap'
import { systemClock } from '../../../src/base/clock.ts'
import { FaultReporter } from '../../../src/upstreams/credentials/fault-reporter.ts'
import { FileCredential } from '../../../src/upstreams/credentials/file-credential.ts'

t.test('a file that is replaced by rename is read again', async t => {
  const file = join(t.testdir({ key: 'sk-1\n' }), 'key')
  const { credential, secret } = open(t, file)
  t.equal(secret(), 'sk-1')
  writeFileSync(`${file}.new`, 'sk-2')
  renameSync(`${file}.new`, file)
  await until(() => secret() === 'sk-2')
  t.equal(credential.authorize(), credential.authorize())
})

t.test('a Kubernetes secret is read again when its symbolic link is replaced', async t => {
  const folder = t.testdir({})
  for (const version of ['1', '2']) {
    mkdirSync(join(folder, `..${version}`))
    writeFileSync(join(folder, `..${version}`, 'key'), `sk-${version}`)
  }
  symlinkSync('..1', join(folder, '..data'))
  symlinkSync('..data/key', join(folder, 'key'))
  const { secret } = open(t, join(folder, 'key'))
  t.equal(secret(), 'sk-1')
  symlinkSync('..2', join(folder, '..data.new'))
  renameSync(join(folder, '..data.new'), join(folder, '..data'))
  rmSync(join(folder, '..1'), { recursive: true })
  await until(() => secret() === 'sk-2')
})

t.test('the last secret is used while the file is unusable', async t => {
  const file = join(t.testdir({ key: 'sk-1' }), 'key')
  const { secret, logged } = open(t, file)
  for (const [text, reason] of [['', /empty/], ['sk-2\nsk-3', /character/], ['x'.repeat(70_000), /64 kB/]] as const) {
    writeFileSync(file, text)
    await until(() => reason.test(logged.at(-1) ?? ''))
    t.equal(secret(), 'sk-1')
  }
  rmSync(file)
  await until(() => /ENOENT/.test(logged.at(-1) ?? ''))
  t.equal(secret(), 'sk-1')
  writeFileSync(file, 'sk-4')
  await until(() => secret() === 'sk-4')
  t.match(logged.at(-1), 'available again')
  t.notMatch(logged.join(''), 'sk-')
})

t.test('a missing file is an error until the file appears', async t => {
  const file = join(t.testdir({}), 'key')
  const { credential, secret } = open(t, file)
  t.throws(() => credential.authorize(), { code: 'credential_unavailable', cause: { message: /ENOENT/ } })
  writeFileSync(file, 'sk-1')
  await until(() => tryTo(secret) === 'sk-1')
})

t.test('after a refusal the file is read again at once, and the request is sent again only if the secret changed', async t => {
  const file = join(t.testdir({ key: 'sk-1' }), 'key')
  const { credential, secret } = open(t, file)
  const first = credential.authorize()
  t.equal(credential.recordRefusal([first]), false)
  writeFileSync(file, 'sk-2')
  t.equal(credential.recordRefusal([first]), true)
  t.equal(secret(), 'sk-2')
})

function open(t: Test, file: string) {
  const logged: string[] = []
  const log = pino({}, { write: line => void logged.push(line) })
  const auth = { kind: 'file', headers: ['authorization'], prefix: 'Bearer ', file } as const
  const credential = new FileCredential(auth, { clock: systemClock, reporter: new FaultReporter(log, 'up') })
  t.teardown(() => credential.close())
  const secret = (): string | undefined =>
    (credential.authorize().headersFor({ method: 'GET', path: '/', headers: [], body: null }, new URL('http://up')) as string[])[1]?.slice(7)
  return { credential, secret, logged }
}

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise(resolve => setTimeout(resolve, 5))
}

function tryTo<T>(get: () => T): T | null {
  try {
    return get()
  } catch {
    return null
  }
}
