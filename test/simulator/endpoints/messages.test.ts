import t from 'tap'
import { at, gather, parseEvents, start } from '../start.ts'

const ASKED = { model: 'sim,tokens=3', max_tokens: 100, messages: [{ role: 'user', content: '12345678' }] }
const PATH = '/v1/messages'

t.test('a response has the shape of the vendor', async t => {
  const { post } = await start(t)
  const res = await post(PATH, ASKED)
  t.match(res.headers.get('request-id'), /^req_/)
  t.match(await res.json(), {
    id: /^msg_/,
    type: 'message',
    role: 'assistant',
    model: 'sim,tokens=3',
    content: [{ type: 'text', text: 'w1 w2 w3', citations: null }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: {
      input_tokens: 2,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
      cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
      output_tokens: 3,
      service_tier: 'standard',
    },
  })
})

t.test('a query after the path is ignored', async t => {
  const { post } = await start(t)
  t.equal((await post(`${PATH}?beta=true`, ASKED)).status, 200)
})

t.test('input_tokens excludes cache reads and writes', async t => {
  const { post } = await start(t)
  const model = 'sim,input=100,cached=60,cache_write=20,cache_write_1h=5'
  t.match(at(await (await post(PATH, { ...ASKED, model })).json(), 'usage'), {
    input_tokens: 15,
    cache_read_input_tokens: 60,
    cache_creation_input_tokens: 25,
    cache_creation: { ephemeral_5m_input_tokens: 20, ephemeral_1h_input_tokens: 5 },
  })
  const unsplit = await (await post(PATH, { ...ASKED, model: 'sim,usage=null' })).json()
  t.match(at(unsplit, 'usage'), { input_tokens: null, cache_creation: null })
})

t.test('a stream has all events of the protocol in order, each with its name', async t => {
  const { post } = await start(t)
  const text = await (await post(PATH, { ...ASKED, stream: true })).text()
  const events = parseEvents(text)
  t.same(
    events.map(event => event.name),
    [
      'message_start',
      'content_block_start',
      'ping',
      'content_block_delta',
      'content_block_delta',
      'content_block_delta',
      'content_block_stop',
      'message_delta',
      'message_stop',
    ],
  )
  for (const event of events) t.equal(at(event.data, 'type'), event.name)
  t.match(events[0]?.data, {
    message: { content: { length: 0 }, stop_reason: null, usage: { input_tokens: 2, output_tokens: 1 } },
  })
  t.equal(gather(events, 'delta', 'text'), 'w1 w2 w3')
  t.match(events.at(-2)?.data, {
    delta: { stop_reason: 'end_turn' },
    usage: { input_tokens: 2, output_tokens: 3 },
  })
})

t.test('thinking is returned as a block with a signature before the text', async t => {
  const { post } = await start(t)
  const thinking = { type: 'enabled', budget_tokens: 1024 }
  t.match(await (await post(PATH, { ...ASKED, thinking })).json(), {
    content: [
      { type: 'thinking', thinking: 'r1 r2 r3 r4 r5 r6 r7 r8', signature: /^\S+$/ },
      { type: 'text', text: 'w1 w2 w3' },
    ],
    usage: { output_tokens: 11, output_tokens_details: { thinking_tokens: 8 } },
  })
  const model = 'sim,reasoning=2,tokens=1'
  const events = parseEvents(await (await post(PATH, { ...ASKED, model, stream: true })).text())
  t.same(
    events.map(event => at(event.data, 'delta', 'type')).filter(type => type !== undefined),
    ['thinking_delta', 'thinking_delta', 'signature_delta', 'text_delta'],
  )
  t.same(
    events.filter(event => event.name === 'content_block_start').map(event => at(event.data, 'index')),
    [0, 1],
  )
  const hidden = { ...ASKED, thinking: { type: 'adaptive', display: 'omitted' } }
  t.match(await (await post(PATH, hidden)).json(), { content: [{ thinking: '', signature: /^\S+$/ }, {}] })
})

t.test('tool_choice causes a call of the named tool, whose input is streamed in pieces', async t => {
  const { post } = await start(t)
  const tools = [
    { name: 'first', input_schema: { type: 'object' } },
    { name: 'second', input_schema: { type: 'object', properties: { mode: { enum: ['fast', 'slow'] } } } },
  ]
  const asked = { ...ASKED, tools, tool_choice: { type: 'tool', name: 'second' } }
  t.match(await (await post(PATH, asked)).json(), {
    content: [{ type: 'tool_use', id: /^toolu_/, name: 'second', input: { mode: 'fast' } }],
    stop_reason: 'tool_use',
  })
  const events = parseEvents(await (await post(PATH, { ...asked, stream: true })).text())
  t.match(events[1]?.data, { content_block: { type: 'tool_use', name: 'second', input: {} } })
  t.same(JSON.parse(gather(events, 'delta', 'partial_json')), { mode: 'fast' })
})

t.test('a prefilled message is continued within max_tokens', async t => {
  const { post } = await start(t)
  const messages = [...ASKED.messages, { role: 'assistant', content: [{ type: 'text', text: 'w1' }] }]
  const cut = await (await post(PATH, { ...ASKED, max_tokens: 1, messages })).json()
  t.match(cut, { content: [{ text: ' w2' }], stop_reason: 'max_tokens' })
})

t.test('count_tokens returns only the number of input tokens', async t => {
  const { post } = await start(t)
  const res = await post(`${PATH}/count_tokens`, { ...ASKED, system: [{ type: 'text', text: '1234' }] })
  t.same(await res.json(), { input_tokens: 3 })
})

t.test('errors have the shape of the protocol', async t => {
  const { post } = await start(t)
  const types = {
    400: 'invalid_request_error',
    401: 'authentication_error',
    413: 'request_too_large',
    429: 'rate_limit_error',
    500: 'api_error',
    504: 'timeout_error',
    529: 'overloaded_error',
  }
  for (const [status, type] of Object.entries(types)) {
    const res = await post(PATH, { ...ASKED, model: `sim,status=${status}` })
    t.equal(res.status, Number(status))
    t.match(await res.json(), {
      type: 'error',
      error: { type, message: `Simulated error ${status}.` },
      request_id: /^req_/,
    })
  }
})

t.test('an error in a body or stream contains the request id of the response header', async t => {
  const { post } = await start(t)
  const refused = await post(PATH, { ...ASKED, model: 'sim,status=500' })
  t.equal(at(await refused.json(), 'request_id'), refused.headers.get('request-id'))
  const failed = await post(PATH, { ...ASKED, model: 'sim,error_event_after=1', stream: true })
  const last = parseEvents(await failed.text()).at(-1)
  t.equal(at(last?.data, 'request_id'), failed.headers.get('request-id'))
})
