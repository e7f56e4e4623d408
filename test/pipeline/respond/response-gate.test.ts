import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import type { Test } from 'tap'
import { start } from '../../simulator/start.ts'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'
import { STREAM_HEAD, chunk, connect, post, startWireUpstream } from '../../support/wire.ts'
import type { Wire } from '../../support/wire.ts'
import { DIALECTS, WORDS, ask, everyWay, twoTargets } from '../../behaviour/failover/asking.ts'

const CHAT = { model: 'm', stream: true, messages: [] }
const EVENT = 'data: {"choices":[{"delta":{"content":"one"}}]}\n\n'
const DONE = 'data: [DONE]\n\n'

/** A gateway with two targets: an upstream that the test plays, and the simulator. */
async function playing(t: Test, play: (wire: Wire) => Promise<void>, rest = '') {
  const first = await startWireUpstream(t, play)
  const { url, simulator } = await start(t)
  const gateway = await startTestGateway(t, twoTargets(first.url, url, 'x', 'sim', rest))
  return { gateway, simulator, client: await connect(t, gateway.url) }
}

t.test('if another target is left, the head is sent together with the first event', async t => {
  const { promise: goOn, resolve: letGo } = Promise.withResolvers<void>()
  const headed = Promise.withResolvers<void>()
  const { client, gateway, simulator } = await playing(t, async wire => {
    await wire.request()
    wire.socket.write(STREAM_HEAD + chunk(': keep-alive\n\n'), () => headed.resolve())
    await goOn
    wire.send(chunk(EVENT))
  })
  client.send(post('/v1/chat/completions', CHAT))
  await headed.promise
  // After two further responses the gateway has processed all earlier data.
  for (let n = 0; n < 2; n++) await fetch(`${gateway.url}/v1/models`)
  t.equal(client.text, '')
  letGo()
  const text = await client.until(/"one"/)
  t.match(text, /^HTTP\/1\.1 200 /)
  t.match(text, /: keep-alive\n\n/, 'earlier comments are sent')
  t.equal(simulator.stats.requests, 0)
})

t.test('if no other target is left, the head is sent at once', async t => {
  const upstream = await startWireUpstream(t, async wire => {
    await wire.request()
    wire.send(STREAM_HEAD)
    await wire.ended
  })
  const gateway = await startTestGateway(
    t, twoTargets(upstream.url, upstream.url, 'x', 'y', '    retries: 0'),
  )
  const client = await connect(t, gateway.url)
  client.send(post('/v1/chat/completions', CHAT))
  t.match(await client.until(/\r\n\r\n/), /^HTTP\/1\.1 200 /)
})

t.test('the head of the last attempt is sent at once', async t => {
  const upstream = await startWireUpstream(t, async wire => {
    const { body } = await wire.request()
    if (body.includes('"x"')) wire.socket.destroy()
    else wire.send(STREAM_HEAD)
    await wire.ended
  })
  const gateway = await startTestGateway(t, twoTargets(upstream.url, upstream.url, 'x', 'y'))
  const client = await connect(t, gateway.url)
  client.send(post('/v1/chat/completions', CHAT))
  const head = await client.until(/\r\n\r\n/)
  t.match(head, /^HTTP\/1\.1 200 /)
  t.match(head, /x-gateway-attempts: 2/)
})

for (const keepAlive of [': ping\n\n', 'event: ping\ndata: {"type": "ping"}\n\n', 'data:\n\n', '\n\n']) {
  t.test(`${JSON.stringify(keepAlive)} is no first event: after timeouts.first_byte ` +
    'the next target is tried', async t => {
    const { client } = await playing(t, async wire => {
      await wire.request()
      wire.send(STREAM_HEAD)
      const timer = setInterval(() => wire.send(chunk(keepAlive)), 20)
      await wire.ended
      clearInterval(timer)
    }, '    timeouts: { first_byte: 1s, idle: 5s }')
    client.send(post('/v1/chat/completions', CHAT))
    const text = await client.until(/\[DONE\]/)
    t.match(text, /x-gateway-upstream: b/)
    t.notMatch(text, /ping/)
  })
}

