import t from 'tap'
import { asList } from '../../../src/protocols/neutral/json.ts'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { bodyBetween, dataOf, sse, streamBetween } from '../../support/translation.ts'

/*
 * Chunks contain pieces of a call: index, id, name and arguments, together or one after another.
 */

const chunk = (delta: JsonObject, finishReason: string | null = null): JsonObject => ({
  id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finishReason }],
})
const piece = (index: number, more: JsonObject): JsonObject => chunk({ tool_calls: [{ index, ...more }] })
const named = (name: string): JsonObject => ({ function: { name } })
const text = (argumentsText: string): JsonObject => ({ function: { arguments: argumentsText } })

const CASES: readonly (readonly [what: string, chunks: readonly JsonObject[]])[] = [
  ['the name comes behind the number and the id', [piece(0, { id: 'call_1', type: 'function' }), piece(0, named('look')), piece(0, text('{"at":"sky"}'))]],
  ['the name is empty at first', [piece(0, { id: 'call_1', function: { name: '', arguments: '' } }), piece(0, named('look')), piece(0, text('{"at":"sky"}'))]],
  ['the name comes after the arguments', [piece(0, { id: 'call_1', ...text('{"at":') }), piece(0, text('"sky"}')), piece(0, named('look'))]],
  ['the id comes after the name', [piece(0, named('look')), piece(0, { id: 'call_1' }), piece(0, text('{"at":"sky"}'))]],
  ['the id comes after the arguments', [piece(0, named('look')), piece(0, text('{"at":"sky"}')), piece(0, { id: 'call_1' })]],
  ['the id comes last and the name is repeated', [piece(0, { function: { name: 'look', arguments: '{"at":' } }), piece(0, { id: 'call_1', function: { name: 'look', arguments: '"sky"}' } })]],
  ['the index comes first', [piece(0, {}), piece(0, { id: 'call_1', ...named('look') }), piece(0, text('{"at":"sky"}'))]],
  ['a further call is announced and does not follow', [piece(0, { id: 'call_1', function: { name: 'look', arguments: '{"at":"sky"}' } }), piece(1, { function: { arguments: '' } })]],
]

/** The calls that a client gets: their ids, names and arguments. */
const CALLS: Readonly<Record<string, (events: readonly JsonObject[]) => unknown[]>> = {
  messages: events => events.filter(event => event['type'] === 'content_block_start').map(event => {
    const { id, name } = event['content_block'] as { id: string, name: string }
    const deltas = events.filter(other => other['type'] === 'content_block_delta' && other['index'] === event['index'])
    return [id, name, deltas.map(other => (other['delta'] as JsonObject)['partial_json']).join('')]
  }),
  responses: events => events.filter(event => event['type'] === 'response.output_item.done').map(event => {
    const item = event['item'] as JsonObject
    return [item['call_id'], item['name'], item['arguments']]
  }),
  generate: events => events.flatMap(event => asList(event['candidates'])).flatMap(candidate => asList(((candidate as JsonObject)['content'] as JsonObject)['parts'])).flatMap(part => {
    const call = (part as JsonObject)['functionCall'] as JsonObject | undefined
    return call === undefined ? [] : [[call['id'], call['name'], JSON.stringify(call['args'])]]
  }),
}

for (const [client, callsOf] of Object.entries(CALLS)) {
  for (const [what, chunks] of CASES) {
    t.test(`${client}: a streamed call is complete if ${what}`, async t => {
      const stream = streamBetween(client, 'chat', [sse(...chunks, chunk({}, 'tool_calls'), '[DONE]')])
      t.strictSame(callsOf(dataOf(stream)), [['call_1', 'look', '{"at":"sky"}']])
    })
  }
}

