import { EventEmitter, once } from 'node:events'
import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { at, rawExchange, start } from '../start.ts'

interface Talk {
  readonly client: WebSocket
  say(message: unknown): void
  /** @returns the next events up to the first event of the type */
  until(type: string): Promise<unknown[]>
  /** @returns the close code of the connection */
  closed(): Promise<number>
}

async function talk(t: Test, url: string, list = ''): Promise<Talk> {
  const client = new WebSocket(url.replace('http', 'ws'), {
    headers: list === '' ? {} : { 'x-simulate': list },
  })
  t.teardown(() => client.terminate())
  const heard = new EventEmitter()
  const queue: unknown[] = []
  client.on('message', data => {
    queue.push(parse(data.toString()))
    heard.emit('more')
  })
  client.on('error', () => {})
  const closing = once(client, 'close')
  await once(client, 'open')
  return {
    client,
    say: message => client.send(typeof message === 'string' ? message : JSON.stringify(message)),
    until: async type => {
      const events: unknown[] = []
      for (;;) {
        if (queue.length === 0) await once(heard, 'more')
        const event = queue.shift()
        events.push(event)
        if (at(event, 'type') === type) return events
      }
    },
    closed: async () => Number((await closing)[0]),
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return { type: 'malformed', text }
  }
}

function join(events: readonly unknown[]): string {
  return events
    .filter(event => String(at(event, 'type')).endsWith('delta'))
    .map(event => at(event, 'delta'))
    .join('')
}

t.test('a response over WebSocket has the same events as a stream', async t => {
  const { url, simulator } = await start(t)
  const { say, until } = await talk(t, `${url}/v1/responses`)
  for (let i = 0; i < 2; i++) {
    say({ type: 'response.create', model: 'sim,tokens=3', input: '12345678' })
    const events = await until('response.completed')
    t.equal(at(events[0], 'type'), 'response.created')
    t.same(
      events.map(event => at(event, 'sequence_number')),
      events.map((_, index) => index),
    )
    t.equal(join(events), 'w1 w2 w3')
    t.match(events.at(-1), { response: { usage: { input_tokens: 2, output_tokens: 3 } } })
  }
  t.match(simulator.stats, { requests: 1, in_flight: 1 }, 'a connection counts as one request')
})

t.test('a realtime session sends the events of the realtime protocol', async t => {
  const { url } = await start(t)
  const { say, until } = await talk(t, `${url}/v1/realtime?model=sim,tokens=2`)
  t.match(await until('session.created'), [
    { event_id: /^event_/, session: { type: 'realtime', model: 'sim,tokens=2' } },
  ])
  say({ type: 'session.update', session: { instructions: '1234' } })
  t.match(await until('session.updated'), [{ session: { instructions: '1234' } }])
  say({ type: 'input_audio_buffer.append', audio: 'AAAA' })
  const content = [{ type: 'input_text', text: '12345678' }]
  say({ type: 'conversation.item.create', item: { type: 'message', role: 'user', content } })
  t.match(await until('conversation.item.done'), [
    { type: 'conversation.item.added' },
    { item: { id: /^item_/, content } },
  ])
  say({ type: 'response.create' })
  const events = await until('response.done')
  t.same(
    events.map(event => at(event, 'type')),
    [
      'response.created',
      'response.output_item.added',
      'conversation.item.added',
      'response.content_part.added',
      'response.output_text.delta',
      'response.output_text.delta',
      'response.output_text.done',
      'response.content_part.done',
      'conversation.item.done',
      'response.output_item.done',
      'response.done',
    ],
  )
  t.equal(join(events), 'w1 w2')
  t.equal(
    new Set(events.map(event => at(event, 'event_id'))).size,
    events.length,
    'the ids of the events differ',
  )
  t.match(events.at(-1), {
    response: { status: 'completed', usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 } },
  })
  say({ type: 'input_audio_buffer.commit' })
  await until('input_audio_buffer.committed')
  say({ type: 'input_audio_buffer.clear' })
  await until('input_audio_buffer.cleared')
})

t.test('response.cancel cancels the running response', async t => {
  const { url } = await start(t)
  const { say, until } = await talk(t, `${url}/v1/realtime?model=sim`, 'pace=60m')
  say({ type: 'response.create' })
  await until('response.created')
  say({ type: 'response.create' })
  t.match(await until('error'), [{ error: { message: /already/ } }])
  say({ type: 'response.cancel' })
  t.match(await until('response.done'), [{ response: { status: 'cancelled' } }])
  say({ type: 'response.cancel' })
  t.match(await until('error'), [{ error: { message: /no response/ } }])
})

t.test('an invalid message gets an error event, and the connection stays open', async t => {
  const { url } = await start(t)
  for (const path of ['/v1/responses', '/v1/realtime?model=sim']) {
    const { say, until } = await talk(t, url + path)
    for (const message of ['{', '[]', { type: 'nonsense' }]) {
      say(message)
      t.match((await until('error')).at(-1), { error: { type: 'invalid_request_error', message: String } })
    }
  }
  const { say, until } = await talk(t, `${url}/v1/responses`)
  say({ type: 'response.create', model: 'sim,stat=1', input: 'x' })
  t.match(await until('error'), [{ error: { message: /unknown behaviour/ } }])
  say({ type: 'response.create', model: 'sim,status=503', input: 'x' })
  t.match(await until('error'), [{ status: 503 }])
})

