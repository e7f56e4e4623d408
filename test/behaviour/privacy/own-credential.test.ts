import { readFileSync, readdirSync } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import { dirname, join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { gunzipSync } from 'node:zlib'
import { systemClock } from '../../../src/base/clock.ts'
import { Archive } from '../../../src/transcripts/archive.ts'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'

const OWN = 'sk-marked-own-credential-0123456789'
const SAID = '{"choices":[{"index":0,"message":{"content":"x"}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}'

/** Where a request goes, in the model's name: what its first target does. */
const CASES = ['success', 'failover', 'echo', 'echo-500', 'refused', 'hedge', 'translated', 'redirect', 'stream'] as const

/** Every byte that the upstream got, and the credential of each request. */
async function startWatched(t: Test, respond: (model: string, headers: IncomingHttpHeaders) => { status: number, body: string, headers?: Record<string, string> }) {
  const received: string[] = []
  const { url } = await startUpstream(t, async (req, res) => {
    const body = String(await bodyOf(req))
    received.push(`${req.url} ${JSON.stringify(req.rawHeaders)} ${body}`)
    const { model = '' } = body === '' ? {} : JSON.parse(body) as { model?: string }
    const { status, body: said, headers } = respond(model, req.headers)
    if (status === 0) return
    res.writeHead(status, { 'content-type': 'application/json', ...headers }).end(said)
  })
  return { url, received }
}

t.test("a client's own credential is found nowhere but at the upstream that it is for", async t => {
  const own = await startWatched(t, (model, { authorization }) => {
    const echo = JSON.stringify({ error: { message: `bad key ${authorization}`, code: 'x' } })
    switch (model) {
      case 'failover': return { status: 503, body: echo }
      case 'echo': case 'translated': return { status: 400, body: echo, headers: { 'x-echo': String(authorization) } }
      case 'echo-500': return { status: 500, body: echo }
      case 'refused': return { status: 401, body: echo, headers: { 'www-authenticate': `Bearer token="${OWN}"` } }
      case 'hedge': return { status: 0, body: '' }
      case 'redirect': return { status: 307, body: '{}', headers: { location: `${other.url}/v1/elsewhere?key=${OWN}` } }
      case 'stream': return { status: 200, body: `data: ${SAID}\n\ndata: ${echo}\n\n`, headers: { 'content-type': 'text/event-stream' } }
      default: return { status: 200, body: SAID, headers: { 'x-echo': String(authorization) } }
    }
  })
  const other = await startWatched(t, () => ({ status: 200, body: SAID }))
  const collected: Buffer[] = []
  const collector = await startUpstream(t, async (req, res) => {
    const body = await bodyOf(req)
    collected.push(Buffer.from(JSON.stringify(req.headers)), req.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body)
    res.end('{}')
  })
  const gateway = await startTestGateway(t, `
upstreams:
  own: { url: "${own.url}", auth: { client: true }, health: { path: /healthy, every: 1s } }
  own-messages: { url: "${own.url}", auth: { client: true }, speaks: [messages] }
  other: { url: "${other.url}" }
  pooled: { url: "${other.url}", auth: { pool: [{ bearer: sk-pool-0123456789 }, { bearer: sk-pool-1123456789 }] }, health: { path: /healthy, every: 1s } }
routes:
  - { model: translated, to: own-messages }
  - { model: hedge, to: [own, pooled], hedge: { after: 50ms } }
  - { model: failover, to: [own, pooled, other] }
  - { to: own }
ledger: { file: ledger.db }
log: { bodies: [{ key: "*", keep: 1d }] }
telemetry: { otlp: { endpoint: "${collector.url}", protocol: http/json, metrics: false } }
models: { m: { price: { input: 1, output: 1 } } }
`)
  const responses: string[] = []
  const ids: string[] = []
  for (const model of CASES) {
    const response = await fetch(`${gateway.url}/v1/chat/completions?key=${OWN}&x=${OWN}`, {
      method: 'POST', redirect: 'manual',
      headers: { 'content-type': 'application/json', 'x-gateway-key': KEY, 'authorization': `Bearer ${OWN}`, 'x-copy': `see ${OWN}` },
      body: JSON.stringify({ model, stream: model === 'stream' || model === 'hedge', max_tokens: 5, messages: [{ role: 'user', content: model === 'success' ? `my key is ${OWN}` : 'x' }] }),
    }).catch((error: unknown) => t.fail(String(error)))
    if (!(response instanceof Response)) continue
    const text = await response.text().catch(() => '')
    ids.push(response.headers.get('x-gateway-request-id') ?? '')
    // The body of a success passes unchanged, as with the operator's credential.
    if (model !== 'stream') responses.push(JSON.stringify([...response.headers]) + text)
  }
  await gateway.drain()
  await gateway.close()

  const atOwn = own.received.filter(text => text.includes(OWN))
  t.ok(atOwn.length >= CASES.length, 'the upstream that it is for got it')
  t.notMatch(own.received.filter(text => text.startsWith('/healthy')).join(), OWN, 'health checks have none')
  t.notMatch(own.received.join(), `see ${OWN}`, 'only in its own header')
  t.notMatch(own.received.join(), KEY)
  t.ok(other.received.some(text => text.includes('"failover"')), 'the failover took place')
  t.ok(other.received.some(text => text.includes('"hedge"')), 'the hedge took place')
  t.ok(own.received.some(text => text.includes(`my key is ${OWN}`)), 'what the client writes into its body is sent')
  t.notMatch(other.received.join(), OWN)
  t.notMatch(responses.join('\n'), OWN)
  t.notMatch(JSON.stringify(gateway.logged), OWN)
  t.ok(collected.length > 0, 'spans were sent')
  t.notMatch(String(Buffer.concat(collected)), OWN)
  const folder = dirname(gateway.file)
  for (const file of readdirSync(folder)) t.notOk(readFileSync(join(folder, file)).includes(OWN), file)
  const archive = new Archive({ file: join(folder, 'bodies.db'), clock: systemClock, onFailure: ({ message }) => t.fail(message) })
  t.teardown(() => archive.close())
  let kept = 0
  for (const id of ids) {
    for (const { request, response } of await archive.find(id)) {
      kept++
      t.notMatch(Buffer.from(request.bytes).toString(), OWN)
      t.notMatch(Buffer.from(response.bytes).toString(), OWN)
    }
  }
  t.ok(kept > 0, 'bodies were kept')
})
