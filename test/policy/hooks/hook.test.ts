import { createHmac } from 'node:crypto'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import type { HookConfig } from '../../../src/config/hook-types.ts'
import { systemClock } from '../../../src/base/clock.ts'
import { MAX_CALL_BYTES } from '../../../src/policy/hooks/hook-call.ts'
import { Hook, type HookOutcome, type HookResult } from '../../../src/policy/hooks/hook.ts'
import { Health } from '../../../src/routing/health.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { bodyOf, startRawUpstream, startUpstream } from '../../support/upstream.ts'

const SECRET = 'a-secret-of-the-hook'

function hookAt(t: Test, url: string, changes: Partial<HookConfig> = {}, clock: FakeClock | typeof systemClock = systemClock) {
  const outcomes: HookOutcome[] = []
  const hook = new Hook({
    name: 'dlp', url: `${url}/check?mode=strict`, onRequest: true, onResponse: false, send: 'text', timeout: 10_000, whenDown: 'refuse',
    concurrency: 2, secret: SECRET, tap: false, all: false, ca: null, proxy: null, ...changes,
  }, { clock, health: new Health({ clock, random: () => 1 }), observe: (_hook, _on, outcome) => outcomes.push(outcome) })
  t.teardown(() => hook.close())
  return { hook, outcomes }
}

function question(body = '{"version":1}') {
  return { on: 'request' as const, ids: new Set(['t1', 't2']), replaces: true, requestId: 'r1', body: Buffer.from(body) }
}

function json(res: ServerResponse, reply: unknown): void {
  res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(reply))
}

async function startHook(t: Test, listener: RequestListener, changes: Partial<HookConfig> = {}) {
  const { url } = await startUpstream(t, listener)
  return hookAt(t, url, changes)
}

function failureOf(result: HookResult): string | null {
  return result.ok ? null : result.failure
}

