import { once } from 'node:events'
import t from 'tap'
import { CHAT, CHAT_PATH, at, dechunk, gather, parseEvents, rawExchange, rawPost, rawUntil, start, streamRequest } from './start.ts'

t.test('reset_after resets the connection after the given number of events', async t => {
  const { port } = await start(t)
  const { text, ended } = await rawExchange(port, streamRequest('reset_after=3'))
  t.equal(ended, 'ECONNRESET')
  t.equal(gather(parseEvents(dechunk(text).body), 'choices', 0, 'delta', 'content'), 'w1 w2')
})

t.test('close_after closes the connection before the last chunk of the response', async t => {
  const { port } = await start(t)
  const { text, ended } = await rawExchange(port, streamRequest('close_after=3'))
  const { body, complete } = dechunk(text)
  t.equal(ended, 'end')
  t.equal(complete, false)
  t.equal(parseEvents(body).length, 3)
  t.equal(parseEvents(dechunk((await rawExchange(port, streamRequest('close_after=0'))).text).body).length, 0)
})

t.test('cut_after ends the HTTP response without the last event of the protocol', async t => {
  const { post } = await start(t)
  const text = await (await post(CHAT_PATH, { model: 'sim,cut_after=3', ...CHAT, stream: true })).text()
  t.equal(parseEvents(text).length, 3)
  t.notMatch(text, '[DONE]')
  const nothing = await post(CHAT_PATH, { model: 'sim,cut_after=0', ...CHAT, stream: true })
  t.equal(await nothing.text(), '')
})

t.test('a fault is ignored if the stream has fewer events than its number', async t => {
  const { post } = await start(t)
  for (const kind of ['cut', 'stall', 'close', 'reset', 'error_event', 'malformed']) {
    const model = `sim,tokens=2,${kind}_after=99`
    const text = await (await post(CHAT_PATH, { model, ...CHAT, stream: true })).text()
    t.ok(text.endsWith('data: [DONE]\n\n'), kind)
  }
})

t.test('no_terminator omits the last event of the protocol', async t => {
  const { post } = await start(t)
  const list = { 'x-simulate': 'no_terminator,tokens=2' }
  const chat = await (await post(CHAT_PATH, { model: 'sim', ...CHAT, stream: true }, list)).text()
  t.match(parseEvents(chat).at(-1)?.data, { choices: [{ finish_reason: 'stop' }] })
  const messages = await (await post('/v1/messages', { model: 'sim', ...CHAT, stream: true }, list)).text()
  t.equal(parseEvents(messages).at(-1)?.name, 'message_delta')
  const responses = await (
    await post('/v1/responses', { model: 'sim', input: 'x', stream: true }, list)
  ).text()
  t.equal(parseEvents(responses).at(-1)?.name, 'response.output_item.done')
  const contents = [{ parts: [{ text: 'x' }] }]
  const events = await (
    await post('/v1beta/models/sim:streamGenerateContent?alt=sse', { contents }, list)
  ).text()
  t.equal(at(parseEvents(events).at(-1)?.data, 'candidates', 0, 'finishReason'), undefined)
  const array = await (await post('/v1beta/models/sim:streamGenerateContent', { contents }, list)).text()
  t.throws(() => JSON.parse(array), 'the end of the JSON array is omitted')
})

t.test('malformed_after sends one event with invalid JSON and correct framing', async t => {
  const { post } = await start(t)
  const text = await (
    await post(CHAT_PATH, { model: 'sim,tokens=6,malformed_after=2', ...CHAT, stream: true })
  ).text()
  const blocks = text.split('\n\n').filter(block => block !== '')
  const broken = blocks
    .map(block => block.slice('data: '.length))
    .filter(data => data !== '[DONE]')
    .map(data => {
      try {
        JSON.parse(data)
        return false
      } catch {
        return true
      }
    })
  t.same(broken.indexOf(true), 2)
  t.equal(broken.filter(one => one).length, 1)
  t.ok(text.endsWith('data: [DONE]\n\n'), 'the stream continues after the malformed event')
})

