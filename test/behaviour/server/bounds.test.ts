import { once } from 'node:events'
import * as http from 'node:http'
import * as net from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { loadConfig } from '../../../src/config/load/load.ts'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import { heapInUse } from '../../support/heap.ts'
import { startUpstream } from '../../support/upstream.ts'
import { connect, post } from '../../support/wire.ts'

const HEADERS = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
const CHAT = JSON.stringify({ model: 'm', messages: [] })

function yaml(url: string, server: string): string {
  return `server: { listen: 127.0.0.1:0, ${server} }\nupstreams: { up: { url: "${url}" } }\n` +
    'routes: [{ to: up }]\n'
}

async function bytesInUse(): Promise<number> {
  // Buffers are freed some time after a garbage collection.
  for (let n = 0; n < 5; n++) {
    heapInUse()
    await turn()
  }
  return process.memoryUsage().arrayBuffers
}

async function status(url: string): Promise<{ body_bytes: number; running: number }> {
  return (await (await fetch(`${url}/api/status`)).json()) as { body_bytes: number; running: number }
}

t.test('a request above max_in_flight gets 503, and the status is still served', async t => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  let arrived = 0
  const waiting = Promise.withResolvers<void>()
  const upstream = await startUpstream(t, (req, res) => {
    req.resume()
    if (++arrived === 2) waiting.resolve()
    void released.then(() => res.writeHead(200, { 'content-type': 'application/json' }).end('{}'))
  })
  const gateway = await startTestGateway(t, yaml(upstream.url, 'max_in_flight: 2'))
  const ask = () => fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST', headers: HEADERS, body: CHAT,
  })
  const served = [ask(), ask()]
  await waiting.promise
  const refused = await ask()
  t.equal(refused.status, 503)
  t.equal(refused.headers.get('retry-after'), '1')
  t.match(await refused.json(), { error: { code: 'overloaded', message: /2 requests are running/ } })
  const messages = await fetch(`${gateway.url}/v1/messages`, { method: 'POST', headers: HEADERS, body: CHAT })
  t.match([messages.status, await messages.json()], [
    503, { type: 'error', error: { type: 'overloaded_error' } },
  ])
  t.equal((await fetch(`${gateway.url}/api/status`)).status, 200)
  release()
  for (const answer of await Promise.all(served)) t.equal(answer.status, 200)
  // A request ends when it is settled, shortly after its response.
  while ((await status(gateway.url)).running > 0);
  t.equal((await ask()).status, 200, 'a further request is served')
})

t.test('the memory of a body is released at the end of the request, before the last checkpoint is written', async t => {
  const SIZE = 4_000_000
  const upstream = await startUpstream(t, (req, res) => {
    req.resume().on('end', () => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      res.write('data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n')
      setImmediate(() => res.end('data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}\n\n'
        + 'data: [DONE]\n\n'))
    })
  })
  const gateway = await startTestGateway(t, `${yaml(upstream.url, '')}ledger: { file: ledger.db }\n`)
  const body = Buffer.from(JSON.stringify({
    model: 'm', stream: true, messages: [{ role: 'user', content: 'x'.repeat(SIZE) }],
  }))
  const before = await bytesInUse()
  for (let n = 0; n < 10; n++) {
    const req = http.request(`${gateway.url}/v1/chat/completions`, { method: 'POST', headers: HEADERS })
    const [res] = (await once(req.end(body), 'response')) as [http.IncomingMessage]
    await once(res.resume(), 'end')
  }
  while ((await status(gateway.url)).running > 0);
  const kept = await bytesInUse() - before
  t.ok(kept < 2 * SIZE, `${kept} bytes`)
})

