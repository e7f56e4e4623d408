import t from 'tap'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { bodyBetween } from '../../support/translation.ts'

/*
 * Some servers do not say why the model stopped. A whole body has ended, unless a call in it is cut off.
 */

const chat = (message: JsonObject): JsonObject => ({ choices: [{ index: 0, message, finish_reason: null }] })
const callOf = (text: string): JsonObject => ({ role: 'assistant', tool_calls: [{ id: 'call_1', function: { name: 'look', arguments: text } }] })
const CALLS: readonly (readonly [upstream: string, body: JsonObject])[] = [
  ['chat', chat(callOf('{"at":"sky"}'))],
  ['messages', { content: [{ type: 'tool_use', id: 'call_1', name: 'look', input: { at: 'sky' } }], stop_reason: null }],
  ['generate', { candidates: [{ content: { parts: [{ functionCall: { name: 'look', args: { at: 'sky' } } }] } }] }],
  ['converse', { output: { message: { content: [{ toolUse: { toolUseId: 'call_1', name: 'look', input: { at: 'sky' } } }] } } }],
]
const TEXTS: readonly (readonly [upstream: string, body: JsonObject])[] = [
  ['chat', chat({ role: 'assistant', content: 'Hi' })],
  ['messages', { content: [{ type: 'text', text: 'Hi' }] }],
  ['generate', { candidates: [{ content: { parts: [{ text: 'Hi' }] } }] }],
  ['converse', { output: { message: { content: [{ text: 'Hi' }] } } }],
]
const ENDS: Readonly<Record<string, readonly [calls: object, text: object]>> = {
  chat: [{ choices: [{ finish_reason: 'tool_calls' }] }, { choices: [{ finish_reason: 'stop' }] }],
  messages: [{ stop_reason: 'tool_use' }, { stop_reason: 'end_turn' }],
  responses: [{ status: 'completed', output: [{ type: 'function_call' }] }, { status: 'completed', output: [{ type: 'message' }] }],
  generate: [{ candidates: [{ finishReason: 'STOP' }] }, { candidates: [{ finishReason: 'STOP' }] }],
}

for (const [client, [calls, text]] of Object.entries(ENDS)) {
  for (const [upstream, body] of CALLS) {
    if (upstream !== client) t.test(`${client} <- ${upstream}: a complete call without a stop reason ends as a tool call`, async t => t.match(bodyBetween(client, upstream, body), calls))
  }
  for (const [upstream, body] of TEXTS) {
    if (upstream !== client) t.test(`${client} <- ${upstream}: a text without a stop reason ends normally`, async t => t.match(bodyBetween(client, upstream, body), text))
  }
  if (client !== 'chat') {
    t.test(`${client} <- chat: an incomplete call without a stop reason is upstream_cut`, async t => {
      t.throws(() => bodyBetween(client, 'chat', chat(callOf('{"at":'))), { code: 'upstream_cut' })
    })
  }
}