t.test('a first event that arrives byte by byte reaches the client unchanged', async t => {
  const { client } = await playing(t, async wire => {
    await wire.request()
    wire.send(STREAM_HEAD)
    for (const byte of EVENT + DONE) wire.send(chunk(byte))
    wire.send('0\r\n\r\n')
  })
  client.send(post('/v1/chat/completions', CHAT))
  const text = await client.until(/0\r\n\r\n$/)
  const body = text.slice(text.indexOf('\r\n\r\n') + 4).replaceAll(/[0-9a-f]+\r\n([^]*?)\r\n/g, '$1')
  t.equal(body, EVENT + DONE)
})

t.test('a first event that is an error and arrives byte by byte causes a failover', async t => {
  const { client } = await playing(t, async wire => {
    await wire.request()
    wire.send(STREAM_HEAD)
    for (const byte of 'data: {"error":{"message":"no"}}\r\n\r\n') wire.send(chunk(byte))
    await wire.ended
  })
  client.send(post('/v1/chat/completions', CHAT))
  t.match(await client.until(/\[DONE\]/), /x-gateway-upstream: b/)
})

t.test('response.failed as the first event causes a failover', async t => {
  const failed = { type: 'response.failed', response: { status: 'failed', error: { code: 'server_error' } } }
  const { client } = await playing(t, async wire => {
    await wire.request()
    wire.send(STREAM_HEAD + chunk(`event: response.failed\ndata: ${JSON.stringify(failed)}\n\n`))
    await wire.ended
  })
  client.send(post('/v1/responses', { model: 'm', stream: true, input: 'count' }))
  t.match(await client.until(/response\.\w+/), /x-gateway-upstream: b/)
})

t.test('a stream with only an end marker causes a failover', async t => {
  const { client } = await playing(t, async wire => {
    await wire.request()
    wire.send(`${STREAM_HEAD}${chunk(`: well\n\n${DONE}`)}0\r\n\r\n`)
    await wire.ended
  })
  client.send(post('/v1/chat/completions', CHAT))
  t.match(await client.until(/\[DONE\]/), /x-gateway-upstream: b/)
})

t.test('a first event that is too large to be read is forwarded', async t => {
  const large = `data: {"choices":[{"delta":{"content":"${'x'.repeat(1024 * 1024)}"}}]}\n\n`
  const { client } = await playing(t, async wire => {
    await wire.request()
    wire.send(STREAM_HEAD + chunk(large) + chunk(DONE) + '0\r\n\r\n')
    await wire.ended
  })
  client.send(post('/v1/chat/completions', CHAT))
  const text = await client.until(/\[DONE\]/)
  t.match(text, /x-gateway-upstream: a/)
  t.ok(text.length > large.length)
})

everyWay(t, 'a huge event is forwarded completely', async (t, dialect, stream) => {
  const { url } = await start(t)
  const gateway = await startTestGateway(t, twoTargets(url, url, 'sim,huge=300kb', 'sim'))
  const answer = await ask(gateway, dialect, { stream })
  t.equal(answer.headers.get('x-gateway-upstream'), 'a')
  t.ok(answer.text.length >= 300 * 1024)
})

/** The simulator, behind a server that forwards only the body of the response, without status and content type. */
async function startUntold(t: Test) {
  const { url } = await start(t)
  return startUpstream(t, async (req, res) => {
    const body = new Uint8Array(await bodyOf(req))
    const headers = { 'content-type': 'application/json' }
    const answer = await fetch(url + req.url, { method: 'POST', headers, body })
    res.end(Buffer.from(await answer.arrayBuffer()))
  })
}

for (const resume of ['off', 'hold']) {
  everyWay(t, `a stream without a content-type is recognized: resume ${resume}`, async (t, dialect) => {
    const { url } = await startUntold(t)
    const gateway = await startTestGateway(t, twoTargets(url, url, 'sim', 'sim', `    resume: ${resume}`))
    const answer = await ask(gateway, dialect, { stream: true })
    t.match(answer, { status: 200, text: WORDS, whole: true })
    t.equal(answer.headers.get('x-gateway-upstream'), 'a')
  }, [true])

  everyWay(t, `an error without a content-type causes a failover: resume ${resume}`, async (t, dialect) => {
    const { url } = await startUntold(t)
    for (const fault of ['first_event_error', 'error_200']) {
      const gateway = await startTestGateway(
        t, twoTargets(url, url, `sim,${fault}`, 'sim', `    resume: ${resume}`),
      )
      const answer = await ask(gateway, dialect, { stream: true })
      t.match(answer, { status: 200, text: WORDS })
      t.equal(answer.headers.get('x-gateway-upstream'), 'b')
    }
  }, [true])
}

