import { once } from 'node:events'
import { readdirSync, watch } from 'node:fs'
import { request } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { gateway, listening } from './command.ts'

const KEY = 'a-key-that-is-long-enough'

const YAML = `server: { listen: 127.0.0.1:0 }
console: { listen: 127.0.0.1:0 }
upstreams: { demo: { simulator: true } }
routes: [{ model: [demo, "sim*"], to: demo }]
keys: [{ name: team, key: ${KEY} }]
`

/** Sends a request. @returns the response after its head has arrived */
async function ask(base: string, model: string): Promise<IncomingMessage> {
  const body = JSON.stringify({ model, stream: true, messages: [{ role: 'user', content: 'hello' }] })
  const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
  const asked = request(`${base}/v1/chat/completions`, { method: 'POST', agent: false, headers })
  asked.end(body)
  const [answer] = await once(asked, 'response') as [IncomingMessage]
  return answer
}

t.test('serve logs the addresses that it listens on as JSON, and exits with 0 on SIGTERM', async t => {
  const cwd = t.testdir({ 'gateway.yaml': YAML })
  const { child, base, lines, ended } = await listening(t, ['serve'], { cwd })
  const address = /^http:\/\/127\.0\.0\.1:[1-9]\d*$/
  t.match(lines[0], { level: 'info', msg: 'listening', base: address, console: address })
  t.equal((await fetch(`${base}/api/status`)).status, 200)
  child.kill('SIGTERM')
  t.match(await ended, { code: 0, signal: null, stderr: '' })
  t.match(lines.at(-1), { msg: 'ended', cut: 0 })
})

t.test('the compile cache is written while the gateway runs', async t => {
  const cwd = t.testdir({ 'gateway.yaml': YAML, compiled: {} })
  const folder = join(cwd, 'compiled')
  const { child, ended } = await listening(t, ['serve'], { cwd, env: { NODE_COMPILE_CACHE: folder } })
  const watcher = watch(folder, { recursive: true })
  t.teardown(() => watcher.close())
  const isKept = () => readdirSync(folder, { recursive: true }).length > 1
  while (!isKept()) await once(watcher, 'change')
  child.kill('SIGKILL')
  t.match(await ended, { signal: 'SIGKILL' })
})

t.test('the example request contains a key only if the key is the default of a variable', async t => {
  const open = YAML.replace(KEY, '"${KEY:-a-public-key-for-all}"')
  const cwd = t.testdir({ 'gateway.yaml': open, 'literal.yaml': YAML })
  const shown = await listening(t, ['serve'], { cwd })
  shown.child.kill('SIGINT')
  const { stderr, code } = await shown.ended
  t.equal(code, 0)
  t.match(stderr, `curl ${shown.base}/v1/chat/completions`)
  t.match(stderr, 'Bearer a-public-key-for-all')
  const secret = { KEY: 'a-key-from-the-environment' }
  for (const [file, env] of [['literal.yaml', {}], ['gateway.yaml', secret]] as const) {
    const hidden = await listening(t, ['serve', '-c', file], { cwd, env })
    hidden.child.kill('SIGTERM')
    t.match(await hidden.ended, { code: 0, stderr: '' }, file)
    t.notMatch(JSON.stringify(hidden.lines), /a-key/)
  }
})

t.test('with log level warn, the log has the warnings of the configuration and the addresses', async t => {
  const spare = YAML.replace('demo: {', 'spare: { simulator: true }, demo: {')
  const cwd = t.testdir({ 'gateway.yaml': `${spare}log: { level: warn }\n` })
  const { lines } = await listening(t, ['serve'], { cwd })
  t.match(lines, [
    { level: 'warn', msg: 'gateway.yaml:3:14: no route names this upstream' },
    { level: 'info', msg: 'listening' },
  ])
})

