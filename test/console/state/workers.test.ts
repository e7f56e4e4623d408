import t from 'tap'
import type { Test } from 'tap'
import { Browser, PASSWORD, SECOND_KEY, YAML } from '../../behaviour/console/console.ts'
import { listening } from '../../cli/command.ts'
import { KEY } from '../../support/gateway.ts'
import { connect, post } from '../../support/wire.ts'

const STREAM = { model: 'sim,stall_after=3', stream: true, messages: [] }

async function startWorkers(t: Test, workers: number) {
  const dir = t.testdir({
    'gateway.yaml': YAML.replace('listen: 127.0.0.1:0 }', `listen: 127.0.0.1:0, workers: ${workers} }`),
  })
  const running = await listening(t, ['serve', '--config', `${dir}/gateway.yaml`])
  const line = running.lines.find(({ msg }) => msg === 'listening')
  return { ...running, console: String(line?.['console']) }
}

async function stream(t: Test, url: string) {
  const wire = await connect(t, url)
  wire.send(post('/v1/chat/completions', STREAM))
  await wire.until(/data: .*\n\n/)
  return wire
}

/** A new connection for each request, so that each worker gets requests. */
const ALONE = { headers: { connection: 'close' } }

t.test('a session is valid in each worker, and each worker reports the requests of all workers', async t => {
  const gateway = await startWorkers(t, 2)
  const browser = new Browser(gateway.console)
  await browser.login({ name: 'ops', password: PASSWORD })
  // One after another, because the workers get connections in turn.
  for (let i = 0; i < 4; i++) await stream(t, gateway.base)
  const seen: number[] = []
  // Until both have said so: who has just been asked for the first time knows of nobody else yet.
  while (seen.length < 6 || seen.slice(-6).some(running => running !== 4)) {
    const { status, json } = await browser.ask('/live', ALONE)
    t.equal(status, 200)
    const { running, exchanges } = json as { running: number; exchanges: { key: string }[] }
    t.ok(running <= 4, 'no request is counted twice')
    t.equal(exchanges.length, running)
    seen.push(running)
  }
  t.ok(seen.includes(4))
  const states = await Promise.all(Array.from({ length: 4 }, () => browser.ask('/upstreams', ALONE)))
  for (const { json } of states) t.match(json, { upstreams: [{ name: 'sim', in_flight: 4 }] })

  const holder = new Browser(gateway.console)
  await holder.login({ key: KEY })
  t.match((await holder.ask('/live', ALONE)).json, {
    running: 4, exchanges: [{ key: 'test', upstream: null }],
  })
  const other = new Browser(gateway.console)
  await other.login({ key: SECOND_KEY })
  for (let i = 0; i < 4; i++) {
    t.match((await other.ask('/live', ALONE)).json, {
      running: 0, running_streams: 0, exchanges: { length: 0 },
    })
  }
})

t.test('failed logins are counted across all workers', async t => {
  const gateway = await startWorkers(t, 2)
  const statuses: number[] = []
  for (let i = 0; i < 7; i++) {
    const { status } = await new Browser(gateway.console).ask('/session', {
      method: 'POST', body: { name: 'ops', password: 'wrong' }, ...ALONE,
    })
    statuses.push(status)
  }
  t.ok(statuses.filter(status => status === 429).length >= 1, statuses.join(' '))
})

t.test('the revocation of a key ends the streams of the key in every worker', async t => {
  const gateway = await startWorkers(t, 2)
  const wires = [await stream(t, gateway.base), await stream(t, gateway.base), await stream(t, gateway.base)]
  const browser = new Browser(gateway.console)
  await browser.login({ name: 'ops', password: PASSWORD })
  t.equal((await browser.ask('/keys/test', { method: 'DELETE' })).status, 204)
  for (const wire of wires) t.match(await wire.until(/key_revoked/), 'key_revoked')
})

t.test('connections to the console do not delay the end of a gateway with a single process', async t => {
  const gateway = await startWorkers(t, 1)
  const browser = new Browser(gateway.console)
  await browser.login({ name: 'ops', password: PASSWORD })
  await browser.ask('/panel')
  gateway.child.kill('SIGTERM')
  const { code } = await gateway.ended
  t.equal(code, 0)
  t.equal(gateway.child.exitCode, 0)
})
