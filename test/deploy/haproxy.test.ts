import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { startLoad } from '../behaviour/reload/load.ts'
import { KEY, Service } from '../behaviour/reload/service.ts'
import { freePort } from '../support/free-port.ts'

const CONFIG = join(import.meta.dirname, '../../deploy/haproxy/haproxy.cfg')
const withoutHaproxy = spawnSync('haproxy', ['-v']).status === 0 ? false : 'needs haproxy'

interface Farm {
  /** Where HAProxy listens. */
  readonly base: string
  readonly gateways: readonly [Service, Service]
  /** Starts a gateway again, at its port. */
  start(index: 0 | 1): Promise<Service>
}

/** Two gateways, each a process, behind HAProxy. */
async function startFarm(t: Test): Promise<Farm> {
  const folder = t.testdir({})
  const [ports, front] = [[await freePort(), await freePort()] as const, await freePort()]
  const start = async (index: 0 | 1): Promise<Service> => {
    const file = join(folder, `gateway${index}.yaml`)
    writeFileSync(file, `
server: { listen: 127.0.0.1:${ports[index]}, trusted_proxies: [127.0.0.1], drain_delay: 4s }
upstreams: { up: { simulator: true } }
routes: [{ to: up }]
keys: [{ name: first, key: ${KEY} }]
ledger: { file: ${index}.db }
`)
    const service = new Service(['serve', '--config', file])
    t.teardown(() => service.child.kill('SIGKILL'))
    await service.listening()
    return service
  }
  const gateways = await Promise.all([start(0), start(1)])
  const haproxy = spawn('haproxy', ['-db', '-f', CONFIG], {
    env: {
      ...process.env, HAPROXY_BIND: `127.0.0.1:${front}`, GATEWAY_1: `127.0.0.1:${ports[0]}`, GATEWAY_2: `127.0.0.1:${ports[1]}`,
    },
    stdio: 'ignore',
  })
  t.teardown(async () => {
    const ended = once(haproxy, 'exit')
    haproxy.kill('SIGKILL')
    await ended
  })
  const base = `http://127.0.0.1:${front}`
  while (!await fetch(`${base}/api/status`).then(({ ok }) => ok, () => false)) {
    if (haproxy.exitCode !== null) throw new Error('haproxy ended')
  }
  return { base, gateways, start }
}

t.test('gateways behind HAProxy', { skip: withoutHaproxy }, async t => {
  await t.test('no request fails in a rolling restart under load', async t => {
    const { base, gateways, start } = await startFarm(t)
    const load = startLoad({ base, key: KEY, clients: 4, ways: ['kept', 'fresh'] })
    await load.more(100)
    for (const index of [0, 1] as const) {
      gateways[index].child.kill('SIGTERM')
      await gateways[index].logged('draining')
      await load.more(100)
      t.equal(await gateways[index].ended, 0, 'no request is cut')
      const successor = await start(index)
      // A request in the log shows that HAProxy sends requests to the new gateway.
      await successor.logged('exchange')
      await load.more(100)
    }
    const { failures, answers, streams } = await load.stop()
    t.strictSame(failures, [])
    t.ok(answers > 0 && streams > 0, `${answers} responses and ${streams} streams`)
  })

  await t.test('after one gateway is killed, all new requests succeed', async t => {
    const { base, gateways, start } = await startFarm(t)
    const load = startLoad({ base, key: KEY, clients: 2, ways: ['fresh'] })
    await load.more(50)
    const ended = once(gateways[0].child, 'exit')
    gateways[0].child.kill('SIGKILL')
    await ended
    await load.stop()
    const after = startLoad({ base, key: KEY, clients: 2, ways: ['kept', 'fresh'] })
    await after.more(100)
    await (await start(0)).logged('exchange')
    t.strictSame((await after.stop()).failures, [])
  })

  await t.test('HAProxy forwards chunks and disconnects immediately, sends the client address and replaces the request id', async t => {
    const { base, gateways } = await startFarm(t)
    const response = await fetch(`${base}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json', 'x-gateway-request-id': 'from-the-client' },
      body: JSON.stringify({ model: 'sim,stall_after=2', stream: true, messages: [{ role: 'user', content: 'hello' }] }),
    })
    const reader = response.body!.getReader()
    const { value } = await reader.read()
    t.match(Buffer.from(value!).toString(), /^data: /, 'the first chunk arrives while the upstream is silent')
    t.not(response.headers.get('x-gateway-request-id'), 'from-the-client')
    await reader.cancel()
    const line = await Promise.race(gateways.map(gateway => gateway.logged('exchange')))
    t.match(line, { client: '127.0.0.1', end: 'client_gone' })
  })
})
