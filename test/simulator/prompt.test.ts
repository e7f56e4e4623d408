import t from 'tap'
import { endsInToolResult, inputTokens, prefillOf, promptTokens } from '../../src/simulator/prompt.ts'

t.test('a prompt has one token for each 4 bytes of text, rounded up', async t => {
  t.equal(promptTokens('abcd'), 1)
  t.equal(promptTokens('abcde'), 2)
  t.equal(promptTokens('é'.repeat(4)), 2, 'bytes are counted, not characters')
  t.equal(promptTokens(undefined, null, 7, true), 0)
})

t.test('the text of messages, parts and tool results is counted', async t => {
  t.equal(promptTokens([{ role: 'user', content: '12345678' }]), 2)
  t.equal(
    promptTokens([{ role: 'user', content: [{ type: 'text', text: '12345678' }, { type: 'image_url' }] }]),
    2,
  )
  t.equal(promptTokens({ parts: [{ text: '12345678' }, { inlineData: { data: 'xxxx' } }] }), 2)
  t.equal(promptTokens([{ type: 'function_call_output', call_id: 'xxxx', output: '12345678' }]), 2)
  t.equal(promptTokens([{ content: [{ type: 'tool_result', content: [{ text: '12345678' }] }] }]), 2)
})

t.test('a prompt with 200,000 levels of nesting is counted', async t => {
  let deep: unknown = 'abcd'
  for (let i = 0; i < 200_000; i++) deep = { content: [deep] }
  t.equal(promptTokens(deep), 1)
})

t.test('the input of an embedding can be token numbers', async t => {
  t.equal(inputTokens([1, 2, 3]), 3)
  t.equal(inputTokens([[1, 2], [3]]), 3)
  t.equal(inputTokens(['abcd', 'abcde']), 3)
})

t.test('a message of the model is a prefill only if it is the last message', async t => {
  const user = { role: 'user', content: 'hi' }
  t.equal(prefillOf([user, { role: 'assistant', content: 'w1' }], 'assistant'), 'w1')
  t.equal(
    prefillOf([user, { role: 'assistant', content: [{ text: 'w1' }, { text: ' w2' }] }], 'assistant'),
    'w1 w2',
  )
  t.equal(prefillOf([{ role: 'model', parts: [{ text: 'w1' }] }], 'model'), 'w1')
  t.equal(prefillOf([{ role: 'assistant', content: 'w1' }, user], 'assistant'), null)
  t.equal(prefillOf([{ role: 'assistant', content: null, tool_calls: [{}] }], 'assistant'), null)
  t.equal(prefillOf([], 'assistant'), null)
  t.equal(prefillOf('w1', 'assistant'), null)
})

t.test('endsInToolResult finds a tool result in the last message, in each protocol', async t => {
  t.ok(endsInToolResult([{ role: 'tool', content: '1' }]))
  t.ok(endsInToolResult([{ role: 'user', content: [{ type: 'tool_result' }] }]))
  t.ok(endsInToolResult([{ type: 'function_call_output' }]))
  t.ok(endsInToolResult([{ role: 'user', parts: [{ functionResponse: {} }] }]))
  t.notOk(endsInToolResult([{ role: 'user', content: 'tool' }]))
})
