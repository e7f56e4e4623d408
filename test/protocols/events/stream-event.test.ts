import t from 'tap'
import { ChunkReader, StreamEvent, isPresent, kindOf, looksLikeData, member, parseJsonText } from '../../../src/protocols/events/stream-event.ts'
import type { EventKind } from '../../../src/protocols/events/stream-event.ts'

/** An event with this data, and a name. */
function eventOf(data: string, name = ''): StreamEvent {
  const event = new StreamEvent()
  event.buf = Buffer.from(name + data)
  event.nameEnd = event.dataStart = Buffer.byteLength(name)
  event.dataEnd = event.end = event.buf.length
  return event
}

const KINDS: readonly (readonly [data: string, name: string, expected: EventKind])[] = [
  ['', '', 'ping'], [' \n', '', 'ping'], ['{"type":"ping"}', '', 'ping'], ['{}', 'ping', 'ping'], ['[DONE]', '', 'done'], [' [DONE] ', '', 'done'],
  ['{"a":1}', '', 'data'], ['{"a":1}', 'message_delta', 'data'], ['[1]', '', 'data'], ['null', '', 'data'], ['{"a":', '', 'malformed'], ['[DONE', '', 'malformed'],
  ['{"error":{}}', '', 'error'], ['{"error":"x"}', '', 'error'], ['{"error":null}', '', 'data'], ['{"error":false}', '', 'error'], ['{"type":"error"}', '', 'error'], ['{}', 'error', 'error'],
  ['{"type":"response.failed"}', '', 'error'], ['{}', 'response.failed', 'error'], ['{"type":"error"}', 'delta', 'data'], ['{"x":{"error":1}}', '', 'data'],
]

for (const [data, name, expected] of KINDS) {
  t.test(`an event of ${name || 'no name'} with ${JSON.stringify(data)} is ${expected}`, async t => t.equal(kindOf(eventOf(data, name)), expected))
}

t.test('an event without its end is malformed, unless only its blank line is missing', async t => {
  const event = eventOf('{"a":1}')
  event.terminated = false
  t.equal(kindOf(event), 'malformed')
  t.equal(kindOf(event, true), 'data')
})

t.test('an event that is too large to parse is data', async t => {
  const event = eventOf('{"error":1}')
  event.oversize = true
  t.equal(kindOf(event), 'data')
  event.oversize = false
  event.end = 16 * 1024 * 1024
  t.equal(kindOf(event), 'error')
  event.end++
  t.equal(kindOf(event), 'data')
})

for (const [data, name, expected] of [
  ['{"a":1}', '', true], ['{"a":1}', 'delta', true], ['{"a":1}', 'error', false], ['{"error":1}', '', false], ['{"text":"an error occurred"}', '', false], ['{"a":1} ', '', false], ['[1]', '', false], ['', '', false],
] as const) {
  t.test(`${JSON.stringify(data)} with the name "${name}" ${expected ? 'is data without parsing' : 'has to be parsed'}`, async t => t.equal(looksLikeData(eventOf(data, name)), expected))
}

t.test('text and value are read once, and read again after clear', async t => {
  const event = eventOf(' {"a":1} ')
  t.equal(event.text, '{"a":1}')
  t.equal(event.value, event.value)
  event.buf = Buffer.from('other')
  t.equal(event.text, '{"a":1}')
  event.clear()
  event.buf = Buffer.from('7')
  event.dataStart = 0
  event.dataEnd = 1
  t.equal(event.value, 7)
})

t.test('StreamEvent.of returns an event for a message outside a stream', async t => {
  const event = StreamEvent.of(Buffer.from('{"a":"é"}'))
  t.strictSame([event.text, event.value, event.start, event.end, event.terminated], ['{"a":"é"}', { a: 'é' }, 0, 10, true])
})

t.test('each chunk of an unknown format is an event', async t => {
  const seen: unknown[] = []
  const reader = new ChunkReader({ event: ({ start, end, text }) => seen.push([start, end, text]) })
  reader.push(Buffer.from('abc'))
  t.equal(reader.blockStart, 3)
  reader.push(Buffer.from('de'))
  reader.end()
  t.strictSame(seen, [[0, 3, 'abc'], [3, 5, 'de']])
  t.strictSame([reader.offset, reader.atBoundary], [5, false])
})

t.test('a member of a value that is not an object is undefined', async t => {
  t.equal(member({ a: 1 }, 'a'), 1)
  t.strictSame([null, 'a', 5, undefined].map(value => member(value, 'length')), [undefined, undefined, undefined, undefined])
  t.strictSame([undefined, null, 0, '', false].map(isPresent), [false, false, true, true, true])
  t.equal(parseJsonText('{'), undefined)
  t.equal(parseJsonText('null'), null)
})
