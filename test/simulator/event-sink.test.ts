import t from 'tap'
import { CHAT, CHAT_PATH, at, gather, parseEvents, rawExchange, start, streamRequest } from './start.ts'

t.test('split cuts events after each given number of bytes and loses no byte', async t => {
  const { port, post } = await start(t)
  const res = await post(CHAT_PATH, { model: 'é,tokens=6,split=1', ...CHAT, stream: true })
  const events = parseEvents(await res.text())
  t.equal(gather(events, 'choices', 0, 'delta', 'content'), 'w1 w2 w3 w4 w5 w6')
  t.equal(at(events[0]?.data, 'model'), 'é,tokens=6,split=1')
  const chunks = await rawExchange(port, streamRequest('split=7,close_after=2'))
  t.match(chunks.text, /\r\n7\r\ndata: \{\r\n7\r\n/, 'each piece is a chunk')
})

t.test('crlf and comments change the framing of events and not their data', async t => {
  const { post } = await start(t)
  const ask = async (list: string) =>
    (await post(CHAT_PATH, { model: `sim,tokens=2,${list}`, ...CHAT, stream: true })).text()
  const crlf = await ask('crlf')
  t.ok(crlf.endsWith('data: [DONE]\r\n\r\n'))
  t.notMatch(crlf, /[^\r]\n/)
  const comments = await ask('comments')
  t.equal(comments.split(': ping\n\n').length - 1, 5, 'a separate comment block precedes each event')
  t.equal(gather(parseEvents(comments), 'choices', 0, 'delta', 'content'), 'w1 w2')
})

t.test('gzip compresses bodies and streams, and is flushed after each event', async t => {
  const { post } = await start(t)
  const whole = await post(CHAT_PATH, { model: 'sim,gzip', ...CHAT })
  t.equal(whole.headers.get('content-encoding'), 'gzip')
  t.match(await whole.json(), { object: 'chat.completion' })
  const streamed = await post(CHAT_PATH, { model: 'sim,gzip,split=3,tokens=2', ...CHAT, stream: true })
  t.ok((await streamed.text()).endsWith('data: [DONE]\n\n'))
  // During the stall only flushed events have arrived.
  const stalled = await post(CHAT_PATH, { model: 'sim,gzip,stall_after=2', ...CHAT, stream: true })
  let seen = ''
  for await (const chunk of stalled.body!) {
    seen += Buffer.from(chunk).toString()
    if (parseEvents(seen).length === 2) break
  }
  t.match(seen, '"content":"w1"')
})

t.test('a slow reader gets all of a long stream', async t => {
  const { post } = await start(t)
  const res = await post(CHAT_PATH, { model: 'sim,tokens=50000', ...CHAT, stream: true })
  const reader = res.body!.getReader()
  await reader.read()
  // The simulator keeps the rest until the client reads.
  await new Promise(resolve => setImmediate(resolve))
  let tail = ''
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    tail = (tail + Buffer.from(read.value).toString()).slice(-2000)
  }
  t.ok(tail.endsWith('data: [DONE]\n\n'))
  t.match(tail, '" w50000"')
})
