import t from 'tap'
import { RealtimeConversation } from '../../../src/protocols/media/realtime-conversation.ts'
import { settingsIn } from '../../../src/protocols/media/realtime-event.ts'

/** @returns the input of the next response after these events of the upstream */
function inputAfter(...events: readonly { readonly type: string }[]) {
  const conversation = new RealtimeConversation()
  for (const event of events) {
    const message = Buffer.from(JSON.stringify(event))
    const settings = settingsIn(event.type, message)
    if (settings !== null) conversation.applySettings(settings)
    else conversation.onEvent(event.type, message)
  }
  return conversation.inputEstimate
}

const item = (item: object) => ({ type: 'conversation.item.created', item })
const said = (text: string, rest: object = {}) =>
  item({ type: 'message', role: 'user', content: [{ type: 'input_text', text }], ...rest })
const started = (audio_start_ms: unknown) => ({ type: 'input_audio_buffer.speech_started', audio_start_ms })
const stopped = (audio_end_ms: unknown) => ({ type: 'input_audio_buffer.speech_stopped', audio_end_ms })
const done = (response: object) => ({ type: 'response.done', response })
const USAGE = { input_tokens: 100, output_tokens: 20 }
const KNOWN = { inputTokens: 120, cachedInputTokens: 120, inputAudioTokens: null }

t.test('instructions, tools, speech and items that the model did not write count as input', t => {
  t.equal(inputAfter(), null)
  t.match(inputAfter({ type: 'session.created', session: { instructions: '1234', tools: [] } } as never), {
    inputTokens: 1, cachedInputTokens: null, inputAudioTokens: null,
  })
  const long = { type: 'session.updated', session: { instructions: 'x'.repeat(400_000) } }
  t.match(inputAfter(long), { inputTokens: 100_000 })
  const items = [said('12345'), said('1', { role: 'system' })]
  t.match(inputAfter(...items), { inputTokens: 3 })
  t.match(inputAfter(item({ type: 'function_call_output', output: '12345678' })), { inputTokens: 2 })
  const call = item({ type: 'function_call', arguments: '{}', output: 'x' })
  t.equal(inputAfter(call, said('x', { role: 'assistant' })), null)
  const picture = item({ role: 'user', content: [{ type: 'input_image', image_url: 'data:' }] })
  t.match(inputAfter(picture), { inputTokens: 1000 })
  t.match(inputAfter(said('x'.repeat(300_000))), { inputTokens: 1000 }, 'an item of this length is not parsed')
  t.match(inputAfter(started(500), stopped(701)), { inputTokens: 3, inputAudioTokens: 3 })
  t.end()
})

t.test('repeated and invalid items do not count', t => {
  t.match(inputAfter(said('1234', { id: 'a' }), said('1234', { id: 'a' })), { inputTokens: 1 })
  t.match(inputAfter(said('1234'), said('1234')), { inputTokens: 2 }, 'items without ids count separately')
  for (const [from, to] of [[null, 5], [5, null], [5, 4], ['1', 5], [-1, 5]]) {
    t.equal(inputAfter(started(from), stopped(to)), null)
  }
  t.equal(inputAfter(stopped(500)), null)
  t.match(inputAfter(started(0), stopped(100), stopped(900)), { inputTokens: 1 })
  t.equal(inputAfter(item({ role: 'user', content: 'x' }), { type: 'session.created' }, item({})), null)
  t.end()
})

t.test('the estimate continues from the usage of the last response', t => {
  const before = [said('1234'), started(0), stopped(100), done({ usage: USAGE })]
  t.strictSame(inputAfter(...before), KNOWN)
  t.match(inputAfter(...before, said('1234')), { inputTokens: 121, cachedInputTokens: 120 })
  t.strictSame(inputAfter(done({ usage: USAGE, conversation_id: 'c' })), KNOWN)
  const others = [{ usage: USAGE, conversation_id: null }, { usage: null }, { usage: { input_tokens: 5 } }]
  for (const other of others) {
    t.strictSame(inputAfter(...before, done(other)), KNOWN, 'a response outside the conversation, or without usage')
  }
  const interrupted = [started(0), done({ usage: USAGE }), stopped(100)]
  t.match(inputAfter(...interrupted), { inputTokens: 121, inputAudioTokens: 1 })
  t.end()
})
