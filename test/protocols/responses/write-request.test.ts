import t from 'tap'
import { restoreResponses } from '../../../src/protocols/responses/restore.ts'
import { capsuleReader, sealed } from '../../support/capsules.ts'
import { PROVIDER, requestBetween } from '../../support/translation.ts'

t.test('a messages request with tools, results and thinking becomes a responses request', async t => {
  const { body, dropped, path } = requestBetween('messages', 'responses', {
    model: 'claude', max_tokens: 100, stream: true, temperature: 0.5, top_k: 5, stop_sequences: ['x'], system: 'Be brief.',
    thinking: { type: 'enabled', budget_tokens: 2000 }, metadata: { user_id: 'u' },
    tools: [{ name: 'look', description: 'Looks.', input_schema: { type: 'object' } }],
    tool_choice: { type: 'auto', disable_parallel_tool_use: true },
    messages: [
      { role: 'user', content: [{ type: 'text', text: 'Look' }, { type: 'image', source: { type: 'url', url: 'https://a.example/b.png' } }] },
      { role: 'assistant', content: [{ type: 'text', text: 'I look.' }, { type: 'tool_use', id: 't1', name: 'look', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', is_error: true, content: 'too dark' }, { type: 'text', text: 'Again' }] },
    ],
  })
  t.equal(path, '/v1/responses')
  t.strictSame(dropped, ['top_k', 'stop_sequences'])
  t.strictSame(body, {
    model: 'upstream-model',
    input: [
      { type: 'message', role: 'system', content: [{ type: 'input_text', text: 'Be brief.' }] },
      {
        type: 'message', role: 'user',
        content: [{ type: 'input_text', text: 'Look' }, { type: 'input_image', image_url: 'https://a.example/b.png', detail: 'auto' }],
      },
      { role: 'assistant', content: 'I look.' },
      { type: 'function_call', call_id: 't1', name: 'look', arguments: '{}' },
      { type: 'function_call_output', call_id: 't1', output: 'Error: too dark' },
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Again' }] },
    ],
    tools: [{ type: 'function', name: 'look', description: 'Looks.', parameters: { type: 'object' }, strict: false }],
    tool_choice: 'auto',
    parallel_tool_calls: false,
    max_output_tokens: 100,
    temperature: 0.5,
    reasoning: { effort: 'low', summary: 'auto' },
    include: ['reasoning.encrypted_content'],
    safety_identifier: 'u',
    stream: true,
    store: false,
  })
})

t.test('an id that the target refuses is rewritten to the same id in call and result', async t => {
  const id = `functions.look:0 ${'x'.repeat(80)}`
  const { body } = requestBetween('chat', 'responses', {
    messages: [
      { role: 'user', content: 'Look' },
      { role: 'assistant', tool_calls: [{ id, type: 'function', function: { name: 'look', arguments: '{}' } }] },
      { role: 'tool', tool_call_id: id, content: 'sky' },
    ],
  })
  const [, call, result] = body['input'] as { readonly call_id: string }[]
  t.match(call?.call_id, /^call_[0-9a-f]+$/)
  t.equal(result?.call_id, call?.call_id)
})

t.test('a token limit below the minimum is raised, and thinking of another provider is dropped', async t => {
  const { body, dropped } = requestBetween('messages', 'responses', {
    max_tokens: 5, messages: [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: [{ type: 'thinking', thinking: 'Hm.', signature: 'foreign' }, { type: 'text', text: 'Hello' }] },
      { role: 'user', content: 'Bye' },
    ],
  }, 'gpt-4.1', PROVIDER)
  t.equal(body['max_output_tokens'], 16)
  t.notMatch(JSON.stringify(body), 'foreign')
  t.equal(dropped.length, 1)
  t.equal(body['include'], undefined)
})

t.test('a capsule for another provider does not reach a responses upstream', async t => {
  const capsule = sealed('opaque_value', { thinking: [{ text: 'Hm.', opaque: { provider: 'another', value: 'sig' } }] })
  const own = sealed('opaque_value', { thinking: [{ text: 'Hm.', opaque: { provider: PROVIDER, value: 'secret' } }] })
  const call = { type: 'function_call', call_id: sealed('tool_id', { id: 'c1' }), name: 'look', arguments: '{}' }
  const input = [
    { role: 'user', content: 'Hi' }, { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: capsule },
    { type: 'reasoning', id: 'rs_2', summary: [], encrypted_content: own }, call,
  ]
  t.strictSame(restoreResponses({ model: 'm', input }, PROVIDER, capsuleReader()), {
    model: 'm',
    input: [{ role: 'user', content: 'Hi' }, { type: 'reasoning', summary: [], encrypted_content: 'secret' }, { ...call, call_id: 'c1' }],
  })
  t.equal(restoreResponses({ input: [{ type: 'reasoning', encrypted_content: 'native' }] }, PROVIDER, capsuleReader()), null)
})
