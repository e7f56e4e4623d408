import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { dirname, join } from 'node:path'
import * as zlib from 'node:zlib'
import t from 'tap'
import type { Test } from 'tap'
import { systemClock } from '../../../src/base/clock.ts'
import { Archive } from '../../../src/transcripts/archive.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'

const CONFIG = `
upstreams: { demo: { simulator: true } }
routes: [{ to: demo }]
ledger: { file: gateway.db }
keys:
  - { name: team-a, key: sk-team-a-0123456789 }
  - { name: team-b, key: sk-team-b-0123456789 }
log: { bodies: [{ key: "*-a", keep: 1d, limit: 1kb }] }
`

const chat = (key: string, content: string, more: object = {}) => ({
  method: 'POST',
  headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
  body: JSON.stringify({ model: 'demo', messages: [{ role: 'user', content }], ...more }),
})

t.test('bodies are stored only for the keys that the configuration names', async t => {
  const gateway = await startTestGateway(t, CONFIG)
  const kept = await fetch(`${gateway.url}/v1/chat/completions`, chat('sk-team-a-0123456789', 'Hello'))
  const sent = await kept.text()
  const other = await fetch(`${gateway.url}/v1/chat/completions`, chat('sk-team-b-0123456789', 'Private'))
  await other.text()
  await gateway.close()

  const archive = archiveOf(t, gateway.file)
  const [one, ...more] = await archive.find(kept.headers.get('x-gateway-request-id') ?? '')
  t.same(more, [])
  t.match(one, {
    key: 'team-a', request: { contentType: 'application/json' }, response: { contentType: /json/ },
  })
  t.match(JSON.parse(textOf(one?.request.bytes)), { messages: [{ content: 'Hello' }] })
  t.equal(textOf(one?.response.bytes), sent, 'the same bytes as the client got')
  t.same(await archive.find(other.headers.get('x-gateway-request-id') ?? ''), [])
})

t.test('a stream is stored up to the limit, with its real length', async t => {
  const gateway = await startTestGateway(t, CONFIG)
  const answer = await fetch(`${gateway.url}/v1/chat/completions`,
    chat('sk-team-a-0123456789', 'word '.repeat(1000), { stream: true, model: 'sim,tokens=100' }))
  const sent = await answer.bytes()
  await gateway.close()

  const [one] = await archiveOf(t, gateway.file).find(answer.headers.get('x-gateway-request-id') ?? '')
  t.equal(one?.request.bytes.length, 1024)
  t.ok((one?.request.total ?? 0) > 5000)
  t.ok(sent.length > 1024, 'the stream is longer than what is kept')
  t.equal(one?.response.total, sent.length)
  t.equal(textOf(one?.response.bytes), textOf(sent.subarray(0, 1024)))
})

t.test('a compressed response is stored decompressed', async t => {
  const words = JSON.stringify({ content: 'grüße '.repeat(10) })
  const long = 'word '.repeat(100_000)
  // Text that compression hardly shortens, so that only its beginning is kept.
  const noise = randomBytes(20_000).toString('hex')
  const answers: Record<string, readonly [encoding: string, body: Buffer]> = {
    gzip: ['gzip', zlib.gzipSync(words)],
    deflate: ['Deflate', zlib.deflateSync(words)],
    br: ['br', zlib.brotliCompressSync(words)],
    zstd: ['zstd', zlib.zstdCompressSync(words)],
    long: ['gzip', zlib.gzipSync(long)],
    noise: ['br', zlib.brotliCompressSync(noise)],
    untrue: ['gzip', Buffer.from(words)],
    unknown: ['secret', Buffer.from(words)],
  }
  const upstream = await startUpstream(t, async (req, res) => {
    const { model } = JSON.parse((await bodyOf(req)).toString()) as { model: string }
    const [encoding, body] = answers[model] ?? ['identity', Buffer.alloc(0)]
    res.writeHead(200, { 'content-type': 'application/json', 'content-encoding': encoding })
    res.end(body)
  })
  const gateway = await startTestGateway(t, CONFIG.replace('simulator: true', `url: "${upstream.url}"`))
  const ids = new Map<string, string>()
  for (const model of Object.keys(answers)) {
    const { headers, body } = chat('sk-team-a-0123456789', 'Hello', { model })
    const req = request(`${gateway.url}/v1/chat/completions`, { method: 'POST', headers })
    req.end(body)
    const [res] = await once(req, 'response')
    t.same(await bodyOf(res), answers[model]?.[1], `${model}: the client gets what was sent`)
    ids.set(model, String(res.headers['x-gateway-request-id']))
  }
  await gateway.close()

  const archive = archiveOf(t, gateway.file)
  const kept = async (model: string) => {
    const [one] = await archive.find(ids.get(model) ?? '')
    return { text: textOf(one?.response.bytes), total: one?.response.total }
  }
  const whole = { text: words, total: Buffer.byteLength(words) }
  for (const model of ['gzip', 'deflate', 'br', 'zstd', 'untrue', 'unknown']) {
    t.same(await kept(model), whole, model)
  }
  t.same(await kept('long'), { text: long.slice(0, 1024), total: long.length })
  const { text, total = 0 } = await kept('noise')
  t.equal(text, noise.slice(0, 1024))
  t.ok(total > text.length, 'the transcript is marked as incomplete')
})

