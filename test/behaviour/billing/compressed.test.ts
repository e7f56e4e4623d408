import * as http from 'node:http'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import { startUpstream } from '../../support/upstream.ts'
import { openBooks, priced } from './books.ts'

const MB = 1024 * 1024
const COUNT = 32
const SIZE = 16 * MB

/** A response that is small when compressed and large when decompressed. */
const ANSWER = gzipSync(`{"choices":[{"message":{"content":"${' '.repeat(SIZE)}"}}],`
  + '"usage":{"prompt_tokens":7,"completion_tokens":5}}')

t.test('many large compressed responses at once are all metered, with bounded memory', async t => {
  let asked = 0
  const all = Promise.withResolvers<void>()
  const upstream = await startUpstream(t, (req, res) => {
    req.resume()
    if (++asked === COUNT) all.resolve()
    void all.promise.then(() => {
      res.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end(ANSWER)
    })
  })
  const gateway = await startTestGateway(t, `
server: { listen: 127.0.0.1:0, body_limit: 1mb, body_memory: 40mb }
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
`)
  const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', 'accept-encoding': 'gzip' }
  const before = process.memoryUsage().arrayBuffers
  let most = 0
  const watch = setInterval(() => {
    most = Math.max(most, process.memoryUsage().arrayBuffers - before)
  }, 100)
  t.teardown(() => clearInterval(watch))
  for (let n = 0; n < COUNT; n++) {
    http.request(`${gateway.url}/v1/chat/completions`, { method: 'POST', agent: false, headers }, res => res.resume())
      .end('{"model":"m","messages":[]}')
  }
  const lines = () => gateway.logged.filter(line => line['msg'] === 'exchange')
  await gateway.waitForLog(() => lines().length === COUNT)
  for (const line of lines()) t.match(line, { end: 'complete', input_tokens: 7, output_tokens: 5 })
  // Decompressed data stays in memory until the next garbage collection.
  t.ok(most < COUNT * SIZE / 2, `${Math.round(most / MB)} MB at most`)
  const status = (await (await fetch(`${gateway.url}/api/status`)).json()) as { body_bytes: number }
  t.equal(status.body_bytes, 0, 'all memory is released')
})

t.test('a compressed response that was cut has an unknown cost', async t => {
  const upstream = await startUpstream(t, (req, res) => {
    req.resume()
    res.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
    res.write(ANSWER.subarray(0, ANSWER.length / 2), () => res.destroy())
  })
  const books = await openBooks(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up, retries: 0 }]
${priced('m')}`)
  const answer = await fetch(`${books.gateway.url}/v1/chat/completions`, {
    method: 'POST', body: '{"model":"m","messages":[]}',
    headers: { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json', 'accept-encoding': 'gzip' },
  })
  await t.rejects(answer.text())
  await books.gateway.waitForLog(line => line.msg === 'exchange')
  const [row] = [...(await books.close()).values()]
  t.match(row, { end: 'upstream_cut', usage: { outputTokens: null }, costPico: null })
})
