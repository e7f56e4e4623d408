import t from 'tap'
import { CHAT, CHAT_PATH, rawExchange, rawUntil, start, wholeRequest } from './start.ts'

t.test('reset and close each end the connection without a response', async t => {
  const { port, simulator } = await start(t)
  t.same(await rawExchange(port, wholeRequest('reset')), { text: '', ended: 'ECONNRESET' })
  t.same(await rawExchange(port, wholeRequest('close')), { text: '', ended: 'end' })
  t.match(simulator.stats, { requests: 2, completed: 2, aborted: 0, in_flight: 0 })
})

t.test('early sends the response before the body arrives', async t => {
  const { port } = await start(t)
  const head =
    `POST ${CHAT_PATH} HTTP/1.1\r\nhost: sim\r\ncontent-type: application/json\r\n` +
    'x-simulate: early, status=413\r\ncontent-length: 1000000\r\n\r\n{'
  const socket = await rawUntil(port, head, text => text.endsWith('}}'))
  socket.destroy()
})

t.test('first and every count the requests with the same list of behaviours', async t => {
  const { post } = await start(t)
  const ask = async (list: string) =>
    (await post(CHAT_PATH, { model: 'sim', ...CHAT }, { 'x-simulate': list })).status
  const list = 'status=503, first=2'
  t.same([await ask(list), await ask(list), await ask(list), await ask(list)], [503, 503, 200, 200])
  const other = 'status=500, every=2'
  t.same([await ask(other), await ask(other), await ask(other), await ask(other)], [200, 500, 200, 500])
})

t.test('behaviours of the header override behaviours of the model name', async t => {
  const { post } = await start(t)
  const ask = (model: string, list: string) =>
    post('/v1/chat/completions', { model, messages: [] }, { 'x-simulate': list })
  t.equal((await ask('sim', 'status=503')).status, 503)
  t.equal((await ask('sim,status=429', 'status=503')).status, 503)
  const both = await ask('sim,status=429', 'retry_after=3')
  t.equal(both.status, 429)
  t.equal(both.headers.get('retry-after'), '3')
})

t.test('a malformed list of behaviours is refused in header and model name', async t => {
  const { post } = await start(t)
  const inHeader = await post('/v1/messages', { model: 'sim' }, { 'x-simulate': 'stat=1' })
  t.equal(inHeader.status, 400)
  t.match(await inHeader.json(), { type: 'error', error: { message: /unknown behaviour "stat"/ } })
  t.equal((await post('/v1/messages', { model: 'sim,stat=1' })).status, 400)
})
