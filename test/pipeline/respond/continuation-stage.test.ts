import fc from 'fast-check'
import t from 'tap'
import type { ReserveMemory } from '../../../src/base/memory-reservation.ts'
import { ContinuationStage } from '../../../src/pipeline/respond/continuation-stage.ts'
import { ChatStreamProtocol, chatText, createChatCallReader } from '../../../src/protocols/chat/continuation.ts'
import { ResumableStream } from '../../../src/protocols/events/resumable-stream.ts'
import { SseReader } from '../../../src/protocols/events/sse.ts'
import type { EventContent } from '../../../src/protocols/events/stream-event.ts'
import { FakeClock } from '../../support/fake-clock.ts'

/** A stream whose only last event is {"a":1}. */
class Resumable extends ResumableStream {
  override isLastEvent({ text }: EventContent): boolean {
    return text === '{"a":1}'
  }
}

/** A stage with the reader that gives it its events. */
class StagedStream {
  readonly clock = new FakeClock()
  readonly stage: ContinuationStage
  readonly #reader: SseReader = new SseReader({ event: event => this.stage.event(event) })

  /** @param isJoined the stream continues another stream; its events are not changed */
  constructor(isJoined = false, reserveMemory?: ReserveMemory) {
    this.stage = new ContinuationStage({
      reader: this.#reader,
      filter: null,
      resumable: new Resumable(new ChatStreamProtocol({}), chatText),
      translate: isJoined ? ({ text }) => `data: ${text}\n\n` : null,
      calls: createChatCallReader(),
      clock: this.clock,
      keepAlive: ': keep-alive\n\n',
      reserveMemory,
      onStreamFault: () => {},
    })
  }

  push(chunk: Buffer): Buffer {
    this.#reader.push(chunk)
    return this.stage.take(chunk)
  }

  end(): Buffer {
    this.#close()
    return this.stage.rest()
  }

  takeLastEvent(): Buffer {
    this.#close()
    return this.stage.takeLastEvent()
  }

  #close(): void {
    this.stage.close()
    this.#reader.end()
  }
}

/** Pushes a stream in pieces that end at `cuts`. */
function feed(text: string, cuts: readonly number[]) {
  const gate = new StagedStream()
  const bytes = Buffer.from(text)
  const places = [...new Set(cuts.map(cut => cut % (bytes.length + 1)))].sort((a, b) => a - b)
  const out: Buffer[] = []
  let from = 0
  for (const to of [...places, bytes.length]) {
    // A copy, which is overwritten afterwards as the buffer of a socket would be.
    const piece = Buffer.from(bytes.subarray(from, to))
    out.push(Buffer.from(gate.push(piece)))
    piece.fill(0)
    from = to
  }
  return { gate, passed: Buffer.concat(out).toString() }
}

const EVENTS = [
  'data: {"a":1}\n\n', ': ping\n\n', 'event: x\r\ndata: {"b":"\u4e2d\u6587"}\r\n\r\n',
  'data: {"c":\ndata: 2}\n\n', 'data:\n\n', 'event: ping\ndata: x\n\n', '\n',
  'data: [DONE]\n\n',
  'event: content_block_delta\ndata: {"type":"x","delta":{"text":"an \\"error\\": of mine"}}\n\n',
  'data: {"error":null,"choices":[]}\n\n',
]
const MALFORMED = ['data: {"choices":[{"del\n\n', 'event: x\ndata: {"b":1\r\n\r\n', 'data: what?\n\n']
const ERRORS = [
  'data: {"error":{"message":"no"}}\n\n', 'event: error\ndata: {"type":"error","error":{}}\n\n',
  'data: {"type":"error"}\r\n\r\n', 'event: response.failed\ndata: {"response":{"error":{}}}\n\n',
]
const cuts = fc.array(fc.nat(4_000), { maxLength: 40 })
const events = fc.array(fc.constantFrom(...EVENTS), { maxLength: 12 })

t.test('complete events pass for any chunk boundaries, and an incomplete last event is dropped', t => {
  const halves = fc.constantFrom('data: {"ha', 'data: {"a":{}\n')
  fc.assert(fc.property(events, halves, cuts, (list, half, cuts) => {
    const whole = list.join('')
    const { gate, passed } = feed(whole + half, cuts)
    return passed === whole && gate.stage.fault === null && gate.end().length === 0
  }))
  t.end()
})

