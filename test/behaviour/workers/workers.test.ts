import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import type { Test } from 'tap'
import { gateway as run, listening } from '../../cli/command.ts'
import type { Running } from '../../cli/command.ts'
import { certificateFiles, selfSigned } from '../../support/certificate.ts'
import { KEY } from '../../support/gateway.ts'
import { connect, post } from '../../support/wire.ts'

const STREAM = { model: 'sim,stall_after=3', stream: true, messages: [] }

interface Workers extends Running {
  readonly url: string
  readonly dir: string
}

async function startWorkers(
  t: Test, limits: string, server = '', options: readonly string[] = [], more = '',
): Promise<Workers> {
  const dir = t.testdir({
    'gateway.yaml': `
server: { listen: 127.0.0.1:0, workers: 2, drain: 20s${server} }
upstreams: { sim: { simulator: true } }
routes: [{ model: priced, to: { upstream: sim, model: "sim,tokens=10" } }, { path: /v1/*, to: sim }]
models: { priced: { price: { input: 1, output: 1000000 } } }
keys: [{ name: test, key: ${KEY}, limits: { ${limits} } }]
ledger: { file: gateway.db }
${more}
`,
  })
  const running = await listening(t, ['serve', '--config', `${dir}/gateway.yaml`, ...options])
  // A supervisor that is killed takes its workers with it.
  return { ...running, url: running.base, dir }
}

/**
 * Sends a request over a connection of its own.
 * @returns its status, when its head and something more has come
 */
async function ask(t: Test, url: string, body: object): Promise<number> {
  const wire = await connect(t, url)
  wire.send(post('/v1/chat/completions', body))
  return Number(/^HTTP\/1\.1 (\d+)/.exec(await wire.until(/\r\n\r\n[^]+/))?.[1])
}

async function statusOf(url: string): Promise<{ worker: number, running: number }> {
  const answer = await fetch(`${url}/api/status`, { headers: { connection: 'close' } })
  return (await answer.json()) as { worker: number, running: number }
}

/** @returns the numbers of the responding workers */
async function serving(url: string): Promise<number[]> {
  const answers = await Promise.all(Array.from({ length: 8 }, () => statusOf(url)))
  return [...new Set(answers.map(({ worker }) => worker))].sort((a, b) => a - b)
}

function workersOf(pid: number | undefined): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number)
}

function rows(dir: string): { end: string }[] {
  using db = new DatabaseSync(`${dir}/gateway.db`, { readOnly: true })
  return db.prepare('SELECT request_id, "end" FROM requests').all() as unknown as { end: string }[]
}

const linux = process.platform === 'linux' ? false : 'processes are found in /proc'

t.test('two workers share one random port and the limits', async t => {
  const gateway = await startWorkers(t, 'concurrent: 5')
  t.equal(gateway.lines.filter(({ msg }) => msg === 'listening').length, 1)
  t.same(await serving(gateway.url), [1, 2])
  const statuses = await Promise.all(Array.from({ length: 12 }, () => ask(t, gateway.url, STREAM)))
  t.equal(statuses.filter(status => status === 200).length, 5)
  t.equal(statuses.filter(status => status === 429).length, 7)
  const wire = await connect(t, gateway.url)
  wire.send(post('/v1/chat/completions', STREAM))
  t.match(await wire.until(/\r\n\r\n[^]+/), /retry-after/i)
})

t.test('all workers share one budget', async t => {
  // Each request costs 10 USD, and reserves as much.
  const gateway = await startWorkers(t, 'budget: { usd: 50, per: day }')
  const body = { model: 'priced', max_tokens: 10, messages: [] }
  const statuses: number[] = []
  for (let n = 0; n < 8; n++) statuses.push(await ask(t, gateway.url, body))
  t.same([...new Set(statuses)], [200, 429])
  t.ok(statuses.filter(status => status === 200).length <= 5, statuses.join())
})

t.test('workers with leases use up a large budget without exceeding the budget', async t => {
  // A request costs 10 USD and a little: 200 of them are too many.
  const gateway = await startWorkers(t, 'budget: { usd: 2000, per: day }')
  const body = JSON.stringify({ model: 'priced', max_tokens: 10, messages: [] })
  let left = 300
  const statuses: number[] = []
  await Promise.all(Array.from({ length: 8 }, async () => {
    while (left-- > 0) {
      const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST', body,
        headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', connection: 'close' },
      })
      statuses.push(answer.status)
      await answer.text()
    }
  }))
  t.equal(statuses.length, 300)
  t.equal(statuses.filter(status => status === 200).length, 199)
})

