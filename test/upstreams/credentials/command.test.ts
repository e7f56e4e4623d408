import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { runCommand } from '../../../src/upstreams/credentials/command.ts'

const NEVER = new AbortController().signal

t.test('the secret is the output of the command without the line end', async t => {
  t.equal(await runCommand(['printf', '%s\n', 'sk-$HOME *'], NEVER), 'sk-$HOME *', 'there is no shell')
})

for (const [what, command, reason] of [
  ['does not exist', ['no-such-command'], /ENOENT/],
  ['fails', ['sh', '-c', 'echo sk-secret; echo sk-secret >&2; exit 3'], /exit code 3/],
  ['is killed', ['sh', '-c', 'kill -9 $$'], /SIGKILL/],
  ['prints without end', ['yes'], /64 kB/],
] as const) {
  t.test(`a command that ${what} gives no credential`, async t => {
    const error = await runCommand(command, NEVER).catch((error: unknown) => error) as Error
    t.match(error, { code: 'credential_unavailable', cause: { message: reason } })
    t.notMatch(`${error.stack}${String(error.cause)}`, 'sk-secret')
  })
}

t.test('at the deadline the command and its child processes are ended', async t => {
  const pidFile = join(t.testdir({}), 'pid')
  const controller = new AbortController()
  const running = runCommand(['sh', '-c', `sleep 1000 & echo $! > ${pidFile}.new; mv ${pidFile}.new ${pidFile}; wait`], controller.signal)
  while (!existsSync(pidFile)) await new Promise(resolve => setImmediate(resolve))
  controller.abort()
  await t.rejects(running, { code: 'credential_unavailable' })
  const pid = Number(readFileSync(pidFile, 'utf8'))
  while (isAlive(pid)) await new Promise(resolve => setImmediate(resolve))
  t.pass('the child of the command has ended')
})

function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(sleep\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}
