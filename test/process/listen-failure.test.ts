import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { descriptorOf } from '../support/descriptor.ts'
import { GATEWAY } from '../cli/command.ts'

t.test('a descriptor of a Unix socket ends the gateway with exit code 1 and a message', {
  skip: process.platform === 'win32' && 'it has no such descriptors',
}, async t => {
  const cwd = t.testdir({
    'gateway.yaml': `
server: { listen: "fd:3" }
upstreams: { demo: { simulator: true } }
routes: [{ to: demo }]
auth: open
`,
  })
  // A short path, because the path of a socket is limited.
  const folder = mkdtempSync(join(tmpdir(), 'fd-'))
  const socket = createServer().listen(join(folder, 's'))
  t.teardown(() => {
    socket.close()
    rmSync(folder, { recursive: true })
  })
  await once(socket, 'listening')
  const stdio = ['ignore', 'ignore', 'pipe', descriptorOf(socket)] as const
  const child = spawn(process.execPath, [GATEWAY, 'serve'], { cwd, stdio: [...stdio] })
  const stderr = child.stderr as Readable
  const [said, [code]] = await Promise.all([text(stderr), once(child, 'close')])
  t.equal(code, 1)
  t.match(said, 'error: cannot listen on the descriptor: it is a Unix socket')
})
