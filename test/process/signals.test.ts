import { execFileSync, spawn } from 'node:child_process'
import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t from 'tap'
import { GATEWAY, listening } from '../cli/command.ts'
import type { Running } from '../cli/command.ts'
import { selfSigned } from '../support/certificate.ts'

const KEY = 'a-key-that-is-long-enough'

function yaml(models: string, rest = ''): string {
  return `server: { listen: 127.0.0.1:0 }
upstreams: { demo: { simulator: true } }
routes: [{ model: [${models}], to: demo }]
keys: [{ name: team, key: ${KEY} }]
${rest}
`
}

async function models({ base }: Running): Promise<string[]> {
  const answer = await fetch(`${base}/v1/models`, { headers: { authorization: `Bearer ${KEY}` } })
  const { data } = await answer.json() as { data: { id: string }[] }
  return data.map(({ id }) => id)
}

/** Resolves with the nth log line with this message. */
async function nth(
  { lines, logged, child }: Running, n: number, message: string,
): Promise<Record<string, unknown>> {
  await logged(message)
  for (;;) {
    const line = lines.filter(({ msg }) => msg === message)[n - 1]
    if (line) return line
    await new Promise(resolve => child.stdout?.once('data', resolve))
  }
}

const RELOADED = 'configuration reloaded'
const REFUSED = 'not reloaded: the previous configuration stays active'

t.test('SIGHUP reloads the configuration file; an invalid file changes nothing', async t => {
  const cwd = t.testdir({ 'gateway.yaml': yaml('one') })
  const file = join(cwd, 'gateway.yaml')
  const running = await listening(t, ['serve'], { cwd })
  t.same(await models(running), ['one'])
  writeFileSync(file, yaml('two'))
  t.same(await models(running), ['one'], 'the file is not reloaded before the signal')
  running.child.kill('SIGHUP')
  await running.logged(RELOADED)
  t.same(await models(running), ['two'])

  writeFileSync(file, yaml('three', 'log: { level: loud }'))
  running.child.kill('SIGHUP')
  t.match(await running.logged(REFUSED), {
    level: 'error', problems: [/^gateway\.yaml:5:15: error: log\.level/],
  })
  t.same(await models(running), ['two'])

  for (let i = 0; i < 100; i++) running.child.kill('SIGHUP')
  writeFileSync(file, yaml('four'))
  running.child.kill('SIGHUP')
  await nth(running, 2, RELOADED)
  running.child.kill('SIGTERM')
  t.match(await running.ended, { code: 0, stderr: '' })
})

t.test('SIGUSR1 has no effect and does not open the debugger', async t => {
  const running = await listening(t, ['serve'], { cwd: t.testdir({ 'gateway.yaml': yaml('one') }) })
  running.child.kill('SIGUSR1')
  running.child.kill('SIGHUP')
  await running.logged(RELOADED)
  t.same(await models(running), ['one'])
  running.child.kill('SIGTERM')
  t.match(await running.ended, { code: 0, stderr: '' })
})

t.test('a SIGHUP during the start causes a reload after the start', {
  skip: process.platform === 'win32' && 'no signals',
}, async t => {
  const file = join(t.testdir(), 'gateway.yaml')
  execFileSync('mkfifo', [file])
  // `env -i` removes the variables that the test runner adds to each process.
  const child = spawn('env', ['-i', process.execPath, GATEWAY, 'serve', '--config', file], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  const pipe = await open(file, 'w')
  // The gateway now waits for its configuration.
  child.kill('SIGHUP')
  rmSync(file)
  writeFileSync(file, yaml('two'))
  await pipe.writeFile(yaml('one'))
  await pipe.close()

  const messages: unknown[] = []
  for await (const line of createInterface(child.stdout)) {
    const { msg } = JSON.parse(line) as { msg: unknown }
    messages.push(msg)
    if (msg === RELOADED) child.kill('SIGTERM')
  }
  t.same(messages, ['listening', 'reading the configuration again', RELOADED, 'draining', 'ended'])
})

t.test('a reload refuses a pipe in place of the configuration file, and delays neither requests nor the shutdown', {
  skip: process.platform === 'win32' && 'no pipes',
}, async t => {
  const cwd = t.testdir({ 'gateway.yaml': yaml('one') })
  const running = await listening(t, ['serve'], { cwd })
  rmSync(join(cwd, 'gateway.yaml'))
  execFileSync('mkfifo', [join(cwd, 'gateway.yaml')])
  running.child.kill('SIGHUP')
  t.match(await running.logged(REFUSED), { problems: [/gateway\.yaml: error: this is a pipe/] })
  t.same(await models(running), ['one'])
  running.child.kill('SIGTERM')
  t.match(await running.ended, { code: 0, stderr: '' })
})

t.test('--watch reloads after a missing file that the configuration names is created', async t => {
  const cwd = t.testdir({ 'gateway.yaml': yaml('one'), late: {} })
  const running = await listening(t, ['serve', '--watch'], { cwd })
  const { cert } = selfSigned()
  const other = 'upstreams: { other: { url: "https://localhost", ca: late/ca.pem }, '
  writeFileSync(join(cwd, 'gateway.yaml'), yaml('two').replace('upstreams: { ', other))
  t.match(await nth(running, 1, REFUSED), { problems: [/no such file/] })
  writeFileSync(join(cwd, 'late', 'ca.pem'), cert)
  await nth(running, 1, RELOADED)
  t.same(await models(running), ['two'])
})

t.test('--watch reloads after the configuration file is written, replaced or created again', async t => {
  const cwd = t.testdir({ 'gateway.yaml': yaml('one') })
  const file = join(cwd, 'gateway.yaml')
  const running = await listening(t, ['serve', '--watch'], { cwd })
  writeFileSync(file, yaml('two'))
  await nth(running, 1, RELOADED)
  t.same(await models(running), ['two'])
  writeFileSync(`${file}.tmp`, yaml('three'))
  renameSync(`${file}.tmp`, file)
  await nth(running, 2, RELOADED)
  t.same(await models(running), ['three'])
  rmSync(file)
  t.match(await nth(running, 1, REFUSED), { problems: [/no such file/] })
  writeFileSync(file, yaml('four'))
  await nth(running, 3, RELOADED)
  t.same(await models(running), ['four'])
  running.child.kill('SIGTERM')
  t.match(await running.ended, { code: 0, stderr: '' })
})
