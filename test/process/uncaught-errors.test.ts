import { once } from 'node:events'
import { request } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import type { Test } from 'tap'
import { gateway, listening } from '../cli/command.ts'

const KEY = 'a-key-that-is-long-enough'

const YAML = `server: { listen: 127.0.0.1:0 }
upstreams: { demo: { simulator: true } }
routes: [{ to: demo }]
keys: [{ name: team, key: ${KEY} }]
`

/** A module that is loaded before the gateway and throws where no code of the gateway catches. */
const SABOTAGE = `
import { ServerResponse } from 'node:http'
import { Server } from 'node:net'
const { writeHead } = ServerResponse.prototype
ServerResponse.prototype.writeHead = function (...args) {
  // Responses of the simulator do not have this header.
  const fault = args[1]?.includes?.('x-gateway-request-id') ? this.req.headers['x-fault'] : undefined
  if (fault === 'throw') setImmediate(() => { throw new Error('thrown in the course of an exchange') })
  if (fault === 'reject') Promise.reject(new Error('rejected in the course of an exchange'))
  return writeHead.apply(this, args)
}
// Libraries add the request and its credential to an error.
const config = { headers: { authorization: 'Bearer sk-of-a-library' } }
process.on('SIGUSR2', () => {
  throw Object.assign(new Error('thrown in the course of none', { cause: Object.assign(new Error('its cause'), { config }) }), { code: 'E_SOME', config })
})
const { listen } = Server.prototype
if (process.env.THROW_EARLY) {
  Server.prototype.listen = function (...args) {
    queueMicrotask(() => { throw new Error('thrown before it serves') })
    return listen.apply(this, args)
  }
}
`

function sabotaged(t: Test) {
  const cwd = t.testdir({ 'gateway.yaml': YAML, 'sabotage.mjs': SABOTAGE })
  return { cwd, env: { NODE_OPTIONS: `--import=${pathToFileURL(join(cwd, 'sabotage.mjs'))}` } }
}

/** Sends a request. @returns the response after its head has arrived */
async function ask(
  base: string, model: string, headers: Record<string, string> = {},
): Promise<IncomingMessage> {
  const asked = request(`${base}/v1/chat/completions`, {
    method: 'POST',
    agent: false,
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', ...headers },
  })
  asked.end(JSON.stringify({ model, stream: true, messages: [{ role: 'user', content: 'hello' }] }))
  const [answer] = await once(asked, 'response') as [IncomingMessage]
  return answer
}

t.test('an uncaught error ends only the request in which it was thrown', async t => {
  const { child, base, ended, logged, lines } = await listening(t, ['serve'], sabotaged(t))
  const other = text(await ask(base, 'sim,tokens=5,pace=100ms'))
  for (const fault of ['throw', 'reject']) {
    const hit = await ask(base, 'sim,stall_after=2', { 'x-fault': fault })
    await t.rejects(text(hit))
  }
  t.match(await logged('internal error: one request was ended'), {
    level: 'error', err: { message: /in the course/ },
  })
  t.match(await other, /data: \[DONE\]/)
  t.match(await text(await ask(base, 'sim')), /data: \[DONE\]/, 'later requests are served')
  child.kill('SIGTERM')
  t.match(await ended, { code: 0, stderr: '' })
  t.equal(lines.filter(({ msg }) => msg === 'internal error: one request was ended').length, 2)
  t.equal(lines.filter(({ msg, error }) => msg === 'exchange' && error === 'internal').length, 2)
})

t.test('after an uncaught error outside of a request, running requests complete and the process exits with 1', async t => {
  const { child, base, ended, logged, lines } = await listening(t, ['serve'], sabotaged(t))
  const running = text(await ask(base, 'sim,tokens=5,pace=100ms'))
  child.kill('SIGUSR2')
  t.match(await logged('internal error: the gateway is shutting down'), {
    level: 'fatal', err: { code: 'E_SOME', message: /in the course of none/, stack: /its cause/ },
  })
  t.notMatch(JSON.stringify(lines), 'sk-of-a-library')
  t.equal((await fetch(`${base}/api/status`)).status, 503)
  child.kill('SIGUSR2')
  t.match(await running, /data: \[DONE\]/)
  t.match(await ended, { code: 1, signal: null })
})

t.test('an uncaught error before the gateway listens ends the process immediately', async t => {
  const { cwd, env } = sabotaged(t)
  const { code, stdout } = await gateway(['serve'], { cwd, env: { ...env, THROW_EARLY: '1' } })
  t.equal(code, 1)
  t.match(stdout, /^\{"level":"fatal",[^\n]*thrown before it serves[^\n]*\n$/)
})