t.test('a killed worker is replaced, and its concurrency is released', {
  skip: linux,
}, async t => {
  const gateway = await startWorkers(t, 'concurrent: 4')
  const opened = await Promise.all(Array.from({ length: 4 }, () => ask(t, gateway.url, STREAM)))
  t.same(opened, [200, 200, 200, 200])
  t.equal(await ask(t, gateway.url, STREAM), 429)
  const [victim] = workersOf(gateway.child.pid) as [number]
  process.kill(victim, 'SIGKILL')
  t.match(await gateway.logged('worker ended: starting another'), { pid: victim, signal: 'SIGKILL' })
  await gateway.logged('worker listens again')
  t.equal((await serving(gateway.url)).length, 2)
  t.equal(await ask(t, gateway.url, STREAM), 200, 'the killed worker held two of four')
  while (!rows(gateway.dir).some(({ end }) => end === 'interrupted'));
  t.pass('the ledger has the interrupted requests')
})

t.test('a connection to a worker that is killed before it accepts is closed', { skip: linux }, async t => {
  const gateway = await startWorkers(t, 'concurrent: 4')
  const victim = workersOf(gateway.child.pid)[0] as number
  process.kill(victim, 'SIGSTOP')
  let answered = 0
  const { promise: othersAnswered, resolve } = Promise.withResolvers<void>()
  const clients = await Promise.all(Array.from({ length: 4 }, () => connect(t, gateway.url)))
  const ends = clients.map(client => client.ended.finally(() => {
    if (++answered === 3) resolve()
  }))
  const status = 'GET /api/status HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
  for (const client of clients) client.send(status)
  await othersAnswered
  process.kill(victim, 'SIGKILL')
  await Promise.all(ends)
  t.equal(clients.filter(({ text }) => text.startsWith('HTTP/1.1 200 ')).length, 3)
})

t.test('workers without file descriptors close connections, and serve again when descriptors are free', {
  skip: linux,
}, async t => {
  const gateway = await startWorkers(t, 'concurrent: 4')
  const workers = workersOf(gateway.child.pid)
  const allow = (files: number | string) => {
    for (const pid of workers) execFileSync('prlimit', ['--pid', String(pid), `--nofile=${files}:`])
  }
  const allowed = execFileSync('prlimit', [
    '--pid', String(workers[0]), '--nofile', '--output', 'SOFT', '--noheadings',
  ], { encoding: 'utf8' }).trim()
  t.same(await serving(gateway.url), [1, 2])
  allow(3)
  const clients = await Promise.all(Array.from({ length: 6 }, () => connect(t, gateway.url)))
  await Promise.all(clients.map(client => client.ended))
  allow(allowed)
  t.same(await serving(gateway.url), [1, 2])
})

t.test('a replacement worker starts with the active configuration, even if the file has changed', {
  skip: linux,
}, async t => {
  const gateway = await startWorkers(t, 'concurrent: 2')
  const file = `${gateway.dir}/gateway.yaml`
  const replaceWorker = async (): Promise<void> => {
    const again = () => gateway.lines.filter(({ msg }) => msg === 'worker listens again').length
    const before = again()
    process.kill(workersOf(gateway.child.pid)[0] as number, 'SIGKILL')
    while (again() === before) await once(gateway.child.stdout as NodeJS.ReadableStream, 'data')
  }

  const reloaded = () => gateway.lines.filter(({ msg }) => msg === 'configuration reloaded').length
  const changed = readFileSync(file, 'utf8')
    .replace('concurrent: 2', 'concurrent: 1').replace('gateway.db', 'other.db')
    .replace('127.0.0.1:0', '127.0.0.2:0')
  writeFileSync(file, changed)
  gateway.child.kill('SIGHUP')
  while (reloaded() < 2) await once(gateway.child.stdout as NodeJS.ReadableStream, 'data')
  await replaceWorker()
  writeFileSync(file, 'routes: [')
  await replaceWorker()

  t.same(await serving(gateway.url), [3, 4], 'both workers use the address of the start')
  t.equal(await ask(t, gateway.url, STREAM), 200)
  t.equal(await ask(t, gateway.url, STREAM), 429, 'with the limit that was reloaded')
  t.notOk(existsSync(`${gateway.dir}/other.db`), 'with the ledger of the start')
  const { config } = await (await fetch(`${gateway.url}/api/status`)).json() as StatusBody
  t.same(config.restart_needed, ['server.listen', 'ledger.file'])
})

interface StatusBody {
  readonly config: { readonly restart_needed: readonly string[] }
}

