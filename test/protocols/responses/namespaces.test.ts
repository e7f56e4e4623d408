import t from 'tap'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { fullName } from '../../../src/protocols/responses/namespaces.ts'
import { bodyBetween, dataOf, requestBetween, sse, streamBetween } from '../../support/translation.ts'

const listAgents = { type: 'function', name: 'list_agents', parameters: { type: 'object', properties: {} }, strict: false }
const exec = { type: 'custom', name: 'exec', description: 'Runs a program.' }
const TOOLS = [
  { type: 'namespace', name: 'functions', description: '', tools: [exec] },
  { type: 'namespace', name: 'collaboration', description: 'Agents.', tools: [listAgents] },
]
const REQUEST = { input: [{ type: 'additional_tools', role: 'developer', tools: TOOLS }, { role: 'user', content: 'Look' }] }
const CALL = { id: 'call_1', type: 'function', function: { name: 'collaboration__list_agents', arguments: '{}' } }

t.test('added tools and tools in namespaces get unique names', async t => {
  const chat = requestBetween('responses', 'chat', REQUEST)
  t.match(chat.body['tools'], [
    { function: { name: 'exec', parameters: { properties: { input: { type: 'string' } } } } }, { function: { name: 'collaboration__list_agents' } },
  ])
  t.match(chat.body['messages'], [{ role: 'user', content: 'Look' }])
  t.strictSame(chat.dropped, ['input[].tools[].namespace.description'])
  t.match(requestBetween('responses', 'messages', { input: 'Look', tools: TOOLS }).body['tools'], [{ name: 'exec' }, { name: 'collaboration__list_agents' }])
})

t.test('of two tools with the same name the later tool is sent', async t => {
  const later = { type: 'additional_tools', role: 'developer', tools: [{ ...exec, description: 'Runs it.' }] }
  const { body } = requestBetween('responses', 'messages', { ...REQUEST, input: [...REQUEST.input, later] })
  t.match((body['tools'] as JsonObject[]).map(({ name, description }) => [name, description]), [['exec', 'Runs it.'], ['collaboration__list_agents', undefined]])
})

t.test('a call keeps its namespace in streams, in bodies and in the next turn', async t => {
  const stream = streamBetween('responses', 'chat', [sse(
    { choices: [{ index: 0, delta: { role: 'assistant', tool_calls: [{ index: 0, ...CALL }] } }] },
    { choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] }, '[DONE]',
  )], REQUEST)
  const named = { namespace: 'collaboration', name: 'list_agents' }
  const events = dataOf(stream)
  t.match(events.filter(event => event['type'] === 'response.output_item.added'), [{ item: { type: 'function_call', ...named } }])
  t.match(events.at(-1), { response: { output: [{ type: 'function_call', ...named, arguments: '{}' }] } })
  const { output } = bodyBetween('responses', 'chat', {
    id: 'c', choices: [{ index: 0, finish_reason: 'tool_calls', message: { role: 'assistant', content: null, tool_calls: [CALL] } }],
  }, REQUEST) as { readonly output: readonly JsonObject[] }
  t.match(output, [named])
  const { body } = requestBetween('responses', 'messages', {
    ...REQUEST, input: [...REQUEST.input, ...output, { type: 'function_call_output', call_id: 'call_1', output: 'none' }],
  })
  t.match((body['messages'] as JsonObject[])[1], { content: [{ type: 'tool_use', name: 'collaboration__list_agents' }] })
  t.match(requestBetween('responses', 'generate', {
    ...REQUEST, input: [...REQUEST.input, ...output, { type: 'function_call_output', call_id: 'call_1', output: 'none' }],
  }).body['contents'], [{}, { parts: [{ functionCall: { name: 'collaboration__list_agents' } }] }, { parts: [{ functionResponse: { name: 'collaboration__list_agents' } }] }])
})

t.test('a tool name that targets refuse is always rewritten to the same name', async t => {
  t.equal(fullName({ namespace: 'mcp__files__', name: 'read' }), 'mcp__files__read')
  for (const one of [{ namespace: 'a'.repeat(40), name: 'b'.repeat(40) }, { namespace: 'a.b', name: 'c d' }]) {
    t.match(fullName(one), /^[\w-]{1,64}$/)
    t.equal(fullName(one), fullName({ ...one }))
  }
  t.not(fullName({ namespace: 'a.b', name: 'c' }), fullName({ namespace: 'a/b', name: 'c' }))
})

t.test('tool_choice can name a tool of a namespace', async t => {
  const { body } = requestBetween('responses', 'messages', { ...REQUEST, tool_choice: { type: 'function', namespace: 'collaboration', name: 'list_agents' } })
  t.match(body['tool_choice'], { type: 'tool', name: 'collaboration__list_agents' })
})

t.test('a tool search that the client runs becomes a tool, and its results can be called', async t => {
  const search = { type: 'tool_search', execution: 'client', description: 'Finds tools.', parameters: { type: 'object', properties: { query: { type: 'string' } } } }
  const request = { input: [{ role: 'user', content: 'Look' }], tools: [search] }
  t.match(requestBetween('responses', 'chat', request).body['tools'], [{ function: { name: 'tool_search', parameters: search.parameters } }])

  const call = { id: 'call_1', type: 'function', function: { name: 'tool_search', arguments: '{"query":"agents"}' } }
  const events = dataOf(streamBetween('responses', 'chat', [sse(
    { choices: [{ index: 0, delta: { role: 'assistant', tool_calls: [{ index: 0, ...call }] } }] },
    { choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] }, '[DONE]',
  )], request))
  const item = { type: 'tool_search_call', execution: 'client', call_id: 'call_1', arguments: { query: 'agents' } }
  t.match(events.filter(event => event['type'] === 'response.output_item.done'), [{ item }])
  t.equal(events.filter(event => String(event['type']).startsWith('response.function_call')).length, 0)

  const found = { type: 'tool_search_output', call_id: 'call_1', execution: 'client', tools: [TOOLS[1]] }
  const { body } = requestBetween('responses', 'messages', { ...request, input: [...request.input, item, found] })
  t.match((body['tools'] as JsonObject[]).map(({ name }) => name), ['tool_search', 'collaboration__list_agents'])
  t.match((body['messages'] as JsonObject[]).slice(1), [
    { content: [{ type: 'tool_use', name: 'tool_search', input: { query: 'agents' } }] },
    { content: [{ type: 'tool_result', content: [{ text: 'Tools that can be called now: collaboration__list_agents' }] }] },
  ])
})

t.test('a tool search that the provider runs is dropped', async t => {
  const { body, dropped } = requestBetween('responses', 'chat', { input: 'Look', tools: [{ type: 'tool_search' }] })
  t.equal(body['tools'], undefined)
  t.strictSame(dropped, ['tools[].tool_search'])
})
