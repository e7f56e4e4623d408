import t from 'tap'
import { asList, asObject } from '../../../src/protocols/neutral/json.ts'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { requestBetween } from '../../support/translation.ts'

/*
 * Targets want the results of tools right behind their calls. Codex has other items between, further calls, and results in
 * another order.
 */

const call = (id: string): JsonObject => ({ type: 'function_call', call_id: id, name: 'look', arguments: '{}' })
const output = (id: string): JsonObject => ({ type: 'function_call_output', call_id: id, output: `of ${id}` })
const said = (role: string, text: string): JsonObject => ({ type: 'message', role, content: text })

const CASES: readonly (readonly [what: string, input: readonly JsonObject[], turns: string])[] = [
  ['in order', [call('a'), output('a'), call('b'), output('b')], 'call a | a | call b | b'],
  ['a message of the user between', [call('a'), said('user', 'Stop'), output('a')], 'call a | a | Stop'],
  ['a message of the developer between', [call('a'), said('developer', 'Mind'), output('a')], 'call a | a | Mind'],
  ['a message of the model between', [call('a'), said('assistant', 'Wait'), output('a')], 'Wait, call a | a'],
  ['outputs in another order', [call('a'), call('b'), output('b'), output('a')], 'call a, call b | b, a'],
  ['a further call before the output', [call('a'), said('user', 'Stop'), call('b'), output('a'), output('b')], 'call a | a | Stop | call b | b'],
  ['a further call before the outputs, which are in reverse order', [call('a'), said('user', 'Stop'), call('b'), output('b'), output('a')], 'call a | a | Stop | call b | b'],
  ['an output before its call', [output('a'), said('user', 'Go'), call('a')], 'Go | call a | a'],
  ['two calls with the same id', [call('a'), output('a'), said('user', 'Again'), call('a'), output('a')], 'call a | a | Again | call a | a'],
  ['a user message between two outputs', [call('a'), call('b'), output('a'), said('user', 'Now'), output('b')], 'call a, call b | a, b | Now'],
]

/** The turns as text: `call a | a | text`. Ids that were made unique have their original form. */
const READERS: Readonly<Record<string, (body: JsonObject) => string[]>> = {
  chat: body => asList(body['messages']).flatMap(value => {
    const message = value as JsonObject
    if (message['role'] === 'tool') return [`=${String(message['tool_call_id'])}`]
    const calls = asList(message['tool_calls']).map(each => `call ${String((each as JsonObject)['id'])}`)
    const { content } = message
    return [...typeof content === 'string' ? [content] : asList(content).map(part => String((part as JsonObject)['text'])), ...calls]
  }).slice(1),
  messages: body => blocks(body).map(block => block['type'] === 'tool_use' ? `call ${idOf(block['id'])}` : block['type'] === 'tool_result' ? `=${idOf(block['tool_use_id'])}` : String(block['text'])),
  converse: body => blocks(body).map(block => {
    const use = block['toolUse'] as JsonObject | undefined
    const result = block['toolResult'] as JsonObject | undefined
    return use ? `call ${idOf(use['toolUseId'])}` : result ? `=${idOf(result['toolUseId'])}` : String(block['text'])
  }),
}

function blocks(body: JsonObject): JsonObject[] {
  return asList(body['messages']).flatMap(message => asList((message as JsonObject)['content'])).slice(1) as JsonObject[]
}

function idOf(id: unknown): string {
  return String(id).replace(/_\d+$/, '')
}

for (const [target, read] of Object.entries(READERS)) {
  for (const [what, input, turns] of CASES) {
    t.test(`${target}: results are paired with their calls: ${what}`, async t => {
      const { body } = requestBetween('responses', target, { input: [said('user', 'Hi'), ...input] }, 'anthropic.claude-sonnet-4-20250514-v1:0')
      const expected = turns.split(/ \| |, /).map(each => each.startsWith('call ') || !/^[ab]$/.test(each) ? each : `=${each}`)
      const got = read(body).map(text => text.replace(/<\/?system>|\n/g, ''))
      t.strictSame(what.includes('model between') ? got.toSorted() : got, what.includes('model between') ? expected.toSorted() : expected)
    })
  }
}

t.test('late results of a chat client are moved after their calls', async t => {
  const calls = (id: string): JsonObject => ({ role: 'assistant', tool_calls: [{ id, type: 'function', function: { name: 'look', arguments: '{}' } }] })
  const { body } = requestBetween('chat', 'messages', { messages: [
    { role: 'user', content: 'Hi' }, calls('a'), calls('b'), { role: 'tool', tool_call_id: 'b', content: '2' }, { role: 'tool', tool_call_id: 'a', content: '1' },
  ] })
  t.match(asList(body['messages']).slice(1), [
    { role: 'assistant', content: [{ id: 'a' }] }, { role: 'user', content: [{ tool_use_id: 'a' }] },
    { role: 'assistant', content: [{ id: 'b' }] }, { role: 'user', content: [{ tool_use_id: 'b' }] },
  ])
})

