import t from 'tap'
import { at, gather, parseEvents, start } from '../start.ts'

const ASKED = { model: 'sim,tokens=2', instructions: '1234', input: '12345678' }
const PATH = '/v1/responses'

t.test('a response has the shape of the vendor', async t => {
  const { post } = await start(t)
  t.match(await (await post(PATH, ASKED)).json(), {
    id: /^resp_/,
    object: 'response',
    status: 'completed',
    error: null,
    incomplete_details: null,
    instructions: '1234',
    model: 'sim,tokens=2',
    output: [
      {
        id: /^msg_/,
        type: 'message',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: 'w1 w2', annotations: [] }],
      },
    ],
    parallel_tool_calls: true,
    tool_choice: 'auto',
    tools: [],
    usage: {
      input_tokens: 3,
      input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
      output_tokens: 2,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 5,
    },
  })
})

t.test('a stream has all events of the protocol, numbered from 0', async t => {
  const { post } = await start(t)
  const text = await (await post(PATH, { ...ASKED, model: 'sim,tokens=2,reasoning=1', stream: true })).text()
  t.notMatch(text, '[DONE]')
  const events = parseEvents(text)
  t.same(
    events.map(event => event.name),
    [
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.reasoning_summary_part.added',
      'response.reasoning_summary_text.delta',
      'response.reasoning_summary_text.done',
      'response.reasoning_summary_part.done',
      'response.output_item.done',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.delta',
      'response.output_text.delta',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.completed',
    ],
  )
  for (const [i, event] of events.entries()) {
    t.equal(at(event.data, 'sequence_number'), i)
    t.equal(at(event.data, 'type'), event.name)
  }
  const deltas = events.filter(event => event.name === 'response.output_text.delta')
  t.equal(gather(deltas, 'delta'), 'w1 w2')
  t.match(events.at(-1)?.data, {
    response: {
      status: 'completed',
      output: [
        { type: 'reasoning', summary: [{ text: 'r1' }] },
        { type: 'message', content: [{ text: 'w1 w2' }] },
      ],
      usage: { output_tokens: 3, output_tokens_details: { reasoning_tokens: 1 } },
    },
  })
})

t.test('a response that reaches max_output_tokens is incomplete, as body and as stream', async t => {
  const { post } = await start(t)
  const asked = { ...ASKED, model: 'sim', max_output_tokens: 2 }
  const incomplete = { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } }
  t.match(await (await post(PATH, asked)).json(), incomplete)
  const events = parseEvents(await (await post(PATH, { ...asked, stream: true })).text())
  t.match(events.at(-1), { name: 'response.incomplete', data: { response: incomplete } })
})

t.test('a request with an effort gets reasoning, with encrypted content if requested', async t => {
  const { post } = await start(t)
  const asked = { ...ASKED, reasoning: { effort: 'low' }, include: ['reasoning.encrypted_content'] }
  t.match(await (await post(PATH, asked)).json(), {
    output: [{ id: /^rs_/, type: 'reasoning', encrypted_content: /^\S+$/ }, { type: 'message' }],
    usage: { output_tokens: 10 },
  })
})

t.test('a required function is called', async t => {
  const { post } = await start(t)
  const tools = [{ type: 'function', name: 'look', parameters: { properties: { at: { type: 'string' } } } }]
  const asked = { ...ASKED, tools, tool_choice: 'required' }
  t.match(await (await post(PATH, asked)).json(), {
    status: 'completed',
    output: [
      {
        type: 'function_call',
        call_id: /^call_/,
        name: 'look',
        arguments: '{"at":"w1"}',
        status: 'completed',
      },
    ],
  })
  const events = parseEvents(await (await post(PATH, { ...asked, stream: true })).text())
  const deltas = events.filter(event => event.name === 'response.function_call_arguments.delta')
  t.equal(gather(deltas, 'delta'), '{"at":"w1"}')
  t.match(events.at(-1), { name: 'response.completed' })
})

t.test('an error event has the next sequence number', async t => {
  const { post } = await start(t)
  const body = { ...ASKED, model: 'sim,error_event_after=3', stream: true }
  const events = parseEvents(await (await post(PATH, body)).text())
  t.equal(events.length, 4)
  t.match(events.at(-1), {
    name: 'error',
    data: { type: 'error', sequence_number: 3, code: 'server_error', message: String },
  })
})

t.test('/v1/responses/input_tokens returns only the number of input tokens', async t => {
  const { post } = await start(t)
  t.same(await (await post(`${PATH}/input_tokens`, ASKED)).json(), {
    object: 'response.input_tokens',
    input_tokens: 3,
  })
})
