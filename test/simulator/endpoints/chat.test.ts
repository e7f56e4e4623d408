import t from 'tap'
import { at, gather, parseEvents, start } from '../start.ts'

const MESSAGES = [{ role: 'user', content: '12345678' }]
const PATH = '/v1/chat/completions'

t.test('a response has the shape and usage of the vendor', async t => {
  const { post } = await start(t, { now: () => 1_700_000_000_999 })
  const res = await post(PATH, { model: 'sim,tokens=3,cached=1', messages: MESSAGES })
  t.equal(res.status, 200)
  t.equal(res.headers.get('content-type'), 'application/json')
  t.match(res.headers.get('x-request-id'), /^req_/)
  t.match(await res.json(), {
    id: /^chatcmpl-\w{24}$/,
    object: 'chat.completion',
    created: 1_700_000_000,
    model: 'sim,tokens=3,cached=1',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: 'w1 w2 w3', refusal: null },
        logprobs: null,
        finish_reason: 'stop',
      },
    ],
    usage: {
      prompt_tokens: 2,
      completion_tokens: 3,
      total_tokens: 5,
      prompt_tokens_details: { cached_tokens: 1 },
      completion_tokens_details: { reasoning_tokens: 0 },
    },
  })
})

t.test(
  'a stream starts with the role, ends with the finish reason and [DONE], and has no usage by default',
  async t => {
    const { post } = await start(t)
    const res = await post(PATH, { model: 'sim,tokens=2', messages: MESSAGES, stream: true })
    t.match(res.headers.get('content-type'), /^text\/event-stream/)
    const text = await res.text()
    t.ok(text.endsWith('data: [DONE]\n\n'))
    const events = parseEvents(text)
    t.same(
      events.map(event => at(event.data, 'choices', 0, 'delta')),
      [
        { role: 'assistant', content: '', refusal: null },
        { content: 'w1' },
        { content: ' w2' },
        {},
        undefined,
      ],
    )
    t.same(
      events.map(event => at(event.data, 'choices', 0, 'finish_reason')),
      [null, null, null, 'stop', undefined],
    )
    t.notMatch(text, 'usage')
    t.equal(new Set(events.slice(0, -1).map(event => at(event.data, 'id'))).size, 1, 'all chunks have the same id')
  },
)

t.test('include_usage adds a last chunk with usage and without choices, and null as usage in the other chunks', async t => {
  const { post } = await start(t)
  const body = {
    model: 'sim,tokens=2',
    messages: MESSAGES,
    stream: true,
    stream_options: { include_usage: true },
  }
  const events = parseEvents(await (await post(PATH, body)).text()).slice(0, -1)
  t.match(events.at(-1)?.data, {
    choices: { length: 0 },
    usage: { prompt_tokens: 2, completion_tokens: 2, total_tokens: 4 },
  })
  for (const event of events.slice(0, -1)) t.equal(at(event.data, 'usage'), null)
})

t.test('reasoning precedes the text in a separate field, and counts as output', async t => {
  const { post } = await start(t)
  const asked = { model: 'sim,reasoning=3,tokens=2', messages: MESSAGES }
  t.match(await (await post(PATH, asked)).json(), {
    choices: [{ message: { content: 'w1 w2', reasoning_content: 'r1 r2 r3' } }],
    usage: { completion_tokens: 5, completion_tokens_details: { reasoning_tokens: 3 } },
  })
  const events = parseEvents(await (await post(PATH, { ...asked, stream: true })).text())
  t.equal(gather(events, 'choices', 0, 'delta', 'reasoning_content'), 'r1 r2 r3')
  t.equal(gather(events, 'choices', 0, 'delta', 'content'), 'w1 w2')
  t.equal(at(events[1]?.data, 'choices', 0, 'delta', 'content'), null)
})

t.test('the message is empty if reasoning uses all of max_completion_tokens', async t => {
  const { post } = await start(t)
  const body = { model: 'sim', reasoning_effort: 'high', max_completion_tokens: 5, messages: MESSAGES }
  t.match(await (await post(PATH, body)).json(), {
    choices: [{ message: { content: '', reasoning_content: 'r1 r2 r3 r4 r5' }, finish_reason: 'length' }],
    usage: { completion_tokens: 5, completion_tokens_details: { reasoning_tokens: 5 } },
  })
})

t.test('all n choices are streamed and counted', async t => {
  const { post } = await start(t)
  const asked = { model: 'sim,tokens=2', n: 3, messages: MESSAGES }
  const whole = await (await post(PATH, asked)).json()
  t.match(whole, { choices: [{ index: 0 }, { index: 1 }, { index: 2 }], usage: { completion_tokens: 6 } })
  const events = parseEvents(await (await post(PATH, { ...asked, stream: true })).text())
  for (const index of [0, 1, 2]) {
    const own = events.filter(event => at(event.data, 'choices', 0, 'index') === index)
    t.equal(gather(own, 'choices', 0, 'delta', 'content'), 'w1 w2')
    t.equal(at(own.at(-1)?.data, 'choices', 0, 'finish_reason'), 'stop')
  }
})

