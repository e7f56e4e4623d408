import fc from 'fast-check'
import t from 'tap'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { opened } from '../../support/capsules.ts'
import { PROVIDER, bodyBetween, dataOf, sse, streamBetween } from '../../support/translation.ts'

type Delta = JsonObject

function chunk(delta: Delta, finishReason: string | null = null, more: JsonObject = {}): JsonObject {
  return {
    id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm',
    choices: [{ index: 0, delta, finish_reason: finishReason, ...more }],
  }
}

const usage = (counts: JsonObject): JsonObject => ({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [], usage: counts })

function messagesOf(...events: readonly (JsonObject | string)[]): JsonObject[] {
  return dataOf(streamBetween('messages', 'chat', [sse(...events)]))
}

const call = (index: number, id: string, name: string, text = ''): JsonObject => ({ index, id, type: 'function', function: { name, arguments: text } })
const more = (index: number, text: string): JsonObject => ({ index, function: { arguments: text } })

t.test('a stream of text becomes a message', async t => {
  t.strictSame(messagesOf(
    chunk({ role: 'assistant', content: '' }), chunk({ content: 'Hel' }), chunk({ content: 'lo' }), chunk({}, 'stop'),
    usage({ prompt_tokens: 10, completion_tokens: 2, prompt_tokens_details: { cached_tokens: 4 } }), '[DONE]',
  ), [
    {
      type: 'message_start', message: {
        id: 'chatcmpl-1', type: 'message', role: 'assistant', model: 'm', content: [], stop_reason: null, stop_sequence: null,
        usage: { input_tokens: 0, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 0 },
      },
    },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '', citations: null } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hel' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'lo' } },
    { type: 'content_block_stop', index: 0 },
    {
      type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null, stop_details: null, container: null },
      usage: { input_tokens: 6, cache_creation_input_tokens: 0, cache_read_input_tokens: 4, output_tokens: 2 },
    },
    { type: 'message_stop' },
  ])
})

t.test('parallel calls that share an index become separate blocks', async t => {
  const events = messagesOf(
    chunk({ role: 'assistant', tool_calls: [call(0, 'call_1', 'a', '{"x":1}')] }),
    chunk({ tool_calls: [call(0, 'call_2', 'b', '{"y":')] }), chunk({ tool_calls: [more(0, '2}')] }),
    chunk({}, 'tool_calls'), '[DONE]',
  )
  t.strictSame(events.flatMap(event => event['content_block'] ?? []), [
    { type: 'tool_use', id: 'call_1', name: 'a', input: {} }, { type: 'tool_use', id: 'call_2', name: 'b', input: {} },
  ])
  t.strictSame(events.filter(event => event['delta']).slice(0, 3).map(({ index, delta }) => [index, (delta as JsonObject)['partial_json']]), [
    [0, '{"x":1}'], [1, '{"y":'], [1, '2}'],
  ])
})

t.test('parallel calls with interleaved arguments become successive blocks', async t => {
  const events = messagesOf(
    chunk({ role: 'assistant', tool_calls: [call(0, 'call_1', 'a')] }), chunk({ tool_calls: [call(1, 'call_2', 'b')] }),
    chunk({ tool_calls: [more(1, '{"y"')] }), chunk({ tool_calls: [more(0, '{"x"')] }),
    chunk({ tool_calls: [more(0, ':1}')] }), chunk({ tool_calls: [more(1, ':2}')] }), chunk({}, 'tool_calls'), '[DONE]',
  )
  t.strictSame(events.slice(1, -2).map(({ type, index, delta }) => [type, index, (delta as JsonObject | undefined)?.['partial_json']]), [
    ['content_block_start', 0, undefined],
    ['content_block_delta', 0, '{"x"'], ['content_block_delta', 0, ':1}'], ['content_block_stop', 0, undefined],
    ['content_block_start', 1, undefined],
    ['content_block_delta', 1, '{"y"'], ['content_block_delta', 1, ':2}'], ['content_block_stop', 1, undefined],
  ])
})

t.test('finish_reason stop after a call becomes tool_use', async t => {
  const events = messagesOf(chunk({ tool_calls: [call(0, 'call_1', 'a', '{}')] }), chunk({}, 'stop'), '[DONE]')
  t.match(events.at(-2), { delta: { stop_reason: 'tool_use' } })
})