t.test('a body that exceeds the memory limit while it arrives is refused, and its memory is released', async t => {
  const upstream = await startUpstream(t, (req, res) => {
    req.resume().on('end', () => res.writeHead(200, { 'content-type': 'application/json' }).end('{}'))
  })
  const gateway = await startTestGateway(t, yaml(upstream.url, 'body_limit: 100kb, body_memory: 150kb'))
  const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x'.repeat(90_000) }] })
  const post = (length = body.length) => http.request(`${gateway.url}/v1/chat/completions`, {
    method: 'POST', agent: false, headers: { ...HEADERS, 'content-length': length },
  })
  const answer = async (req: http.ClientRequest): Promise<[number | undefined, unknown]> => {
    const [res] = (await once(req, 'response')) as [http.IncomingMessage]
    let text = ''
    for await (const part of res) text += String(part)
    return [res.statusCode, JSON.parse(text)]
  }

  const slow = post(body.length + 1)
  slow.on('error', () => {})
  slow.write(body)
  while ((await status(gateway.url)).body_bytes < body.length);

  const second = post()
  second.end(body)
  t.match(await answer(second), [503, { error: { code: 'overloaded' } }])
  slow.destroy()
  while ((await status(gateway.url)).body_bytes > 0);
  const third = post()
  third.end(body)
  t.match(await answer(third), [200, {}])
  while ((await status(gateway.url)).body_bytes > 0);
})

t.test('a held response counts as memory until the client has received the response', async t => {
  const part = JSON.stringify({ choices: [{ index: 0, delta: { content: 'x'.repeat(60_000) } }] })
  const upstream = await startUpstream(t, (req, res) => {
    req.resume()
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    res.end(`${`data: ${part}\n\n`.repeat(400)}data: [DONE]\n\n`)
  })
  const routes =
    `upstreams: { up: { url: "${upstream.url}", usage: as_is } }\nroutes: [{ to: up, resume: hold }]\n`
  const gateway = await startTestGateway(t, `server: { listen: 127.0.0.1:0, body_memory: 100mb }\n${routes}`)
  const { hostname, port } = new URL(gateway.url)
  const client = net.connect(Number(port), hostname)
  t.teardown(() => client.destroy())
  client.write(post('/v1/chat/completions', { model: 'm', stream: true, messages: [] }))
  // After the head has arrived, the gateway has the whole response.
  await once(client, 'readable')
  t.ok((await status(gateway.url)).body_bytes > 20_000_000)
  client.resume()
  await gateway.waitForLog(line => line.msg === 'exchange' && line.end === 'complete')
  while ((await status(gateway.url)).body_bytes > 0);
})

t.test('the text that a translated Responses stream repeats at its end counts as memory', async t => {
  const part = JSON.stringify({ id: 'c', model: 'm', choices: [{ index: 0, delta: { content: 'x'.repeat(60_000) } }] })
  const open: http.ServerResponse[] = []
  const upstream = await startUpstream(t, (req, res) => {
    req.resume()
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    res.write(`data: ${part}\n\n`.repeat(100))
    open.push(res)
  })
  const gateway = await startTestGateway(t, `server: { listen: 127.0.0.1:0, body_limit: 1mb, body_memory: 16mb }
upstreams: { up: { url: "${upstream.url}", speaks: [chat] } }\nroutes: [{ to: up }]\n`)
  const ask = () => fetch(`${gateway.url}/v1/responses`, { method: 'POST', headers: HEADERS, body: JSON.stringify({ model: 'm', stream: true, input: 'Hi' }) })
  const first = await ask()
  const chunks = (first.body as ReadableStream<Uint8Array>)[Symbol.asyncIterator]()
  for (let length = 0; length < 6_000_000;) length += ((await chunks.next()).value as Uint8Array).length
  const { body_bytes: held } = await status(gateway.url)
  t.ok(held >= 6_000_000, `${held} bytes`)
  // Half of the memory is for responses.
  let text = ''
  try {
    for await (const chunk of (await ask()).body ?? []) text = text.slice(-2000) + Buffer.from(chunk as Uint8Array).toString()
  } catch {
    // After the error the gateway closes the connection.
  }
  t.match(text, /"type":"error"[^]*server\.body_memory/)
  for (const res of open) res.destroy()
  while ((await status(gateway.url)).body_bytes > 0);
})

