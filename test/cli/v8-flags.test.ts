import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import t from 'tap'
import { listening } from './command.ts'

t.test('V8 is told what it does otherwise behind our back, after the start and by flags that it knows', async t => {
  // It would be seen by --trace-memory-reducer in half a minute, and by bench/garbage.ts.
  const told = `
    import v8 from 'node:v8'
    import { Session } from 'node:inspector'
    import { syncBuiltinESMExports } from 'node:module'
    const { setFlagsFromString } = v8
    const { post } = Session.prototype
    const tell = msg => process.stdout.write(JSON.stringify({ msg }) + '\\n')
    v8.setFlagsFromString = flag => {
      setFlagsFromString(flag)
      tell(flag)
    }
    Session.prototype.post = function (method, ...rest) {
      tell(method)
      return post.call(this, method, ...rest)
    }
    syncBuiltinESMExports()`
  const config = 'server: { listen: 127.0.0.1:0 }\nupstreams: { up: { url: "http://127.0.0.1:9" } }\n' +
    'routes: [{ path: /v1/*, to: up }]\nkeys: []\n'
  const folder = t.testdir({ 'told.mjs': told, 'gateway.yaml': config })
  const { lines, logged } = await listening(
    t, ['serve', '--config', join(folder, 'gateway.yaml')], { cwd: folder, flags: ['--import', join(folder, 'told.mjs')] },
  )
  await logged('--no-allocation-site-pretenuring')
  const messages = lines.map(({ msg }) => msg as string)
  const flags = messages.slice(messages.indexOf('listening') + 1)
  // A collection starts the clock of V8's memory reducer by the flags that it finds.
  t.notOk(messages.includes('HeapProfiler.collectGarbage'), 'nothing is collected before')
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