t.test('malformed_after makes the JSON of a body invalid at any number', async t => {
  const { post } = await start(t)
  for (let i = 0; i < 8; i++) {
    const res = await post(CHAT_PATH, { model: `sim,malformed_after=${i}`, ...CHAT })
    await t.rejects(res.json(), `after piece ${i}`)
  }
})

t.test('error_event_after ends a stream with the error event of the protocol', async t => {
  const { post } = await start(t)
  const list = { 'x-simulate': 'error_event_after=2' }
  const chat = parseEvents(await (await post(CHAT_PATH, { model: 'sim', ...CHAT, stream: true }, list)).text())
  t.equal(chat.length, 3)
  t.match(chat[2]?.data, { error: { message: String, type: 'server_error' } })
  const messages = parseEvents(
    await (await post('/v1/messages', { model: 'sim', ...CHAT, stream: true }, list)).text(),
  )
  t.match(messages[2], { name: 'error', data: { type: 'error', error: { type: 'overloaded_error' } } })
  const contents = [{ parts: [{ text: 'x' }] }]
  const path = '/v1beta/models/sim:streamGenerateContent'
  const events = parseEvents(await (await post(`${path}?alt=sse`, { contents }, list)).text())
  t.match(events[2]?.data, { error: { code: 503, status: 'UNAVAILABLE' } })
  t.match(await (await post(path, { contents }, list)).json(), [{}, {}, { error: { code: 503 } }])
})

t.test('first_event_error sends only an error event in a stream, and does not affect bodies', async t => {
  const { post } = await start(t)
  const events = parseEvents(
    await (await post('/v1/messages', { model: 'sim,first_event_error', ...CHAT, stream: true })).text(),
  )
  t.equal(events.length, 1)
  t.equal(events[0]?.name, 'error')
  const whole = await post('/v1/messages', { model: 'sim,first_event_error,pace=1ms', ...CHAT })
  t.match(await whole.json(), { type: 'message' })
})

t.test('stall_after stops sending and keeps the connection open', async t => {
  const { port, post, simulator } = await start(t)
  const socket = await rawUntil(port, streamRequest('stall_after=3'), text => parseEvents(text).length === 3)
  let more = ''
  socket.on('data', chunk => {
    more += chunk
  })
  await (await post(CHAT_PATH, { model: 'sim', ...CHAT })).text()
  t.equal(more, '')
  t.equal(simulator.stats.in_flight, 1)
  const aborted = once(simulator, 'aborted')
  socket.destroy()
  await aborted
})

t.test('headers_delay, first_delay and pace delay the headers, the first event and each further event', async t => {
  const { port, post } = await start(t)
  const ask = async (list: string) => {
    const began = performance.now()
    await (await post(CHAT_PATH, { model: `sim,tokens=2,${list}`, ...CHAT, stream: true })).text()
    return performance.now() - began
  }
  // Timers of node may fire a millisecond early; the test has no upper bounds, because timers may be late.
  t.ok((await ask('headers_delay=60ms')) >= 59)
  t.ok((await ask('first_delay=60ms')) >= 59)
  t.ok((await ask('pace=20ms')) >= 4 * 19, 'five events have four pauses between them')
  const head = await rawUntil(port, streamRequest('first_delay=60m'), text => text.endsWith('\r\n\r\n'))
  head.destroy()
  const event = await rawUntil(port, streamRequest('pace=60m'), text => parseEvents(text).length === 1)
  event.destroy()
})

t.test('faults apply to a model name in the path of the generate protocol', async t => {
  const { port } = await start(t)
  const body = { contents: [{ parts: [{ text: 'x' }] }] }
  const path = '/v1beta/models/sim,reset_after=2:streamGenerateContent?alt=sse'
  const { text, ended } = await rawExchange(port, rawPost(path, body))
  t.equal(ended, 'ECONNRESET')
  t.equal(parseEvents(dechunk(text).body).length, 2)
})
