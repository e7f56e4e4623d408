import t from 'tap'
import { endpointNamed } from '../endpoint-named.ts'
import { readableMeter } from '../../support/readable-meter.ts'

type Event = Readonly<Record<string, unknown>>

function metered(...events: readonly Event[]) {
  const meter = readableMeter(endpointNamed('messages'))
  for (const event of events) meter.push(Buffer.from(`event: ${String(event['type'])}\ndata: ${JSON.stringify(event)}\n\n`))
  return meter
}

const START = { type: 'message_start', message: { usage: { input_tokens: 5, cache_read_input_tokens: 3, output_tokens: 1 } } }
const delta = (change: object, index = 0) => ({ type: 'content_block_delta', index, delta: change })
const block = (content_block: object) => ({ type: 'content_block_start', index: 0, content_block })
const end = (usage: unknown) => ({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage })

const TEXTS: readonly (readonly [what: string, event: Event, content: number, reasoning: number, tool: number, isContent: boolean])[] = [
  ['text', delta({ type: 'text_delta', text: 'four' }), 4, 0, 0, true], ['the first text of a block', block({ type: 'text', text: 'four' }), 4, 0, 0, true], ['thinking', delta({ type: 'thinking_delta', thinking: 'four' }), 0, 4, 0, true],
  ['arguments', delta({ type: 'input_json_delta', partial_json: '[12]' }), 0, 0, 4, true], ['a signature', delta({ type: 'signature_delta', signature: 'four' }), 0, 0, 0, false], ['the name of a tool', block({ type: 'tool_use', name: 'look', input: {} }), 0, 0, 0, true],
  ['redacted thinking', block({ type: 'redacted_thinking', data: 'four' }), 0, 0, 0, true], ['an empty block', block({ type: 'text', text: '' }), 0, 0, 0, false], ['text in another event', { type: 'ping', text: 'four' }, 0, 0, 0, false],
]

for (const [what, event, content, reasoning, tool, isContent] of TEXTS) {
  t.test(`the bytes of a stream of messages are counted: ${what}`, async t => {
    const meter = metered(event)
    t.match(meter.generatedBytes, { content, reasoning, tool })
    t.equal(meter.sawContent, isContent)
  })
}

t.test('the first event has the input, and the last event the output', async t => {
  const meter = metered(START, delta({ type: 'text_delta', text: 'a' }))
  t.match(meter.reading()?.usage, { inputTokens: 8, cachedInputTokens: 3, outputTokens: null }, 'output is not complete')
  t.equal(meter.isOutputReported, false)
  const whole = metered(START, delta({ type: 'text_delta', text: 'a' }), end({ output_tokens: 9 }), { type: 'message_stop' })
  t.match(whole.reading()?.usage, { inputTokens: 8, cachedInputTokens: 3, outputTokens: 9 })
  t.strictSame([whole.isOutputReported, whole.terminated, meter.terminated], [true, true, false])
})

t.test('a later count replaces an earlier count, except if the later count is null', async t => {
  t.match(metered(START, end({ input_tokens: 50, cache_read_input_tokens: null, output_tokens: 4 }), end({ output_tokens: 9 })).reading()?.usage, { inputTokens: 53, cachedInputTokens: 3, outputTokens: 9 })
  const meter = metered(START, delta({ type: 'text_delta', text: 'a' }), end(null), end({ output_tokens: null }))
  t.equal(meter.isOutputReported, false)
  t.match(meter.reading(), { suspect: false, usage: { inputTokens: 8 } })
})

t.test('a usage that is not an object is suspect', async t => {
  t.equal(metered(START, end('9')).reading()?.suspect, true)
  t.equal(metered(end('9')).reading(), null)
})

t.test('the kind of an event is read from its name, or from its type if there is no name', async t => {
  const read = (text: string) => {
    const meter = readableMeter(endpointNamed('messages'))
    meter.push(Buffer.from(text))
    return meter
  }
  t.equal(read('event: message_stop\ndata: {"type":"ping"}\n\n').terminated, true)
  t.equal(read('data: {"a":{"type":"message_stop"},"type":"message_stop"}\n\n').terminated, true)
  t.equal(read('event: ping\ndata: {"type":"message_stop"}\n\n').terminated, false)
  t.equal(read('data: {"a":{"type":"message_stop"}}\n\n').terminated, false)
  t.equal(read('data: {"type":"error","error":{}}\n\n').sawError, true)
})

t.test('the service tier is read from the usage', async t => {
  t.equal(metered({ type: 'message_start', message: { usage: { input_tokens: 1, service_tier: 'priority' } } }).serviceTier, 'priority')
  t.equal(metered().serviceTier, null)
})