t.test('incomplete events count as memory, and an event beyond the memory limit is forwarded unread', async t => {
  const begun = `data: {"choices":[{"index":0,"delta":{"content":"${'x'.repeat(5_000_000)}`
  const open = new Map<string, http.ServerResponse>()
  const upstream = await startUpstream(t, (req, res) => {
    req.resume()
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    res.write(begun)
    open.set(req.headers['x-name'] as string, res)
  })
  const gateway = await startTestGateway(t, yaml(upstream.url, 'body_limit: 1mb, body_memory: 16mb'))
  const ask = async (name: string): Promise<AsyncIterator<Uint8Array>> => {
    const { body } = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST', headers: { ...HEADERS, 'x-name': name },
      body: JSON.stringify({ model: 'm', stream: true, messages: [] }),
    })
    return (body as ReadableStream<Uint8Array>)[Symbol.asyncIterator]()
  }
  const read = async (answer: AsyncIterator<Uint8Array>, upTo: number): Promise<string> => {
    let text = ''
    while (text.length < upTo) text += Buffer.from((await answer.next()).value as Uint8Array).toString()
    return text
  }
  const first = await ask('first')
  await read(first, begun.length)
  const held = (await status(gateway.url)).body_bytes
  t.ok(held > 5_000_000, `${held} bytes`)
  const second = await ask('second')
  await read(second, begun.length)
  t.ok((await status(gateway.url)).body_bytes < 8_000_000, 'half of the memory is kept for requests')
  for (const [name, answer] of [['first', first], ['second', second]] as const) {
    open.get(name)?.end('"}}]}\n\ndata: [DONE]\n\n')
    t.match(await read(answer, 21), /\[DONE\]/)
    t.match(await answer.next(), { done: true })
  }
  while ((await status(gateway.url)).body_bytes > 0);
})

t.test('a body in chunks of one byte takes no more memory than a body in one chunk', async t => {
  const gateway = await startTestGateway(t, yaml('http://127.0.0.1:9', 'body_limit: 8mb'))
  const client = await connect(t, gateway.url)
  const head = 'POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'
  client.send(`${head}Authorization: Bearer ${KEY}\r\nTransfer-Encoding: chunked\r\n\r\n`)
  const before = heapInUse()
  const bytes = Buffer.from('1\r\n \r\n'.repeat(100_000))
  for (let n = 1; n <= 20; n++) {
    client.socket.write(bytes)
    while ((await status(gateway.url)).body_bytes < n * 100_000);
  }
  const more = heapInUse() - before
  t.ok(more < 30_000_000, `${more >> 20} MB for 2 MB`)
})

t.test('decompressed bodies count as memory during the decompression', async t => {
  const upstream = await startUpstream(t, (req, res) => {
    req.resume().on('end', () => res.writeHead(200, { 'content-type': 'application/json' }).end('{}'))
  })
  const gateway = await startTestGateway(t, yaml(upstream.url, 'body_limit: 8mb, body_memory: 20mb'))
  const body = gzipSync(`{"model":"m",${' '.repeat(7_500_000)}"messages":[]}`)
  const before = process.memoryUsage().arrayBuffers
  let peak = 0
  const timer = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage().arrayBuffers - before)
  }, 1)
  const asked = Array.from({ length: 40 }, async () => {
    const headers = { ...HEADERS, 'content-encoding': 'gzip' }
    const answer = await fetch(`${gateway.url}/v1/chat/completions`, { method: 'POST', headers, body })
    await answer.text()
    return answer.status
  })
  const statuses = await Promise.all(asked)
  clearInterval(timer)
  t.ok(statuses.includes(200) && statuses.includes(503), statuses.join(' '))
  t.ok(peak < 120_000_000, `${peak >> 20} MB at most`)
  while ((await status(gateway.url)).body_bytes > 0);
})

t.test('a connection above max_connections gets 503 and is closed', async t => {
  const upstream = await startUpstream(t, (_req, res) => void res.end())
  const gateway = await startTestGateway(t, yaml(upstream.url, 'max_connections: 2'))
  const [first] = [await connect(t, gateway.url), await connect(t, gateway.url)]
  const third = await connect(t, gateway.url)
  third.send('GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n')
  await third.until(/^HTTP\/1\.1 503 .*\r\nretry-after: 1\r\n.*"overloaded"/s)
  await third.ended
  first.send(`GET /v1/models HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${KEY}\r\n\r\n`)
  await first.until(/^HTTP\/1\.1 200 /)
  t.pass('open connections are still served')
})

t.test('a body_memory smaller than body_limit is an error', async t => {
  const dir = t.testdir({ 'gateway.yaml': yaml('http://127.0.0.1:1', 'body_limit: 2mb, body_memory: 1mb') })
  const file = `${dir}/gateway.yaml`
  t.throws(() => loadConfig(file, {}), /body_memory must be at least server\.body_limit/)
})
