import t from 'tap'
import { requestBetween } from '../../support/translation.ts'

t.test('a conversation with instructions, images and tools becomes a chat request', async t => {
  const { body, dropped, path } = requestBetween('responses', 'chat', {
    model: 'm', stream: true, store: false, instructions: 'Be brief.', max_output_tokens: 50, include: ['reasoning.encrypted_content'],
    reasoning: { effort: 'low', summary: 'auto' }, text: { verbosity: 'low', format: { type: 'json_schema', name: 'n', schema: { type: 'object' }, strict: true } },
    tools: [{ type: 'function', name: 'look', description: 'Looks.', parameters: { type: 'object' }, strict: true }, { type: 'web_search' }],
    tool_choice: { type: 'function', name: 'look' },
    input: [
      { role: 'developer', content: 'Look twice.' },
      { role: 'user', content: [{ type: 'input_text', text: 'What is it?' }, { type: 'input_image', image_url: 'data:image/png;base64,AAAA', detail: 'low' }] },
      { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'I look.', annotations: [] }] },
      { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{"at":1}' },
      { type: 'function_call', call_id: 'c2', name: 'look', arguments: '' },
      { type: 'function_call_output', call_id: 'c1', output: 'sky' },
      { type: 'function_call_output', call_id: 'c2', output: [{ type: 'input_text', text: 'sea' }] },
    ],
  })
  t.equal(path, '/v1/chat/completions')
  t.strictSame(dropped, ['tools[].web_search'])
  const call = (id: string, args: string) => ({ id, type: 'function', function: { name: 'look', arguments: args } })
  t.strictSame(body, {
    model: 'upstream-model',
    messages: [
      { role: 'system', content: 'Be brief.\n\nLook twice.' },
      { role: 'user', content: [{ type: 'text', text: 'What is it?' }, { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA', detail: 'low' } }] },
      { role: 'assistant', content: 'I look.', tool_calls: [call('c1', '{"at":1}'), call('c2', '{}')] },
      { role: 'tool', tool_call_id: 'c1', content: 'sky' },
      { role: 'tool', tool_call_id: 'c2', content: 'sea' },
    ],
    tools: [{ type: 'function', function: { name: 'look', description: 'Looks.', parameters: { type: 'object' }, strict: true } }],
    tool_choice: { type: 'function', function: { name: 'look' } },
    response_format: { type: 'json_schema', json_schema: { name: 'n', schema: { type: 'object' }, strict: true } },
    max_tokens: 50,
    reasoning_effort: 'low',
    verbosity: 'low',
    stream: true,
    stream_options: { include_usage: true },
  })
})

t.test('a reference to data stored at a provider is refused', async t => {
  for (const body of [
    { input: 'Hi', previous_response_id: 'resp_1' }, { input: 'Hi', conversation: 'conv_1' }, { input: 'Hi', prompt: { id: 'pmpt_1' } },
    { input: 'Hi', background: true }, { input: [{ type: 'item_reference', id: 'msg_1' }] },
  ]) {
    t.throws(() => requestBetween('responses', 'messages', body), { code: 'not_translatable', status: 400 })
  }
})

t.test('a custom tool becomes a function with one argument', async t => {
  const { body } = requestBetween('responses', 'messages', {
    input: [
      { role: 'user', content: 'Patch it.' },
      { type: 'custom_tool_call', call_id: 'c1', name: 'apply_patch', input: '*** Begin' },
      { type: 'custom_tool_call_output', call_id: 'c1', output: 'done' },
    ],
    tools: [{ type: 'custom', name: 'apply_patch', description: 'Patches.', format: { type: 'grammar', syntax: 'lark', definition: 'start: x' } }],
  })
  t.match(body, {
    tools: [{ name: 'apply_patch', input_schema: { properties: { input: { type: 'string' } } } }],
    messages: [
      { role: 'user' }, { role: 'assistant', content: [{ type: 'tool_use', name: 'apply_patch', input: { input: '*** Begin' } }] },
      { role: 'user', content: [{ type: 'tool_result', content: [{ type: 'text', text: 'done' }] }] },
    ],
  })
})