t.test('a last event without a blank line passes, and the blank line is added', t => {
  const unended = fc.constantFrom(
    ['data: {"a":1}\n', '\n'], ['data: [DONE]', '\n\n'], [': bye', '\n\n'], ['data: {"a":1}\r', '\r'],
    ['event: a\r\ndata: {"a":1}', '\r\n\r\n'], ['event: a\r\ndata: {"a":1}\r', '\n\r\n'],
    ['data: {"a":1}\r\n', '\r\n'],
  )
  fc.assert(fc.property(events, unended, cuts, (list, [last = '', missing = ''], cuts) => {
    const { gate, passed } = feed(list.join('') + last, cuts)
    return passed === list.join('') && gate.end().toString() === last + missing
  }))
  t.end()
})

t.test('takeLastEvent returns only a complete event that the client needs', t => {
  for (const [rest, wanted] of [
    ['data: {"a":1}\n', true], ['data: {"a":1}\r\n\r', true], ['data: {"b":1}\n', false],
    ['data: {"a":1', false], ['event: a\n', false], ['event: a', false], [': bye', false], ['', false],
  ] as const) {
    const { gate } = feed(`data: {"a":0}\n\n${rest}`, [])
    t.equal(gate.takeLastEvent().length > 0, wanted, rest)
  }
  t.end()
})

t.test('an error event or malformed event does not pass, nor do any later events', t => {
  for (const [kind, flaws] of [['error', ERRORS], ['malformed', MALFORMED]] as const) {
    fc.assert(fc.property(events, fc.constantFrom(...flaws), events, cuts, (before, flaw, after, cuts) => {
      const { gate, passed } = feed(before.join('') + flaw + after.join(''), cuts)
      return passed === before.join('') && gate.stage.fault?.kind === kind && gate.stage.fault.bytes.toString() === flaw
    }))
  }
  t.end()
})

t.test('an event that is too long to hold is forwarded as it arrives', t => {
  const gate = new StagedStream()
  const piece = Buffer.alloc(4 * 1024 * 1024, 'x')
  let passed = gate.push(Buffer.from('data: {"a":1}\n\ndata: ')).length
  for (let n = 0; n < 6; n++) passed += gate.push(piece).length
  t.ok(gate.stage.overflowed)
  t.equal(passed, 'data: {"a":1}\n\ndata: '.length + 6 * piece.length)
  t.equal(gate.end().length, 0)
  t.end()
})

t.test('in a continuation, an event that is too long to be read does not pass', t => {
  const most = 16 * 1024 * 1024
  const before = 'data: {"a":1}\n\n'
  for (const size of [most - 1, most, most + 1, most + 2]) {
    const event = `data: {"b":"${'x'.repeat(size - 'data: {"b":""}\n\n'.length)}"}\n\n`
    const sizes: boolean[] = []
    const reader = new SseReader({ event: ({ oversize }) => void sizes.push(oversize) }, { maxEvent: most })
    const bytes = Buffer.from(before + event)
    reader.push(bytes)
    for (const cuts of [[], [20], [bytes.length - 1], [bytes.length - 2], [20, bytes.length - 3]]) {
      const gate = new StagedStream(true)
      let passed = 0
      let from = 0
      for (const to of [...cuts, bytes.length]) {
        passed += gate.push(bytes.subarray(from, to)).length
        from = to
      }
      t.equal(gate.stage.overflowed, false)
      t.equal(gate.stage.fault?.kind, sizes.at(-1) ? 'too_long' : undefined)
      t.equal(passed, sizes.at(-1) ? before.length : bytes.length, `${size} bytes, cut at ${cuts.join(', ')}`)
      t.equal(gate.push(Buffer.from('data: {"c":1}\n\n')).length, gate.stage.fault ? 0 : 15, 'no event passes after the fault')
    }
  }
  t.end()
})

t.test('an event beyond the memory limit is forwarded as it arrives, and its memory reservation is released', async t => {
  const piece = Buffer.alloc(32 * 1024, 'x')
  let reserved = 0
  const events = new StagedStream(false, bytes => {
    if (reserved + bytes > 150 * 1024) return false
    reserved += bytes
    return true
  })
  let passed = events.push(Buffer.from('data: {}\n\ndata: {"')).length
  t.equal(passed, 10)
  for (let n = 0; n < 4; n++) passed += events.push(piece).length
  t.equal(passed, 10)
  t.equal(reserved, 8 + 4 * piece.length)
  for (let n = 0; n < 8; n++) passed += events.push(piece).length
  t.ok(events.stage.overflowed)
  t.equal(reserved, 0)
  t.equal(passed, 18 + 12 * piece.length, 'all bytes pass')
})

