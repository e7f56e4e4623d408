import t from 'tap'
import { CHAT, CHAT_PATH, at, parseEvents, rawExchange, rawUntil, start, streamRequest, wholeRequest } from './start.ts'

t.test('a body can be cut, closed, reset or stalled after some of its pieces', async t => {
  const { port, post } = await start(t)
  const whole = await (await post(CHAT_PATH, { model: 'sim', ...CHAT })).text()
  const cut = await (await post(CHAT_PATH, { model: 'sim,cut_after=4', ...CHAT })).text()
  t.ok(cut.length > whole.length / 3 && cut.length < whole.length, 'the cut body has more than a third of the complete body')
  t.throws(() => JSON.parse(cut))
  const closed = await rawExchange(port, wholeRequest('close_after=4'))
  t.match(closed.text, /content-length: \d+/i)
  t.equal(closed.ended, 'end')
  t.equal((await rawExchange(port, wholeRequest('reset_after=4'))).ended, 'ECONNRESET')
  const head = await rawUntil(port, wholeRequest('stall_after=0'), text => text.endsWith('\r\n\r\n'))
  head.destroy()
})

t.test('wrong_length sends a Content-Length above the length of the body', async t => {
  const { port } = await start(t)
  const whole = await rawExchange(port, wholeRequest('wrong_length'))
  const promised = Number(/content-length: (\d+)/i.exec(whole.text)?.[1])
  const body = whole.text.slice(whole.text.indexOf('\r\n\r\n') + 4)
  t.equal(promised, Buffer.byteLength(body) + 64)
  t.match(JSON.parse(body), { object: 'chat.completion' })
  const streamed = await rawExchange(port, streamRequest('wrong_length'))
  t.match(streamed.text, /content-length: 1000000000/i)
  t.ok(streamed.text.endsWith('data: [DONE]\n\n'))
})

t.test('a huge response has one word in a body and one event in a stream', async t => {
  const { post } = await start(t)
  const ask = { model: 'sim,huge=2mb', ...CHAT }
  const whole = await (await post(CHAT_PATH, ask)).json()
  t.equal(String(at(whole, 'choices', 0, 'message', 'content')).length, 2 * 1024 * 1024)
  t.match(whole, { usage: { completion_tokens: 524_288 } })
  const events = parseEvents(await (await post(CHAT_PATH, { ...ask, stream: true })).text())
  t.equal(
    events.filter(event => String(at(event.data, 'choices', 0, 'delta', 'content')).length > 1e6).length,
    1,
  )
})
