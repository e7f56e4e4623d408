import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { listening } from '../cli/command.ts'
import type { Running } from '../cli/command.ts'

/** Starts a gateway that logs the flags and inspector calls for V8. */
function toldGateway(t: Test, workers: number): Promise<Running> {
  const told = `
    import v8 from 'node:v8'
    import { Session } from 'node:inspector'
    import { syncBuiltinESMExports } from 'node:module'
    const { setFlagsFromString } = v8
    const { post } = Session.prototype
    const tell = what => process.stdout.write(JSON.stringify({ msg: (process.connected ? 'worker: ' : '') + what }) + '\\n')
    v8.setFlagsFromString = flag => {
      setFlagsFromString(flag)
      tell(flag)
    }
    Session.prototype.post = function (method, ...rest) {
      tell(method)
      return post.call(this, method, ...rest)
    }
    syncBuiltinESMExports()`
  const config = `server: { listen: 127.0.0.1:0, workers: ${workers} }\nupstreams: { up: { url: "http://127.0.0.1:9" } }\n` +
    'routes: [{ path: /v1/*, to: up }]\nkeys: []\n'
  const folder = t.testdir({ 'told.mjs': told, 'gateway.yaml': config })
  return listening(
    t, ['serve', '--config', join(folder, 'gateway.yaml')], { cwd: folder, flags: ['--import', join(folder, 'told.mjs')] },
  )
}

t.test('a single process sets V8 flags after the start, and V8 knows these flags', async t => {
  // A missing flag would only be visible with --trace-memory-reducer after half a minute, and in bench/garbage.ts.
  const { lines, logged } = await toldGateway(t, 1)
  await logged('--no-allocation-site-pretenuring')
  const messages = lines.map(({ msg }) => msg as string)
  const flags = messages.slice(messages.indexOf('listening') + 1)
  // A garbage collection starts the timer of V8's memory reducer with the flags of that moment.
  t.notOk(messages.includes('HeapProfiler.collectGarbage'), 'no garbage collection runs before the flags are set')
  t.match(flags, [
    /^--gc-memory-reducer-start-delay-ms=[1-9]\d{9}$/, /^--memory-reducer-delay-ms=[1-9]\d{9}$/,
    /^--no-allocation-site-pretenuring$/,
  ])
  const known = execFileSync(process.execPath, ['--v8-options'], { encoding: 'utf8' })
  for (const flag of flags) {
    const [, no = '', name, value] = /^--(no-)?([\w-]+)(?:=(.*))?$/.exec(flag) ?? []
    t.match(known, new RegExp(`--${name} .*\n *type: ${no || value === undefined ? 'bool' : 'int'}`), flag)
  }
})

t.test('the supervisor and the workers set V8 flags', async t => {
  const { logged } = await toldGateway(t, 2)
  await logged('--no-allocation-site-pretenuring')
  await logged('worker: --no-allocation-site-pretenuring')
  t.pass()
})