const textChunk = (content: string) => `data: {"choices":[{"delta":{"content":"${content}"}}]}\n\n`
const callChunk = (index: number, part: string) =>
  `data: {"choices":[{"delta":{"tool_calls":[{"index":${index},"function":{"arguments":"${part}"}}]}}]}\n\n`
const FINISH = 'data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}\n\n'
/** Parts of a stream: what a client gets at the end of each part, it gets whole. */
const PARTS = [
  [textChunk('\u4e2d')], [callChunk(0, 'a'), ': ping\n\n', callChunk(0, 'b')], [callChunk(1, 'c'), callChunk(1, 'd')], [FINISH],
  ['data: [DONE]\n\n'],
]

for (const isJoined of [false, true]) {
  t.test(`wherever a stream is cut, only whole tool calls have passed${isJoined ? ', in a continuation too' : ''}`, t => {
    const events = PARTS.flat()
    const whole = Buffer.from(events.join(''))
    for (let cut = 0; cut <= whole.length; cut++) for (const size of [1, 7, whole.length]) {
      const gate = new StagedStream(isJoined)
      const out: Buffer[] = []
      for (let from = 0; from < cut; from += size) out.push(Buffer.from(gate.push(Buffer.from(whole.subarray(from, Math.min(cut, from + size))))))
      const passed = Buffer.concat(out)
      // A call is complete when the event behind it is.
      let expected = ''
      for (const part of PARTS) {
        const at = Buffer.byteLength(expected + part.join(''))
        const isCall = part[0]?.includes('tool_calls":[') === true
        const next = PARTS[PARTS.indexOf(part) + 1]?.[0] ?? ''
        if (cut < at + (isCall ? Buffer.byteLength(next) : 0)) break
        expected += part.join('')
      }
      const shown = isJoined ? expected.replace(': ping\n\n', '') : expected
      if (passed.toString() === shown) continue
      t.equal(passed.toString(), shown, `cut at ${cut}, pieces of ${size}`)
      break
    }
    t.end()
  })
}

t.test('an error inside a tool call drops the call, and the whole events before it have passed', t => {
  const { gate, passed } = feed(textChunk('a') + callChunk(0, 'a') + ERRORS[0] + callChunk(0, 'b'), [])
  t.equal(passed, textChunk('a'))
  t.equal(gate.stage.fault?.bytes.toString(), ERRORS[0])
  t.equal(gate.end().length, 0)
  t.end()
})

t.test('a call that the upstream ends without a finish passes at the end', t => {
  for (const rest of ['', 'data: {"ha']) {
    const { gate, passed } = feed(textChunk('a') + callChunk(0, 'a') + rest, [])
    t.equal(passed, textChunk('a'))
    t.equal(gate.end().toString(), callChunk(0, 'a'))
  }
  t.end()
})

t.test('a tool call above 1 MB or beyond the memory limit passes as it arrives', t => {
  const part = callChunk(0, 'x'.repeat(64 * 1024))
  let reserved = 0
  for (const [limit, held] of [[Infinity, 15], [600 * 1024, 4]] as const) {
    reserved = 0
    const gate = new StagedStream(false, bytes => {
      if (reserved + bytes > limit) return false
      reserved += bytes
      return true
    })
    const passed = Array.from({ length: 20 }, () => gate.push(Buffer.from(part)).length)
    t.equal(passed.findIndex(length => length > 0), held)
    t.equal(passed.reduce((sum, length) => sum + length), 20 * part.length)
    t.equal(reserved, 0)
    t.notOk(gate.stage.overflowed)
  }
  t.end()
})

t.test('a client that waits for a held call gets a keep-alive every ten seconds', t => {
  const gate = new StagedStream()
  const push = (text: string) => gate.push(Buffer.from(text)).toString()
  t.equal(push(callChunk(0, 'a')), '')
  gate.clock.advance(9_999)
  t.equal(push(callChunk(0, 'b')), '')
  gate.clock.advance(1)
  t.equal(push(callChunk(0, 'c')), ': keep-alive\n\n')
  t.equal(push(callChunk(0, 'd')), '')
  t.equal(push(FINISH), ['a', 'b', 'c', 'd'].map(part => callChunk(0, part)).join('') + FINISH)
  t.end()
})
