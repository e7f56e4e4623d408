import t from 'tap'
import { HeldCall } from '../../../src/pipeline/respond/held-call.ts'
import { createChatCallReader } from '../../../src/protocols/chat/continuation.ts'
import { StreamEvent } from '../../../src/protocols/events/stream-event.ts'
import { createMessagesCallReader } from '../../../src/protocols/messages/continuation.ts'

const chat = (delta: object, finish_reason: string | null = null) => ({ choices: [{ delta, finish_reason }] })
const call = (index: number) => chat({ tool_calls: [{ index, function: { arguments: 'x' } }] })
const block = (type: string) => ({ type: 'content_block_start', index: 0, content_block: { type } })
const delta = { type: 'content_block_delta', index: 0, delta: { type: 'input_json_delta', partial_json: 'x' } }
const stop = { type: 'content_block_stop', index: 0 }

/** @returns for each event, whether it is held */
function held(read: ReturnType<typeof createChatCallReader> | null, events: readonly unknown[]): boolean[] {
  const released: unknown[] = []
  const each = new HeldCall(read, ({ value, text }) => released.push(value ?? text))
  const all = events.map(event => each.holds(StreamEvent.of(Buffer.from(typeof event === 'string' ? event : JSON.stringify(event)))))
  each.release()
  t.equal(each.from, null)
  t.strictSame(released, events.filter((_, n) => all[n]), 'every held event is released once, in order')
  return all
}

t.test('a call of chat completions is held until the next call or the finish', t => {
  const read = createChatCallReader
  t.strictSame(held(read(), [chat({ content: 'a' }), call(0), call(0), call(1), chat({}, 'tool_calls'), '[DONE]']), [false, true, true, true, false, false])
  t.strictSame(held(read(), [call(0), { choices: [] }, chat({ content: 'a' }), '[DONE]']), [true, true, true, false])
  t.strictSame(held(read(), [chat({ function_call: { name: 'f' } }), chat({}, 'function_call')]), [true, false])
  t.strictSame(held(read(), [chat({ tool_calls: [{ index: 0 }] }, 'tool_calls')]), [false], 'a call in one event is whole')
  t.strictSame(held(read(), ['what?', 7, chat({ tool_calls: [] }), chat({ tool_calls: null }), {}]), [false, false, false, false, false])
  t.end()
})

t.test('a call of messages is held until its block ends', t => {
  const read = createMessagesCallReader
  t.strictSame(held(read(), [block('text'), stop, block('tool_use'), delta, { type: 'ping' }, stop, stop]), [false, false, true, true, true, false, false])
  t.strictSame(held(read(), [block('tool_use'), block('tool_use'), stop]), [true, true, false])
  t.strictSame(held(read(), [block('tool_use'), { type: 'message_delta' }, { type: 'message_stop' }]), [true, false, false])
  t.strictSame(held(read(), [block('server_tool_use'), delta, stop]), [false, false, false])
  t.end()
})

t.test('without a reader nothing is held, and a discarded call is not released', t => {
  t.strictSame(held(null, [call(0)]), [false])
  const each = new HeldCall(createChatCallReader(), () => t.fail('released'))
  t.ok(each.holds(StreamEvent.of(Buffer.from(JSON.stringify(call(0))))))
  each.discard()
  each.release()
  t.end()
})