for (const target of ['chat', 'messages', 'generate', 'converse']) {
  t.test(`${target}: an agent message of Codex becomes text`, async t => {
    const { body, dropped } = requestBetween('responses', target, { input: [
      { type: 'agent_message', author: '/root', recipient: '/root/one', content: [{ type: 'input_text', text: 'Count the stars.' }] },
    ] })
    t.match(JSON.stringify(body), /Count the stars\./)
    t.strictSame(dropped, [])
  })
  t.test(`${target}: reasoning without a following response is dropped, also after a text`, async t => {
    const reasoning = { type: 'reasoning', summary: [{ type: 'summary_text', text: 'I wait.' }] }
    const { body, dropped } = requestBetween('responses', target, { input: [
      said('user', 'One'), reasoning, said('user', 'Two'), said('assistant', 'Three'), reasoning, said('user', 'Four'),
    ] })
    const turns = asList(body['messages'] ?? body['contents']).map(turn => asObject(turn)?.['role'])
    t.strictSame(turns, target === 'chat' ? ['user', 'assistant', 'user'] : ['user', target === 'generate' ? 'model' : 'assistant', 'user'])
    t.notMatch(JSON.stringify(body), /I wait/)
    t.strictSame(dropped, ['input[].reasoning.thinking'])
  })
  t.test(`${target}: a plain agent message becomes text, and an encrypted agent message is dropped`, async t => {
    const given = (encrypted_content: string) => requestBetween('responses', target, { input: [
      { type: 'agent_message', author: '/root', recipient: '/root/one', content: [{ type: 'input_text', text: 'Payload:\n' }, { type: 'encrypted_content', encrypted_content }] },
    ] })
    t.match(JSON.stringify(given('Count the stars.').body), /Payload:.*Count the stars\./)
    t.strictSame(given('Count the stars.').dropped, [])
    const secret = given('gAAAAABpJ5-_secretsecretsecret==')
    t.notMatch(JSON.stringify(secret.body), /gAAAA/)
    t.strictSame(secret.dropped, ['input[].content[].encrypted_content'])
  })
  for (const type of ['compaction_trigger', 'compaction_summary', 'compaction']) {
    t.test(`${target}: ${type} is refused`, async t => {
      const input = [said('user', 'Hi'), { type, encrypted_content: 'secret' }]
      t.throws(() => requestBetween('responses', target, { input }), { code: 'not_translatable', param: 'input[1].type' })
    })
  }
}

const PNG = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }
const TEXT_FILE = { type: 'document', title: 'notes.txt', source: { type: 'text', media_type: 'text/plain', data: 'some notes' } }

function withResult(content: readonly JsonObject[], target: string, model: string): JsonObject {
  return requestBetween('messages', target, { max_tokens: 9, messages: [
    { role: 'user', content: 'Hi' }, { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'look', input: {} }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content }, { type: 'text', text: 'And?' }] },
  ] }, model).body
}

t.test('media of tool results are sent after the results for Gemini 2, and inside the results for Gemini 3', async t => {
  const parts = (model: string) => (asList(withResult([{ type: 'text', text: 'seen' }, PNG], 'generate', model)['contents'])[2] as JsonObject)['parts'] as JsonObject[]
  t.match(parts('gemini-2.5-pro'), [{ functionResponse: { response: { output: 'seen' }, parts: undefined } }, { text: /look/ }, { inlineData: { mimeType: 'image/png' } }, { text: 'And?' }])
  t.match(parts('gemini-3-pro'), [{ functionResponse: { response: { output: 'seen' }, parts: [{ inlineData: { mimeType: 'image/png' } }] } }, { text: 'And?' }])
})

t.test('a text document in a tool result becomes text', async t => {
  for (const model of ['gemini-2.5-pro', 'gemini-3-pro']) {
    t.match(withResult([TEXT_FILE], 'generate', model), { contents: [{}, {}, { parts: [{ functionResponse: { response: { output: /some notes/ }, parts: undefined } }, { text: 'And?' }] }] })
  }
  t.match(withResult([TEXT_FILE], 'chat', 'm'), { messages: [{}, {}, { role: 'tool', content: /notes\.txt[^]*some notes/ }, { role: 'user', content: 'And?' }] })
  t.match(withResult([TEXT_FILE], 'responses', 'm'), { input: [{}, {}, { type: 'function_call_output', output: /some notes/ }, {}] })
})
