import { once } from 'node:events'
import * as http from 'node:http'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import type { Test } from 'tap'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { startUpstream } from '../../support/upstream.ts'

const MB = 1024 * 1024
/** Memory for responses: half of `body_memory`. */
const ROOM = 4 * MB
const POST = {
  method: 'POST', agent: false,
  headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', 'accept-encoding': 'gzip' },
}
const USAGE = '"usage":{"prompt_tokens":7,"completion_tokens":5}}'

type Line = Record<string, unknown>

async function bytesHeld(gateway: TestGateway): Promise<number> {
  return ((await (await fetch(`${gateway.url}/api/status`)).json()) as { body_bytes: number }).body_bytes
}

function start(t: Test, url: string, memory = '8mb', route = ''): Promise<TestGateway> {
  return startTestGateway(t, `
server: { listen: 127.0.0.1:0, body_limit: 1mb, body_memory: ${memory} }
upstreams: { up: { url: "${url}" } }
routes: [{ to: up${route} }]
`)
}

/** Sends a request and reads the response: `came` resolves after `size` bytes, `whole` with all bytes. */
async function ask(url: string, size: number) {
  const req = http.request(`${url}/v1/chat/completions`, POST)
  req.on('error', () => {}).end('{"model":"m","messages":[]}')
  const [res] = (await once(req, 'response')) as [http.IncomingMessage]
  const came = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<number>()
  let bytes = 0
  res.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes >= size) came.resolve()
  }).on('error', () => {}).on('close', () => ended.resolve(bytes))
  return { req, came: came.promise, ended: ended.promise }
}

async function linesOf(gateway: TestGateway, count: number): Promise<readonly Line[]> {
  const lines = () => gateway.logged.filter(line => line['msg'] === 'exchange')
  await gateway.waitForLog(() => lines().length === count)
  return lines()
}

async function allGivenBack(gateway: TestGateway): Promise<void> {
  while ((await bytesHeld(gateway)) > 0);
}

/** An upstream that sends each response without its end; the test releases the ends. */
async function startWithheld(t: Test, size: number) {
  const start = `{"choices":[{"message":{"content":"${' '.repeat(size)}`
  const answers: http.ServerResponse[] = []
  const { url } = await startUpstream(t, (req, res) => {
    req.resume()
    answers.push(res)
    res.writeHead(200, { 'content-type': 'application/json' }).write(start)
  })
  return {
    url, answers, size: start.length,
    release: () => answers.forEach(res => res.end(`"}}],${USAGE}`)),
  }
}

t.test('large responses count as memory while they are metered, and are forwarded unread if no memory is free', async t => {
  const upstream = await startWithheld(t, MB)
  const gateway = await start(t, upstream.url)
  const asked = await Promise.all(Array.from({ length: 8 }, () => ask(gateway.url, upstream.size)))
  await Promise.all(asked.map(({ came }) => came))
  const held = await bytesHeld(gateway)
  t.ok(held > MB && held <= ROOM + 8 * 100, `${held} bytes counted`)
  upstream.release()
  const whole = upstream.size + `"}}],${USAGE}`.length
  for (const { ended } of asked) t.equal(await ended, whole, 'the client gets the whole response')
  const lines = await linesOf(gateway, 8)
  const read = lines.filter(line => line['output_tokens'] === 5 && line['input_tokens'] === 7)
  const unread = lines.filter(line => line['output_tokens'] === undefined)
  t.ok(read.length > 0 && unread.length > 0, `${read.length} read`)
  t.equal(read.length + unread.length, 8)
  for (const line of lines) t.match(line, { end: 'complete', status: 200 })
  await allGivenBack(gateway)
  const again = await ask(gateway.url, upstream.size)
  await again.came
  t.ok((await bytesHeld(gateway)) >= upstream.size, 'memory is free again')
})

t.test('a small response does not count as memory', async t => {
  const upstream = await startWithheld(t, 32_000)
  const gateway = await start(t, upstream.url)
  const { came } = await ask(gateway.url, upstream.size)
  await came
  t.ok((await bytesHeld(gateway)) < 1_000)
})

t.test('the compressed bytes of a compressed response count as memory', async t => {
  const text = `{"choices":[{"message":{"content":"${' '.repeat(200_000)}"}}],${USAGE}`
  // In gzip format without compression.
  const packed = gzipSync(text, { level: 0 })
  const answers: http.ServerResponse[] = []
  const { url } = await startUpstream(t, (req, res) => {
    req.resume()
    answers.push(res)
    res.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
    res.write(packed.subarray(0, -9))
  })
  const gateway = await start(t, url)
  const { came } = await ask(gateway.url, packed.length - 9)
  await came
  t.ok((await bytesHeld(gateway)) > packed.length - 10)
  answers[0]?.end(packed.subarray(-9))
  t.match(await linesOf(gateway, 1), [{ input_tokens: 7, output_tokens: 5 }])
  await allGivenBack(gateway)
})

for (const [how, end] of [
  ['whose client disconnects', (req: http.ClientRequest) => req.destroy()],
  ['that is cut by the upstream', (_req: http.ClientRequest, res: http.ServerResponse) => res.destroy()],
] as const) {
  t.test(`the memory of a response ${how} is released`, async t => {
    const upstream = await startWithheld(t, MB)
    const gateway = await start(t, upstream.url)
    const { req, came } = await ask(gateway.url, upstream.size)
    await came
    t.ok((await bytesHeld(gateway)) >= upstream.size)
    end(req, upstream.answers[0] as http.ServerResponse)
    await linesOf(gateway, 1)
    await allGivenBack(gateway)
  })
}

t.test('a response that is too long to be metered does not count as memory', async t => {
  const upstream = await startWithheld(t, 6 * MB)
  const gateway = await start(t, upstream.url)
  const { came } = await ask(gateway.url, upstream.size)
  await came
  t.ok((await bytesHeld(gateway)) < 1_000)
})

t.test('a response with resume: hold counts as memory once', async t => {
  const text = `{"choices":[{"message":{"content":"${' '.repeat(20 * MB)}"}}],${USAGE}`
  const { url } = await startUpstream(t, (req, res) => {
    req.resume()
    res.writeHead(200, { 'content-type': 'application/json' }).end(text)
  })
  const gateway = await start(t, url, '48mb', ', resume: hold')
  const req = http.request(`${gateway.url}/v1/chat/completions`, POST)
  req.end('{"model":"m","messages":[]}')
  // After the head has arrived, the gateway has the whole response.
  const [res] = (await once(req, 'response')) as [http.IncomingMessage]
  const held = await bytesHeld(gateway)
  t.ok(held >= text.length && held < text.length + 1_000, `${held} bytes counted`)
  res.resume()
  t.match(await linesOf(gateway, 1), [{ input_tokens: 7, output_tokens: 5 }])
  await allGivenBack(gateway)
})