t.test('the gateway starts a worker again if the worker cannot start while its certificate is being replaced', {
  skip: linux,
}, async t => {
  const { key, certFile, keyFile } = certificateFiles(t)
  const gateway = await startWorkers(
    t, 'concurrent: 2', `, tls: { cert: ${certFile}, key: ${keyFile} }`,
  )
  const ended = () => gateway.lines.filter(({ msg }) => msg === 'worker ended: starting another')
  writeFileSync(keyFile, selfSigned().key)
  process.kill(workersOf(gateway.child.pid)[0] as number, 'SIGKILL')
  while (ended().length < 2) await once(gateway.child.stdout as NodeJS.ReadableStream, 'data')
  t.match(ended()[1], { code: 2 })
  writeFileSync(keyFile, key)
  await gateway.logged('worker listens again')
})

t.test('all workers load a watched file that changes while one worker is replaced', {
  skip: linux,
}, async t => {
  const gateway = await startWorkers(t, 'concurrent: 2', '', ['--watch'])
  const file = `${gateway.dir}/gateway.yaml`
  process.kill(workersOf(gateway.child.pid)[0] as number, 'SIGKILL')
  await gateway.logged('worker ended: starting another')
  writeFileSync(file, readFileSync(file, 'utf8').replace('concurrent: 2', 'concurrent: 1'))
  const reloads = () => gateway.lines.filter(({ msg }) => msg === 'configuration reloaded')
  const workers = () => [...new Set(reloads().map(({ worker }) => worker))].sort()
  while (workers().length < 2) await once(gateway.child.stdout as NodeJS.ReadableStream, 'data')
  t.same(workers(), [2, 3])
})

t.test('SIGHUP reloads all workers, and SIGTERM drains all workers', async t => {
  const gateway = await startWorkers(t, 'concurrent: 100')
  const file = `${gateway.dir}/gateway.yaml`
  const reloads = () => gateway.lines.filter(({ msg }) => msg === 'configuration reloaded')
  writeFileSync(file, readFileSync(file, 'utf8').replace('concurrent: 100', 'concurrent: 1'))
  gateway.child.kill('SIGHUP')
  while (reloads().length < 2) await once(gateway.child.stdout as NodeJS.ReadableStream, 'data')
  t.same(reloads().map(({ worker }) => worker).sort(), [1, 2])
  const paced = { model: 'sim,tokens=20,pace=50ms', stream: true, messages: [] }
  const wire = await connect(t, gateway.url)
  wire.send(post('/v1/chat/completions', paced))
  await wire.until(/data: /)
  t.equal(await ask(t, gateway.url, paced), 429, 'the new limit holds')
  gateway.child.kill('SIGTERM')
  t.match(await wire.until(/\[DONE\]\n\n\r\n0\r\n\r\n$/), /w20/)
  t.equal((await gateway.ended).code, 0)
  t.same(rows(gateway.dir).map(({ end }) => end).sort(), ['complete', 'refused'])
})

t.test('a hanging worker ends when server.drain is over', { skip: linux }, async t => {
  const gateway = await startWorkers(t, 'concurrent: 4')
  const file = `${gateway.dir}/gateway.yaml`
  writeFileSync(file, readFileSync(file, 'utf8').replace('drain: 20s', 'drain: 100ms'))
  gateway.child.kill('SIGHUP')
  const reloads = () => gateway.lines.filter(({ msg }) => msg === 'configuration reloaded')
  while (reloads().length < 2) await once(gateway.child.stdout as NodeJS.ReadableStream, 'data')
  process.kill(workersOf(gateway.child.pid)[0] as number, 'SIGSTOP')
  gateway.child.kill('SIGTERM')
  t.equal((await gateway.ended).code, 1)
})

t.test('a connection to the documentation above max_connections is closed', async t => {
  const gateway = await startWorkers(
    t, 'concurrent: 2', ', max_connections: 1', [], 'docs: { listen: 127.0.0.1:0 }',
  )
  const { docs } = gateway.lines.find(({ msg }) => msg === 'listening') as { docs?: string }
  const clients = await Promise.all(Array.from({ length: 3 }, () => connect(t, docs ?? '')))
  await Promise.race(clients.map(client => client.ended))
  t.pass('each of the two workers keeps one connection')
})

t.test('an address in use is reported once, and ends the gateway', async t => {
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  t.teardown(() => other.close())
  const { port } = other.address() as AddressInfo
  const dir = t.testdir({ 'gateway.yaml': '' })
  appendFileSync(`${dir}/gateway.yaml`, `
server: { listen: "127.0.0.1:${port}", workers: 2 }
upstreams: { sim: { simulator: true } }
routes: [{ to: sim }]
keys: [{ name: test, key: ${KEY} }]
`)
  const { code, stderr } = await run(['serve', '--config', `${dir}/gateway.yaml`])
  t.equal(code, 1)
  t.equal(stderr.match(/cannot listen on/g)?.length, 1, stderr)
})