t.test('a call is signed and its reply is read', async t => {
  const got: { headers: IncomingMessage['headers'], url: string | undefined, body: string }[] = []
  const { hook, outcomes } = await startHook(t, async (req, res) => {
    got.push({ headers: req.headers, url: req.url, body: String(await bodyOf(req)) })
    json(res, { action: 'replace', texts: [{ id: 't2', text: 'new' }], tags: { project: 'alpha' }, later: true })
  })
  const result = await hook.ask(question())
  t.ok(result.ok)
  if (result.ok) {
    t.equal(result.reply.texts.get('t2'), 'new')
    t.equal(result.reply.tags.get('project'), 'alpha')
  }
  const [call] = got
  t.equal(call?.url, '/check?mode=strict')
  t.equal(call?.body, '{"version":1}')
  const { 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': signature } = call?.headers ?? {}
  t.ok(Math.abs(Number(at) - Date.now() / 1000) < 60)
  t.equal(signature, `v1,${createHmac('sha256', SECRET).update(`${id}.${at}.${call?.body}`).digest('base64')}`)
  t.match(call?.headers, { 'x-gateway-hook': 'dlp', 'x-gateway-hook-version': '1', 'x-request-id': 'r1', authorization: undefined })
  t.same(outcomes, ['replace'])
})

t.test('calls use kept-alive connections', async t => {
  const ports = new Set<number | undefined>()
  const { hook } = await startHook(t, (req, res) => {
    ports.add(req.socket.remotePort)
    req.resume().on('end', () => json(res, { action: 'allow' }))
  })
  for (let n = 0; n < 5; n++) t.ok((await hook.ask(question())).ok)
  // A connection takes the next call only after its reply has ended.
  t.ok(ports.size <= 2)
})

t.test('an empty reply and 204 allow', async t => {
  const statuses = [204, 200]
  const { hook } = await startHook(t, (req, res) => void req.resume().on('end', () => res.writeHead(statuses.shift() ?? 500).end()))
  t.match(await hook.ask(question()), { ok: true, reply: { action: 'allow' } })
  t.match(await hook.ask(question()), { ok: true, reply: { action: 'allow' } })
})

t.test('a lying service is a failure', async t => {
  const replies: Record<string, [failure: string, (res: ServerResponse) => void]> = {
    'no JSON': ['invalid', res => res.end('<html>')],
    'another coding': ['invalid', res => res.writeHead(200, { 'content-encoding': 'gzip' }).end('{"action":"allow"}'.slice(1))],
    'an unknown id': ['invalid', res => json(res, { action: 'replace', texts: [{ id: 't9', text: '' }] })],
    'texts that do not exist': ['invalid', res => json(res, { action: 'replace', texts: Array.from({ length: 1000 }, () => ({ id: 't1', text: 'x' })) })],
    '10 MB': ['reply_too_large', res => res.end(Buffer.alloc(10 * 1024 * 1024, 0x20))],
    'a redirect': ['status', res => res.writeHead(307, { location: '/elsewhere' }).end()],
    'an error': ['status', res => res.writeHead(500).end('{"action":"allow"}')],
    'a closed connection': ['unreachable', res => res.destroy()],
    'half a reply': ['unreachable', res => {
      res.writeHead(200, { 'content-length': 100 }).write('{"action":')
      res.socket?.end()
    }],
  }
  for (const [name, [failure, reply]] of Object.entries(replies)) {
    await t.test(name, async t => {
      const { hook, outcomes } = await startHook(t, (req, res) => void req.resume().on('end', () => reply(res)))
      t.equal(failureOf(await hook.ask(question())), failure)
      t.same(outcomes, [failure])
    })
  }
})

t.test('bytes that are no HTTP are a failure', async t => {
  const { url } = await startRawUpstream(t, socket => socket.once('data', () => socket.end('SSH-2.0-OpenSSH_9.7\r\n')))
  t.equal(failureOf(await hookAt(t, url).hook.ask(question())), 'unreachable')
})

t.test('a service that never answers ends with the timeout, and its connection is closed', async t => {
  const clock = new FakeClock()
  let closed = () => {}
  const isClosed = new Promise<void>(resolve => (closed = resolve))
  let asked = () => {}
  const isAsked = new Promise<void>(resolve => (asked = resolve))
  const { url } = await startUpstream(t, (req, res) => {
    req.resume()
    res.writeHead(200).write('{"action"')
    res.on('close', closed)
    asked()
  })
  const { hook } = hookAt(t, url, { timeout: 300 }, clock)
  const result = hook.ask(question())
  await isAsked
  clock.advance(300)
  t.equal(failureOf(await result), 'timeout')
  await isClosed
})

t.test('a call waits for room, in its timeout, and a full queue is a failure', async t => {
  const clock = new FakeClock()
  const open: ServerResponse[] = []
  let arrived = () => {}
  const { url } = await startUpstream(t, (req, res) => {
    req.resume()
    open.push(res)
    arrived()
  })
  const { hook } = hookAt(t, url, { concurrency: 1 }, clock)
  const first = hook.ask(question())
  while (open.length < 1) await new Promise<void>(resolve => (arrived = resolve))
  const waiting = [1, 2, 3, 4].map(() => hook.ask(question()))
  t.same(hook.load, { running: 1, waiting: 4 })
  t.equal(failureOf(await hook.ask(question())), 'queue_full')
  json(open[0] as ServerResponse, { action: 'allow' })
  t.ok((await first).ok)
  while (open.length < 2) await new Promise<void>(resolve => (arrived = resolve))
  clock.advance(10_000)
  t.same((await Promise.all(waiting)).map(failureOf), ['timeout', 'timeout', 'timeout', 'timeout'])
  t.same(hook.load, { running: 0, waiting: 0 })
})

t.test('a call that is stopped leaves the queue', async t => {
  const { hook } = await startHook(t, req => void req.resume(), { concurrency: 1 })
  const stops: (() => void)[] = []
  const calls = [1, 2].map(at => hook.ask(question(), stop => (stops[at] = stop)))
  stops[2]?.()
  t.equal(failureOf(await (calls[1] as Promise<HookResult>)), 'stopped')
  while (stops[1] === undefined) await new Promise(setImmediate)
  stops[1]?.()
  t.equal(failureOf(await (calls[0] as Promise<HookResult>)), 'stopped')
  t.same(hook.load, { running: 0, waiting: 0 })
})

t.test('failures open the circuit, and one call closes it again', async t => {
  const clock = new FakeClock()
  let isDown = true
  let calls = 0
  const { url } = await startUpstream(t, (req, res) => {
    calls++
    req.resume().on('end', () => (isDown ? res.writeHead(503).end() : json(res, { action: 'allow' })))
  })
  const { hook } = hookAt(t, url, {}, clock)
  for (let n = 0; n < 3; n++) t.equal(failureOf(await hook.ask(question())), 'status')
  const result = await hook.ask(question())
  t.match(result, { ok: false, failure: 'circuit_open', detail: 'status: status 503' })
  t.equal(calls, 3)
  isDown = false
  clock.advance(5_000)
  t.ok((await hook.ask(question())).ok)
  t.ok((await hook.ask(question())).ok)
})

t.test('a call that is too large is not sent', async t => {
  let calls = 0
  const { hook } = await startHook(t, (_req, res) => {
    calls++
    res.end()
  })
  t.equal(failureOf(await hook.ask(question(' '.repeat(MAX_CALL_BYTES + 1)))), 'call_too_large')
  t.equal(calls, 0)
})

t.test('a connection that was closed while it was idle costs no failure', async t => {
  const { url, server } = await startUpstream(t, (req, res) => void req.resume().on('end', () => json(res, { action: 'allow' })))
  const { hook } = hookAt(t, url)
  t.ok((await hook.ask(question())).ok)
  server.closeAllConnections()
  t.ok((await hook.ask(question())).ok)
})
