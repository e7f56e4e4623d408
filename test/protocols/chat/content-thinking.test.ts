import t from 'tap'
import { asList } from '../../../src/protocols/neutral/json.ts'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { bodyBetween, dataOf, requestBetween, sse, streamBetween } from '../../support/translation.ts'

/*
 * Servers put their reasoning in different places of a chat response.
 */

const CASES: readonly (readonly [what: string, pieces: readonly JsonObject[], whole: JsonObject, back: unknown])[] = [
  [
    'parts of type thinking',
    [{ content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'Hm' }] }] }, { content: [{ type: 'thinking', thinking: [{ type: 'text', text: '.' }] }] }, { content: 'Hi' }],
    { content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'Hm.' }] }, { type: 'text', text: 'Hi' }] },
    { content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'Hm.' }] }, { type: 'text', text: 'Hi' }] },
  ],
  [
    'parts of type thinking whose text is no list',
    [{ content: [{ type: 'thinking', thinking: 'Hm.' }] }, { content: [{ type: 'text', text: 'Hi' }] }],
    { content: [{ type: 'thinking', thinking: 'Hm.' }, { type: 'text', text: 'Hi' }] },
    { content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'Hm.' }] }, { type: 'text', text: 'Hi' }] },
  ],
  [
    'parts of type reasoning',
    [{ content: [{ type: 'reasoning', summary: [{ type: 'summary_text', text: 'Hm.' }] }] }, { content: [{ type: 'text', text: 'Hi' }] }],
    { content: [{ type: 'reasoning', summary: [{ type: 'summary_text', text: 'Hm.' }] }, { type: 'text', text: 'Hi' }] },
    { content: [{ type: 'reasoning', summary: [{ type: 'summary_text', text: 'Hm.' }] }, { type: 'text', text: 'Hi' }] },
  ],
  ['the field reasoning_text', [{ reasoning_text: 'Hm.' }, { content: 'Hi' }], { reasoning_text: 'Hm.', content: 'Hi' }, { content: 'Hi', reasoning_text: 'Hm.' }],
  [
    'a field and parts, which say the same',
    [{ reasoning_content: 'Hm.', content: [{ type: 'thinking', thinking: 'Hm.' }] }, { content: 'Hi' }],
    { reasoning_content: 'Hm.', content: [{ type: 'thinking', thinking: 'Hm.' }, { type: 'text', text: 'Hi' }] }, { content: 'Hi', reasoning_content: 'Hm.' },
  ],
]

const THOUGHT: Readonly<Record<string, unknown>> = {
  messages: { content: [{ type: 'thinking', thinking: 'Hm.' }, { type: 'text', text: 'Hi' }] },
  responses: { output: [{ type: 'reasoning', summary: [{ text: 'Hm.' }] }, { type: 'message', content: [{ text: 'Hi' }] }] },
  generate: { candidates: [{ content: { parts: [{ text: 'Hm.', thought: true }, { text: 'Hi' }] } }] },
}

for (const [what, pieces, whole, back] of CASES) {
  for (const [client, expected] of Object.entries(THOUGHT)) {
    t.test(`${client}: reasoning in ${what} of a body becomes thinking`, async t => {
      t.match(bodyBetween(client, 'chat', { choices: [{ message: { role: 'assistant', ...whole }, finish_reason: 'stop' }] }), expected as object)
    })
  }
  t.test(`reasoning in ${what} of a stream becomes thinking, and is sent back only to its upstream`, async t => {
    const chunks = [...pieces.map(delta => ({ choices: [{ index: 0, delta }] })), { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }, '[DONE]']
    const events = dataOf(streamBetween('messages', 'chat', [sse(...chunks)]))
    const textOf = (name: string) => events.map(event => (event['delta'] as JsonObject | undefined)?.[name] ?? '').join('')
    t.strictSame([textOf('thinking'), textOf('text')], ['Hm.', 'Hi'])
    const content = [{ type: 'thinking', thinking: 'Hm.', signature: textOf('signature') }, { type: 'text', text: 'Hi' }]
    const request = { max_tokens: 9, messages: [{ role: 'user', content: 'Hello' }, { role: 'assistant', content }, { role: 'user', content: 'And?' }] }
    t.match(asList(requestBetween('messages', 'chat', request).body['messages'])[1], back as object)
    t.notMatch(JSON.stringify(requestBetween('messages', 'chat', request, 'm', 'another').body), 'Hm.')
  })
}
