import t from 'tap'
import { MAX_TEXTS, requestTexts } from '../../../src/protocols/request/request-texts.ts'

/** Each text as `role kind: text`. */
function textsOf(body: unknown): string[] {
  const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
  return (requestTexts(bytes) ?? []).map(({ role, kind, start, end }) => `${role} ${kind}: ${JSON.parse(bytes.toString('utf8', start, end))}`)
}

t.test('chat', t => {
  t.strictSame(textsOf({
    model: 'm', user: 'u', tools: [{ function: { description: 'd' } }],
    messages: [
      { content: 'be nice', role: 'system' },
      { role: 'user', content: [{ type: 'text', text: 'hello' }, { type: 'image_url', image_url: { url: 'https://x' } }, { type: 'file', file: { file_data: 'data:x;base64,AA' } }] },
      { role: 'assistant', content: null, tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{"card":"4111"}' } }] },
      { role: 'tool', tool_call_id: 'c1', content: 'found' },
    ],
  }), ['system text: be nice', 'user text: hello', 'assistant tool_arguments: {"card":"4111"}', 'tool tool_result: found'])
  t.strictSame(textsOf({ prompt: ['a', 'b'], suffix: 'c' }), ['user text: a', 'user text: b', 'user text: c'])
  t.end()
})

t.test('responses', t => {
  t.strictSame(textsOf({ instructions: 'i', input: 'q' }), ['system text: i', 'user text: q'])
  t.strictSame(textsOf({ input: [
    { role: 'user', content: [{ type: 'input_text', text: 'q' }, { type: 'input_image', image_url: 'data:image/png;base64,AA' }] },
    { type: 'function_call', name: 'f', arguments: '{}', call_id: 'c' },
    { type: 'function_call_output', call_id: 'c', output: 'r' },
    { type: 'function_call_output', call_id: 'c', output: [{ type: 'input_text', text: 's' }] },
    { type: 'reasoning', id: 'r', summary: [{ type: 'summary_text', text: 'think' }], encrypted_content: 'AA' },
    { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'said' }] },
    { type: 'custom_tool_call', input: 'raw', name: 'f' },
  ] }), ['user text: q', 'user tool_arguments: {}', 'tool tool_result: r', 'tool tool_result: s', 'user text: think', 'assistant text: said', 'user tool_arguments: raw'])
  t.end()
})

t.test('messages', t => {
  t.strictSame(textsOf({
    system: [{ type: 'text', text: 's', cache_control: { type: 'ephemeral' } }],
    messages: [
      { role: 'user', content: [
        { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'doc' }, title: 'T' },
        { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'AAAA' } },
        { type: 'tool_result', tool_use_id: 'x', content: [{ type: 'text', text: 'res' }] }, { type: 'tool_result', tool_use_id: 'x', content: 'res2' },
      ] },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'x', name: 'f', input: { type: 'card', id: '4111', list: [{ name: 'n' }] } }, { type: 'thinking', thinking: 'hm', signature: 'AA' }] },
    ],
  }), [
    'system text: s', 'user document: doc', 'user document: T', 'tool tool_result: res', 'tool tool_result: res2',
    'assistant tool_arguments: card', 'assistant tool_arguments: 4111', 'assistant tool_arguments: n', 'assistant text: hm',
  ])
  t.end()
})

t.test('generate', t => {
  t.strictSame(textsOf({
    systemInstruction: { parts: [{ text: 's' }] },
    contents: [
      { role: 'user', parts: [{ text: 'q' }, { inlineData: { mimeType: 'image/png', data: 'AA' } }] },
      { role: 'model', parts: [{ functionCall: { name: 'f', args: { id: '4111' } } }] },
      { parts: [{ functionResponse: { name: 'f', response: { output: 'r' } } }] },
    ],
  }), ['system text: s', 'user text: q', 'model tool_arguments: 4111', 'tool tool_result: r'])
  t.strictSame(textsOf({ requests: [{ model: 'm', content: { parts: [{ text: 'e' }] } }] }), ['user text: e'])
  t.strictSame(textsOf({ generateContentRequest: { contents: [{ parts: [{ text: 'c' }] }] } }), ['user text: c'])
  t.end()
})

t.test('batches', t => {
  t.strictSame(textsOf({ requests: [{ custom_id: 'a', params: { model: 'm', system: 's', messages: [{ role: 'user', content: 'q' }] } }] }), ['system text: s', 'user text: q'])
  t.strictSame(textsOf({ batch: { display_name: 'b', input_config: { requests: { requests: [{ request: { contents: [{ parts: [{ text: 'q' }] }] } }] } } } }), ['user text: q'])
  t.end()
})

t.test('a text cannot hide: in a repeated member, in other case, behind escapes, at depth', t => {
  t.strictSame(textsOf('{"MESSAGES":[{"role":"user","content":"a","Content":"b","\\u0063ontent":"c"}],"messages":[{"content":"d"}]}'), [
    'user text: a', 'user text: b', 'user text: c', 'user text: d',
  ])
  const deep = `{"input":${'{"x":'.repeat(300)}"deep"${'}'.repeat(300)}}`
  t.strictSame(textsOf(deep), ['user text: deep'])
  t.strictSame(textsOf('{"messages":[{"__proto__":"p","constructor":{"a":"c"}}]}'), ['user text: p', 'user text: c'])
  t.end()
})

t.test('a body of 10 MB is read in linear time, and one with too many texts is not read', t => {
  const nested = (levels: number, size: number) => Buffer.from(`{"messages":${'[{"content":'.repeat(levels)}"${'x'.repeat(size)}"${'}]'.repeat(levels)}}`)
  const timeOf = (body: Buffer) => {
    const from = performance.now()
    requestTexts(body)
    return performance.now() - from
  }
  timeOf(nested(400, 1_000_000))
  t.ok(timeOf(nested(400, 10_000_000)) < 2_000)
  t.equal(requestTexts(Buffer.from(JSON.stringify({ input: Array.from({ length: MAX_TEXTS + 1 }, () => 'x') }))), null)
  t.end()
})