t.test('a behaviour in the header or model name applies to the handshake', async t => {
  const { url, port, simulator } = await start(t)
  const refused = async (list: string, path = '/v1/realtime?model=sim') => {
    const client = new WebSocket(url.replace('http', 'ws') + path, { headers: { 'x-simulate': list } })
    const [error] = (await once(client, 'error')) as [NodeJS.ErrnoException]
    return error.code ?? error.message
  }
  t.equal(await refused('status=503'), 'Unexpected server response: 503')
  t.equal(await refused('', '/v1/realtime?model=sim,status=429'), 'Unexpected server response: 429')
  t.equal(await refused('stat=1'), 'Unexpected server response: 400')
  t.equal(await refused('reset'), 'ECONNRESET')
  t.equal(await refused('close'), 'ECONNRESET', 'the client reports each end without a response as ECONNRESET')
  const handshake =
    'GET /v1/realtime HTTP/1.1\r\nhost: sim\r\nconnection: upgrade\r\nupgrade: websocket\r\n' +
    'sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n'
  const answer = await rawExchange(port, `${handshake}x-simulate: status=429, retry_after=3\r\n\r\n`)
  t.match(answer.text, /^HTTP\/1\.1 429 Too Many Requests\r\n/)
  t.match(answer.text, /\r\nretry-after: 3\r\n/)
  t.match(answer.text, /"rate_limit_error"/)
  const delayed = await talk(t, `${url}/v1/realtime`, 'headers_delay=5ms')
  await delayed.until('session.created')
  delayed.client.close()
  await delayed.closed()
  const aborted = once(simulator, 'aborted')
  const socket = connect(port, '127.0.0.1', () =>
    socket.write(`${handshake}x-simulate: headers_delay=60m\r\n\r\n`),
  )
  await once(simulator, 'upgrade')
  socket.destroy()
  t.match((await aborted)[0], { path: '/v1/realtime' })
  t.match(simulator.stats, { in_flight: 0, aborted: 1 })
})

t.test('a behaviour can cut, close, reset, corrupt, fail or stall a WebSocket response after some events', async t => {
  const { url } = await start(t)
  const path = `${url}/v1/responses`
  const ask = async (list: string) => {
    const one = await talk(t, path, `tokens=3,${list}`)
    one.say({ type: 'response.create', model: 'sim', input: 'x' })
    return one
  }
  const cut = await ask('cut_after=2')
  t.equal((await cut.until('response.in_progress')).length, 2)
  t.equal(await cut.closed(), 1000)
  const closed = await ask('close_after=2')
  t.equal((await closed.until('response.in_progress')).length, 2)
  t.equal(await closed.closed(), 1006)
  const reset = await ask('reset_after=2')
  t.equal((await reset.until('response.in_progress')).length, 2)
  t.equal(await reset.closed(), 1006)
  const malformed = await ask('malformed_after=1')
  t.equal((await malformed.until('malformed')).length, 2)
  await malformed.until('response.completed')
  const failed = await ask('error_event_after=1')
  t.equal((await failed.until('error')).length, 2)
  failed.say({ type: 'response.create', model: 'sim', input: 'x' })
  await failed.until('error')
  const stalled = await ask('stall_after=2')
  await stalled.until('response.in_progress')
})

t.test('a client that disconnects during a response counts as aborted, unlike a client that disconnects between responses', async t => {
  const { url, simulator } = await start(t)
  const leaving = await talk(t, `${url}/v1/responses`, 'pace=60m')
  leaving.say({ type: 'response.create', model: 'sim', input: 'x' })
  await leaving.until('response.created')
  const aborted = once(simulator, 'aborted')
  leaving.client.terminate()
  await aborted
  t.match(simulator.stats, { aborted: 1, completed: 0, in_flight: 0 })
  const idle = await talk(t, `${url}/v1/responses`)
  idle.say({ type: 'response.create', model: 'sim', input: 'x' })
  await idle.until('response.completed')
  idle.client.close()
  await idle.closed()
  t.match(simulator.stats, { aborted: 1 })
})

t.test('an upgrade to another protocol or on another path gets an HTTP response', async t => {
  const { port } = await start(t)
  const get = (path: string, upgrade: string) =>
    rawExchange(
      port,
      `GET ${path} HTTP/1.1\r\nhost: sim\r\nconnection: upgrade, close\r\nupgrade: ${upgrade}\r\n\r\n`,
    )
  t.match((await get('/v1/models', 'h2c')).text, /^HTTP\/1\.1 200 OK/)
  t.match((await get('/v1/models', 'websocket')).text, /^HTTP\/1\.1 200 OK/)
  t.match((await get('/v1/responses', 'h2c')).text, /^HTTP\/1\.1 405 /)
})

t.test('closeAllConnections closes WebSockets too', async t => {
  const { url, simulator } = await start(t)
  const { closed } = await talk(t, `${url}/v1/responses`)
  simulator.closeAllConnections()
  t.equal(await closed(), 1006)
})