t.test('the documentation is served on the address in docs.listen until SIGTERM', async t => {
  const cwd = t.testdir({ 'gateway.yaml': `${YAML}docs: { listen: 127.0.0.1:0 }\n` })
  const { child, base, ended, lines, logged } = await listening(t, ['serve'], { cwd })
  const { docs = '' } = lines.find(({ msg }) => msg === 'listening') as { docs?: string }
  t.match(docs, /^http:\/\/127\.0\.0\.1:[1-9]\d*$/)
  t.match((await fetch(docs)).headers.get('content-security-policy'), "default-src 'none'")
  const answer = await ask(base, 'sim,tokens=5,pace=100ms')
  child.kill('SIGTERM')
  await logged('draining')
  t.match(await text(answer), /data: \[DONE\]/)
  await t.rejects(fetch(docs))
  t.match(await ended, { code: 0, signal: null })
})

t.test('the gateway exits with 1 if the address of the documentation is in use', async t => {
  const other = createServer().listen(0, '127.0.0.1')
  t.teardown(() => other.close())
  await once(other, 'listening')
  const { port } = other.address() as AddressInfo
  const cwd = t.testdir({ 'gateway.yaml': `${YAML}docs: { listen: "127.0.0.1:${port}" }\n` })
  t.match(await gateway(['serve'], { cwd }), {
    code: 1, stderr: `error: cannot listen on 127.0.0.1:${port}: another program listens there already`,
  })
})

t.test('a running stream completes after SIGTERM', async t => {
  const cwd = t.testdir({ 'gateway.yaml': YAML })
  const { child, base, ended, logged } = await listening(t, ['serve'], { cwd })
  const answer = await ask(base, 'sim,tokens=5,pace=100ms')
  child.kill('SIGTERM')
  await logged('draining')
  t.match(await text(answer), /data: \[DONE\]/)
  t.match(await ended, { code: 0, signal: null })
})

t.test('a second SIGTERM ends the gateway immediately, with exit code 1 if a stream is cut', async t => {
  const cwd = t.testdir({ 'gateway.yaml': YAML })
  const { child, base, ended, logged, lines } = await listening(t, ['serve'], { cwd })
  const answer = await ask(base, 'sim,stall_after=2')
  const cut = text(answer)
  child.kill('SIGTERM')
  await logged('draining')
  child.kill('SIGTERM')
  await t.rejects(cut)
  t.match(await ended, { code: 1, signal: null })
  t.match(lines.at(-1), { msg: 'ended', cut: 1 })
})

t.test('the gateway exits with 2 and prints all errors of an invalid configuration', async t => {
  const cwd = t.testdir({ 'gateway.yaml': `${YAML}servr: {}\nlog: { level: loud }\n` })
  const { code, stdout, stderr } = await gateway(['serve'], { cwd })
  t.match({ code, stdout }, { code: 2, stdout: '' })
  t.match(stderr, /gateway\.yaml:6:1: error: unknown key "servr"; did you mean "server"\?/)
  t.match(stderr, /gateway\.yaml:7:15: error: log\.level/)
  t.match(stderr, /gateway\.yaml: 2 errors/)
})

t.test('the gateway exits with 1 and a message if its address is in use', async t => {
  const other = createServer().listen(0, '127.0.0.1')
  t.teardown(() => other.close())
  await once(other, 'listening')
  const { port } = other.address() as AddressInfo
  const cwd = t.testdir({ 'gateway.yaml': YAML.replace('127.0.0.1:0', `127.0.0.1:${port}`) })
  const { code, stderr } = await gateway(['serve'], { cwd })
  t.equal(code, 1)
  t.match(stderr, `error: cannot listen on 127.0.0.1:${port}: another program listens there already`)
  t.notMatch(stderr, /\n {4}at /)
})

for (const [what, listen, rest] of [
  ['that is not open', 'fd:33', ''],
  ['that node uses internally', 'fd:5', ''],
  ['that node uses internally, with workers', 'fd:5', ', workers: 2'],
] as const) {
  t.test(`the gateway exits with 1 and a message if it gets a descriptor ${what}`, async t => {
    const cwd = t.testdir({ 'gateway.yaml': YAML.replace('127.0.0.1:0', `"${listen}"${rest}`) })
    const { code, stderr } = await gateway(['serve'], { cwd })
    t.equal(code, 1)
    t.match(stderr, 'error: cannot listen on the descriptor: no open socket was passed')
  })
}