const TOOLS = [
  {
    type: 'function',
    function: {
      name: 'weather',
      parameters: {
        type: 'object',
        properties: { city: { type: 'string' }, days: { type: 'integer' }, note: { type: 'string' } },
        required: ['city', 'days'],
      },
    },
  },
]

t.test('a required tool is called with arguments that match its schema', async t => {
  const { post } = await start(t)
  const asked = { model: 'sim', messages: MESSAGES, tools: TOOLS, tool_choice: 'required' }
  const whole = await (await post(PATH, asked)).json()
  t.match(whole, {
    choices: [
      {
        message: {
          content: null,
          tool_calls: [{ id: /^call_/, type: 'function', function: { name: 'weather' } }],
        },
        finish_reason: 'tool_calls',
      },
    ],
  })
  const text = at(whole, 'choices', 0, 'message', 'tool_calls', 0, 'function', 'arguments')
  t.same(JSON.parse(String(text)), { city: 'w1', days: 1 })
  const events = parseEvents(await (await post(PATH, { ...asked, stream: true })).text())
  const pieces = gather(events, 'choices', 0, 'delta', 'tool_calls', 0, 'function', 'arguments')
  t.equal(pieces, text)
})

t.test('tool_call in the model name causes a tool call, except after a tool result', async t => {
  const { post } = await start(t)
  const asked = { model: 'sim,tool_call', messages: MESSAGES, tools: TOOLS }
  t.match(await (await post(PATH, asked)).json(), { choices: [{ finish_reason: 'tool_calls' }] })
  const after = { ...asked, messages: [...MESSAGES, { role: 'tool', tool_call_id: 'x', content: '1' }] }
  t.match(await (await post(PATH, after)).json(), { choices: [{ finish_reason: 'stop' }] })
  const without = await (await post(PATH, { model: 'sim,tool_call', messages: MESSAGES })).json()
  t.match(without, {
    choices: [{ message: { tool_calls: [{ function: { name: 'simulated_tool', arguments: '{}' } }] } }],
  })
})

t.test('an assistant message at the end is continued, or refused with reject_prefill', async t => {
  const { post } = await start(t)
  const prefilled = [...MESSAGES, { role: 'assistant', content: 'w1 w2' }]
  const res = await post(PATH, { model: 'sim,tokens=4', messages: prefilled })
  t.match(await res.json(), {
    choices: [{ message: { content: ' w3 w4' } }],
    usage: { completion_tokens: 2 },
  })
  const refused = await post(PATH, { model: 'sim,reject_prefill', messages: prefilled })
  t.equal(refused.status, 400)
  t.match(await refused.json(), { error: { type: 'invalid_request_error', message: /prefill/ } })
  t.equal((await post(PATH, { model: 'sim,reject_prefill', messages: MESSAGES })).status, 200)
})

t.test('behaviours can set the usage, omit it or make it invalid', async t => {
  const { post } = await start(t)
  const usage = async (list: string) =>
    at(await (await post(PATH, { model: `sim,tokens=2,${list}`, messages: MESSAGES })).json(), 'usage')
  t.match(await usage('input=10,output=20'), { prompt_tokens: 10, completion_tokens: 20, total_tokens: 30 })
  t.match(await usage('cached=100'), { prompt_tokens: 100, prompt_tokens_details: { cached_tokens: 100 } })
  t.match(await usage('cache_write=3,cache_write_1h=4'), { prompt_tokens_details: { cache_write_tokens: 7 } })
  t.equal(await usage('usage=none'), undefined)
  t.match(await usage('usage=null'), { prompt_tokens: null })
  t.match(await usage('usage=negative'), { prompt_tokens: -3, completion_tokens: -3 })
  t.match(await usage('usage=fraction'), { prompt_tokens: 2.5 })
  t.match(await usage('usage=huge'), { prompt_tokens: 1e21 })
  t.match(await usage('usage=string'), { prompt_tokens: '2' })
})

t.test('a body that is not a JSON object is refused', async t => {
  const { post } = await start(t)
  for (const body of ['{"model":', '', '[]', '3']) {
    const res = await post(PATH, body)
    t.equal(res.status, 400, JSON.stringify(body))
    t.match(await res.json(), { error: { type: 'invalid_request_error', param: null } })
  }
})

t.test('each chunk has the model name, even if JSON needs escapes for the name', async t => {
  const { post } = await start(t)
  const model = 'a"b\\c\u0000d😀'
  const text = await (await post(PATH, { model, messages: MESSAGES, stream: true })).text()
  for (const event of parseEvents(text).slice(0, -1)) t.equal(at(event.data, 'model'), model)
})