t.test('a 200 whose body is not JSON causes a failover', async t => {
  for (const body of ['<html>maintenance</html>', '', '{"choices":[', 'upstream connect error']) {
    const { client } = await playing(t, async wire => {
      await wire.request()
      wire.send(`HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
      await wire.ended
    })
    client.send(post('/v1/chat/completions', { model: 'm', messages: [] }))
    t.match(await client.until(/"choices"/), /x-gateway-upstream: b/)
  }
})

everyWay(t, 'a body with a bare JSON value or a wrong content-encoding causes a failover', async (t, dialect, stream) => {
  const bodies: readonly (readonly [string, string?])[] = [
    ['null'], ['"down"'], ['7'], ['{"choices":[]', 'gzip'], ['x', 'br'],
  ]
  const { url } = await start(t)
  for (const [body, encoding] of bodies) {
    const compression = encoding && { 'content-encoding': encoding }
    const sick = await startUpstream(t, (_req, res) => {
      res.writeHead(200, { 'content-type': 'application/json', ...compression })
      res.end(body)
    })
    const gateway = await startTestGateway(t, twoTargets(sick.url, url, 'x', 'sim'))
    t.match(await ask(gateway, dialect, { stream }), { status: 200, text: WORDS, whole: true }, body)
  }
})

t.test('usage is read from JSON that follows a byte order mark or blank lines', async t => {
  const long = 'x'.repeat(600_000)
  for (const [before, padding] of [['\ufeff', ''], ['\ufeff', long], ['\n'.repeat(600), ''], ['\n'.repeat(600), long]] as const) {
    const usage = { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 }
    const body = before + JSON.stringify({ choices: [], usage, padding })
    const upstream = await startUpstream(t, (_req, res) => {
      res.writeHead(200, { 'content-type': 'application/json' }).end(body)
    })
    const gateway = await startTestGateway(t, twoTargets(upstream.url, 'http://127.0.0.1:1', 'x', 'y'))
    const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm', messages: [] }),
    })
    t.equal(answer.headers.get('x-gateway-upstream'), 'a')
    t.equal(Buffer.from(await answer.arrayBuffer()).toString(), body)
    t.match(await gateway.waitForLog(each => each.msg === 'exchange'), { input_tokens: 7, output_tokens: 3 })
  }
})

t.test('an error in a JSON body with status 200 causes a failover if the body is smaller than 256 kB', async t => {
  const padding = 'x'.repeat(600_000)
  for (const body of [
    '{"error":{"code":502}}', '  {"id":"1","error":{"message":"no"}}', `{"error":{"message":"${padding}"}}`,
  ]) {
    const { client } = await playing(t, async wire => {
      await wire.request()
      wire.send(
        `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      )
      await wire.ended
    })
    client.send(post('/v1/chat/completions', { model: 'm', messages: [] }))
    const text = await client.until(/"choices"|"error"/)
    t.match(text, body.length < 256 * 1024 ? /x-gateway-upstream: b/ : /x-gateway-upstream: a/)
  }
})

