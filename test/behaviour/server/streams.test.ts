import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import * as net from 'node:net'
import t from 'tap'
import { listening } from '../../cli/command.ts'
import { KEY } from '../../support/gateway.ts'
import { post } from '../../support/wire.ts'

const IDLE = 5_000
const SLOW = 500
/** Descriptors for the connections on both sides, and some more. */
const FILES = 2 * (IDLE + SLOW) + 1_000
/** MB; the unread responses of all slow readers would need 4,000 MB. */
const MOST = 1_000

const allowed = spawnSync('sh', ['-c', 'ulimit -Hn'], { encoding: 'utf8' }).stdout.trim()
const skip = process.platform !== 'linux' ? 'memory is read from /proc'
  : Number(allowed) < FILES ? `ulimit -n is ${allowed}, and this takes ${FILES}` : false

/** @returns the memory of a process, MB */
function memory(pid: number | undefined): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024
}

t.test(`${IDLE} idle streams and ${SLOW} clients that do not read use bounded memory, and other clients are served`, { skip }, async t => {
  const simulator = await listening(t, ['simulate', '--listen', '127.0.0.1:0'])
  const dir = t.testdir({
    'gateway.yaml': `
server: { listen: 127.0.0.1:0 }
upstreams: { up: { url: "${simulator.base}" } }
routes: [{ path: /v1/*, to: up }]
keys: [{ name: test, key: ${KEY}, limits: { concurrent: 10000 } }]
ledger: { file: gateway.db }
log: { level: error }
`,
  })
  const gateway = await listening(t, ['serve', '--config', `${dir}/gateway.yaml`])
  const { port } = new URL(gateway.base)
  const sockets: net.Socket[] = []
  let broken = 0
  t.teardown(() => sockets.forEach(socket => socket.destroy()))

  /** Resolves when the response has begun. */
  const open = async (model: string): Promise<net.Socket> => {
    const socket = net.connect({ port: Number(port), host: '127.0.0.1' }).on('error', () => {})
    sockets.push(socket)
    socket.once('close', () => broken++)
    socket.write(post('/v1/chat/completions', { model, stream: true, messages: [] }))
    const [first] = (await once(socket, 'data')) as [Buffer]
    if (!String(first).startsWith('HTTP/1.1 200 ')) throw new Error(String(first))
    return socket
  }
  const AT_ONCE = 100
  for (let n = 0; n < IDLE; n += AT_ONCE) {
    await Promise.all(Array.from({ length: AT_ONCE }, () => open('sim,tokens=1000,stall_after=3')))
  }
  const idle = memory(gateway.child.pid)
  for (let n = 0; n < SLOW; n += AT_ONCE) {
    await Promise.all(Array.from({ length: AT_ONCE }, async () => {
      // Each response has 8 MB; the client reads only the first piece.
      (await open('sim,tokens=1000,chunk=8kb')).pause()
    }))
  }
  const answer = await fetch(`${gateway.base}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: '{"model":"sim","messages":[]}',
  })
  t.equal(answer.status, 200, 'other clients are served')
  const status = (await (await fetch(`${gateway.base}/api/status`)).json()) as { running: number }
  t.ok(status.running >= IDLE + SLOW, `${status.running} under way`)
  const all = memory(gateway.child.pid)
  t.comment(
    `${idle.toFixed(0)} MB with ${IDLE} idle streams, ${all.toFixed(0)} MB with ${SLOW} slow readers as well`,
  )
  t.ok(all < MOST, `${all.toFixed(0)} MB`)
  t.equal(broken, 0, 'none was cut')
})