t.test('a response whose client disconnected is stored up to the last byte sent', async t => {
  const gateway = await startTestGateway(t, CONFIG)
  const { headers, body } = chat('sk-team-a-0123456789', 'slow', {
    stream: true, model: 'sim,pace=50ms,tokens=1000',
  })
  const req = request(`${gateway.url}/v1/chat/completions`, { method: 'POST', headers })
  req.end(body)
  const [res] = await once(req, 'response')
  await once(res, 'data')
  res.destroy()
  await gateway.waitForLog(line => line['end'] === 'client_gone')
  await gateway.close()

  const [one] = await archiveOf(t, gateway.file).find(String(res.headers['x-gateway-request-id']))
  t.ok(one && one.response.total > 0)
})

t.test('a broken stream is stored with the error that the client gets', async t => {
  const gateway = await startTestGateway(t, CONFIG)
  const answer = await fetch(`${gateway.url}/v1/chat/completions`,
    chat('sk-team-a-0123456789', 'Hello', { stream: true, model: 'sim,close_after=1' }))
  let sent = ''
  await t.rejects(async () => {
    for await (const piece of answer.body ?? []) sent += Buffer.from(piece as Uint8Array).toString()
  })
  t.match(sent, '"upstream_cut"')
  await gateway.close()

  const [one] = await archiveOf(t, gateway.file).find(answer.headers.get('x-gateway-request-id') ?? '')
  t.equal(textOf(one?.response.bytes), sent)
})

t.test('a 502 response is stored if the upstream cannot be reached', async t => {
  const gateway = await startTestGateway(t, CONFIG.replace('simulator: true', 'url: "http://127.0.0.1:9"'))
  const answer = await fetch(`${gateway.url}/v1/chat/completions`, chat('sk-team-a-0123456789', 'Hello'))
  t.equal(answer.status, 502)
  const sent = await answer.text()
  await gateway.close()
  const [one] = await archiveOf(t, gateway.file).find(answer.headers.get('x-gateway-request-id') ?? '')
  t.equal(textOf(one?.response.bytes), sent)
})

t.test('the file is created only after the configuration, at the start or by a reload, names a key', async t => {
  const gateway = await startTestGateway(t, CONFIG.replace(/^log:.*$/m, ''))
  const ask = async () => {
    const answer = await fetch(`${gateway.url}/v1/chat/completions`, chat('sk-team-a-0123456789', 'Hello'))
    await answer.text()
    return answer.headers.get('x-gateway-request-id') ?? ''
  }
  const before = await ask()
  t.notOk(existsSync(join(dirname(gateway.file), 'bodies.db')))
  t.equal((await gateway.change(CONFIG)).applied, true)
  const after = await ask()
  await gateway.close()
  const archive = archiveOf(t, gateway.file)
  t.equal((await archive.find(after)).length, 1)
  t.equal((await archive.find(before)).length, 0)
})

t.test('after a reload removes a key, running requests of the key are not stored', async t => {
  const ends: (() => void)[] = []
  const upstream = await startUpstream(t, (req, res) => {
    void bodyOf(req).then(() => {
      res.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {"choices":[]}\n\n')
      ends.push(() => res.end('data: [DONE]\n\n'))
    })
  })
  const yaml = CONFIG.replace('simulator: true', `url: "${upstream.url}"`)
  const gateway = await startTestGateway(t, yaml)
  const answer = await fetch(
    `${gateway.url}/v1/chat/completions`, chat('sk-team-a-0123456789', 'Hello', { stream: true }),
  )
  t.equal((await gateway.change(yaml.replace(/^log:.*$/m, ''))).applied, true)
  for (const end of ends) end()
  await answer.text()
  await gateway.close()
  t.same(await archiveOf(t, gateway.file).find(answer.headers.get('x-gateway-request-id') ?? ''), [])
})

t.test('if the file cannot be written, requests are served and the log has an error', async t => {
  const gateway = await startTestGateway(t, CONFIG)
  mkdirSync(join(dirname(gateway.file), 'bodies.db'))
  const answer = await fetch(`${gateway.url}/v1/chat/completions`, chat('sk-team-a-0123456789', 'Hello'))
  t.equal(answer.status, 200)
  await answer.text()
  await gateway.waitForLog(line => line['msg'] === 'bodies cannot be kept')
})

t.test('after a failure, the file is not opened again for each request', async t => {
  const file = join(t.testdir({}), 'bodies.db')
  const clock = new FakeClock()
  // Keeps the process alive, because the thread does not.
  const awake = setInterval(() => {}, 60_000)
  t.teardown(() => clearInterval(awake))
  const nothing = { contentType: null, bytes: new Uint8Array(), total: 0 }
  const transcript = {
    requestId: 'one', startedAt: 0, key: 'k', expiresAt: Date.now() + 1_000_000,
    request: nothing, response: nothing,
  }
  const failed = async (): Promise<Archive> => {
    writeFileSync(file, 'no database'.repeat(100))
    const { promise, resolve } = Promise.withResolvers<string>()
    const archive = new Archive({ file, clock, onFailure: ({ message }) => resolve(message) })
    t.match(await promise, 'not a database')
    return archive
  }
  const resting = await failed()
  await t.rejects(resting.find('one'), { message: /not a database/ })
  rmSync(file)
  resting.keep(transcript, null)
  await resting.close()
  t.notOk(existsSync(file), 'the file was not opened')

  const rested = await failed()
  rmSync(file)
  clock.advance(5_000)
  rested.keep(transcript, null)
  await rested.close()
  t.ok(existsSync(file), 'the next try')
})

function archiveOf(t: Test, file: string): Archive {
  const archive = new Archive({
    file: join(dirname(file), 'bodies.db'),
    clock: systemClock,
    onFailure: ({ message }) => t.fail(message),
  })
  t.teardown(() => archive.close())
  return archive
}

function textOf(bytes: Uint8Array | undefined): string {
  return Buffer.from(bytes ?? []).toString()
}