t.test('two calls keep their arguments if their names arrive after the arguments', async t => {
  const stream = streamBetween('responses', 'chat', [sse(
    chunk({ tool_calls: [{ index: 0, id: 'a' }, { index: 1, id: 'b' }] }), piece(1, { function: { name: 'two', arguments: '{"n":2}' } }),
    piece(0, { function: { name: 'one', arguments: '{"n":1}' } }), chunk({}, 'tool_calls'), '[DONE]',
  )])
  t.strictSame(CALLS['responses']?.(dataOf(stream)).toSorted(), [['a', 'one', '{"n":1}'], ['b', 'two', '{"n":2}']])
})

t.test('a call without an id gets a new id', async t => {
  const events = dataOf(streamBetween('messages', 'chat', [sse(piece(0, named('look')), piece(0, text('{}')), chunk({}, 'tool_calls'), '[DONE]')]))
  t.match(CALLS['messages']?.(events), [[/^toolu_/, 'look', '{}']])
})

for (const client of ['messages', 'responses', 'generate']) {
  t.test(`${client}: a call without a name is an error`, async t => {
    t.match(streamBetween(client, 'chat', [sse(piece(0, { id: 'call_1', ...text('{"at":"sky"}') }), chunk({}, 'tool_calls'), '[DONE]')]), /tool call without a name/)
    t.throws(() => bodyBetween(client, 'chat', {
      choices: [{ message: { tool_calls: [{ id: 'call_1', ...text('{"at":"sky"}') }] }, finish_reason: 'tool_calls' }],
    }), { code: 'upstream_invalid', message: /tool call without a name/ })
  })
}

t.test('the name or id of a call from a responses upstream can come only in the last item', async t => {
  const whole = { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'look', arguments: '{"at":"sky"}' }
  for (const missing of [{ name: '' }, { call_id: null }]) {
    const events = dataOf(streamBetween('messages', 'responses', [sse(
      { type: 'response.created', response: { id: 'resp_1', model: 'm' } },
      { type: 'response.output_item.added', output_index: 0, item: { ...whole, ...missing, arguments: '' } },
      { type: 'response.function_call_arguments.delta', output_index: 0, delta: '{"at":"sky"}' },
      { type: 'response.output_item.done', output_index: 0, item: whole },
      { type: 'response.completed', response: { id: 'resp_1', output: [whole] } },
    )]))
    t.strictSame(CALLS['messages']?.(events), [['call_1', 'look', '{"at":"sky"}']])
  }
})

t.test('a custom call of a responses upstream becomes a call for a chat client', async t => {
  const whole = { type: 'custom_tool_call', id: 'ctc_1', call_id: 'call_1', name: 'patch', input: '*** Begin\n+x' }
  const stream = (...deltas: readonly string[]) => dataOf(streamBetween('chat', 'responses', [sse(
    { type: 'response.created', response: { id: 'resp_1', model: 'm' } },
    { type: 'response.output_item.added', output_index: 0, item: { ...whole, input: '' } },
    ...deltas.map(delta => ({ type: 'response.custom_tool_call_input.delta', output_index: 0, delta })),
    { type: 'response.output_item.done', output_index: 0, item: whole },
    { type: 'response.completed', response: { id: 'resp_1', output: [whole] } },
  )])).flatMap(({ choices }) => asList(choices)).flatMap(choice => asList(((choice as JsonObject)['delta'] as JsonObject)['tool_calls']))
  const begin = { index: 0, id: 'call_1', type: 'custom', custom: { name: 'patch', input: '' } }
  t.strictSame(stream('*** Begin', '\n+x'), [begin, { index: 0, custom: { input: '*** Begin' } }, { index: 0, custom: { input: '\n+x' } }])
  t.strictSame(stream(), [begin, { index: 0, custom: { input: '*** Begin\n+x' } }])
})

t.test('a custom call of a chat upstream stays a custom call for a responses client', async t => {
  t.match(bodyBetween('responses', 'chat', {
    choices: [{ message: { tool_calls: [{ id: 'call_1', type: 'custom', custom: { name: 'patch', input: 'x' } }] }, finish_reason: 'tool_calls' }],
  }), { output: [{ type: 'custom_tool_call', call_id: 'call_1', name: 'patch', input: 'x' }] })
})