t.test('an error as the first element of a generate stream in the form of a JSON array causes a failover', async t => {
  const [, , generate] = DIALECTS
  for (const [body, who] of [
    ['[{"error":{"code":503,"message":"no","status":"UNAVAILABLE"}}]', 'b'],
    ['[{"candidates":[]}]', 'a'],
  ] as const) {
    const first = await startWireUpstream(t, async wire => {
      await wire.request()
      wire.send(
        `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      )
      await wire.ended
    })
    const { url } = await start(t)
    const gateway = await startTestGateway(t, twoTargets(first.url, url, 'x', 'sim'))
    const path = generate!.path('m', true).replace('?alt=sse', '')
    const answer = await ask(gateway, { ...generate!, path: () => path }, { stream: true })
    t.equal(answer.headers.get('x-gateway-upstream'), who)
  }
})

t.test('an audio response is forwarded from its first byte', async t => {
  const { client } = await playing(t, async wire => {
    await wire.request()
    wire.send(
      `HTTP/1.1 200 OK\r\nContent-Type: audio/mpeg\r\nTransfer-Encoding: chunked\r\n\r\n${chunk('ID3')}`,
    )
    await wire.ended
  })
  client.send(post('/v1/audio/speech', { model: 'm', input: 'x', voice: 'y' }))
  t.match(await client.until(/ID3/), /x-gateway-upstream: a/)
})

t.test('a stream of an unknown path is forwarded from its first byte', async t => {
  const { client } = await playing(t, async wire => {
    await wire.request()
    wire.send(STREAM_HEAD + chunk('da'))
    await wire.ended
  })
  client.send(post('/v1/other', { model: 'm' }))
  t.match(await client.until(/da\r\n/), /x-gateway-upstream: a/)
})

t.test('a stream with an unrequested compression is forwarded from its first byte', async t => {
  const { client } = await playing(t, async wire => {
    await wire.request()
    wire.send(STREAM_HEAD.replace('\r\n\r\n', '\r\nContent-Encoding: gzip\r\n\r\n') + chunk('packed'))
    await wire.ended
  })
  client.send(post('/v1/chat/completions', CHAT))
  t.match(await client.until(/packed/), /x-gateway-upstream: a/)
})

t.test('a compressed response that is too large to be read is forwarded', async t => {
  const body = gzipSync(JSON.stringify({ choices: [], padding: randomBytes(400_000).toString('base64') }))
  const upstream = await startUpstream(t, (_req, res) => {
    res.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end(body)
  })
  const { url } = await start(t)
  const gateway = await startTestGateway(t, twoTargets(upstream.url, url, 'x', 'sim'))
  const answer = await ask(gateway, DIALECTS[0]!)
  t.match(answer, { status: 200, whole: true })
  t.equal(answer.headers.get('x-gateway-upstream'), 'a')
})

t.test('if the client does not read, the gateway reads at most its buffer from the upstream', async t => {
  const piece = `data: {"choices":[{"delta":{"content":"${'x'.repeat(60_000)}"}}]}\n\n`
  let sent = 0
  const stalled = Promise.withResolvers<void>()
  const taken = Promise.withResolvers<void>()
  const { client } = await playing(t, async wire => {
    await wire.request()
    wire.send(STREAM_HEAD)
    for (let n = 0; n < 600; n++) {
      sent = n
      if (!wire.socket.write(chunk(piece))) {
        const drained = once(wire.socket, 'drain')
        const timer = setTimeout(() => stalled.resolve(), 1_000)
        await drained
        clearTimeout(timer)
      }
    }
    wire.socket.write(chunk(DONE) + '0\r\n\r\n', () => taken.resolve())
  })
  client.socket.pause()
  client.send(post('/v1/chat/completions', CHAT))
  await stalled.promise
  t.ok(sent < 500, `${sent} pieces were taken`)
  client.socket.resume()
  await taken.promise
})

t.test('while an upstream sends only keep-alives, the gateway sends keep-alives to the client', async t => {
  for (const goesOn of [true, false]) {
    t.test(goesOn ? 'then the upstream responds' : 'then the upstream fails, and the next upstream responds', async t => {
      const { promise: seen, resolve: see } = Promise.withResolvers<void>()
      const { client } = await playing(t, async wire => {
        await wire.request()
        wire.send(STREAM_HEAD + chunk(': processing\n\n'))
        await seen
        if (goesOn) wire.send(`${chunk(EVENT)}${chunk(DONE)}0\r\n\r\n`)
        else wire.socket.resetAndDestroy()
        await wire.ended
      })
      client.send(post('/v1/chat/completions', CHAT))
      t.match(await client.until(/keep-alive/), /^HTTP\/1\.1 200 /)
      see()
      const text = await client.until(/0\r\n\r\n$/)
      t.match(text, goesOn ? /: processing\n\n[^]*"one"[^]*\[DONE\]/ : /"w1"[^]*w16[^]*\[DONE\]/)
    })
  }
})