t.test('empty arguments become an empty object', async t => {
  t.match(bodyBetween('messages', 'chat', {
    id: 'c', model: 'm', choices: [{ index: 0, message: { role: 'assistant', content: null, tool_calls: [call(0, 'call_1', 'a')] }, finish_reason: 'tool_calls' }],
  }), { content: [{ type: 'tool_use', id: 'call_1', input: {} }], stop_reason: 'tool_use' })
})

t.test('a call id that the client does not accept is sealed in a capsule', async t => {
  const events = messagesOf(chunk({ tool_calls: [call(0, 'functions.a:0', 'a', '{}')] }), chunk({}, 'tool_calls'), '[DONE]')
  const { id } = (events[1] as JsonObject)['content_block'] as { id: string }
  t.match(id, /^[a-zA-Z0-9_-]+$/)
  t.equal(opened('tool_id', id)?.id, 'functions.a:0')
})

t.test('reasoning_content or reasoning becomes thinking with a signature for the same provider', async t => {
  for (const field of ['reasoning_content', 'reasoning']) {
    const events = messagesOf(chunk({ [field]: 'Hm' }), chunk({ [field]: '.' }), chunk({ content: 'Hi' }), chunk({}, 'stop'), '[DONE]')
    t.strictSame(events.slice(1, 4).map(event => event['content_block'] ?? event['delta']), [
      { type: 'thinking', thinking: '', signature: '' }, { type: 'thinking_delta', thinking: 'Hm' }, { type: 'thinking_delta', thinking: '.' },
    ])
    const { signature } = (events[4] as JsonObject)['delta'] as { signature: string }
    t.strictSame(opened('opaque_value', signature)?.opaque, { provider: PROVIDER, value: field })
  }
})

t.test('length, content_filter and a stop sequence become stop reasons of messages', async t => {
  const stopOf = (reason: string, more: JsonObject = {}): unknown => messagesOf(chunk({ content: 'x' }), chunk({}, reason, more), '[DONE]').at(-2)
  t.match(stopOf('length'), { delta: { stop_reason: 'max_tokens' } })
  t.match(stopOf('content_filter'), { delta: { stop_reason: 'refusal', stop_details: { type: 'refusal' } } })
  t.match(stopOf('stop', { stop_reason: 'END' }), { delta: { stop_reason: 'stop_sequence', stop_sequence: 'END' } })
})

t.test('cached tokens above prompt_tokens are not subtracted', async t => {
  const counts = { prompt_tokens: 3, completion_tokens: 1, prompt_tokens_details: { cached_tokens: 5 } }
  t.match(messagesOf(chunk({ content: 'x' }), chunk({}, 'stop'), usage(counts), '[DONE]').at(-2), {
    usage: { input_tokens: 3, cache_read_input_tokens: 0 },
  })
})

t.test('an error in mid-stream becomes an error event of the client\'s protocol, and ends the stream', async t => {
  const events = messagesOf(chunk({ content: 'x' }), { error: { message: 'busy', type: 'server_error', code: 503 } }, chunk({ content: 'y' }))
  t.strictSame(events.at(-1), { type: 'error', error: { type: 'overloaded_error', message: 'busy' }, request_id: null })
})

t.test('a stream that is cut has no message_stop', async t => {
  t.notMatch(streamBetween('messages', 'chat', [sse(chunk({ content: 'x' }), chunk({}, 'stop'))]), 'message_stop')
})

t.test('property: the events do not depend on the chunk boundaries', async t => {
  const stream = sse(
    chunk({ role: 'assistant', reasoning_content: 'Grüße, 世界' }), chunk({ content: 'naïve \u{1f600}\n"quoted"' }),
    chunk({ tool_calls: [call(0, 'call_1', 'f', '{"a":"\\u00fc')] }), chunk({ tool_calls: [more(0, '\u{1f680}"}')] }),
    chunk({}, 'tool_calls'), usage({ prompt_tokens: 1, completion_tokens: 2 }), '[DONE]',
  )
  const whole = streamBetween('messages', 'chat', [stream])
  fc.assert(fc.property(fc.array(fc.nat(stream.length), { maxLength: 40 }), cuts => {
    const ends = [...new Set(cuts), stream.length].toSorted((a, b) => a - b)
    const chunks = ends.map((end, n) => stream.subarray(ends[n - 1] ?? 0, end))
    t.equal(streamBetween('messages', 'chat', chunks), whole)
  }))
})
