import fc from 'fast-check'
import t from 'tap'
import { SseReader } from '../../../src/protocols/events/sse.ts'
import { chunksOf, chunksOfSize } from './chunks.ts'

/** An event as a value; text is one character a byte, so that offsets agree. */
interface Seen {
  data: string
  name: string
  start: number
  end: number
  terminated: boolean
  oversize: boolean
}

function read(chunks: readonly Buffer[], maxEvent?: number): Seen[] {
  const events: Seen[] = []
  const reader = new SseReader({ event: ({ buf, dataStart, dataEnd, nameStart, nameEnd, ...event }) => {
    const { start, end, terminated, oversize } = event
    const data = buf.toString('latin1', dataStart, dataEnd)
    events.push({ data, name: buf.toString('latin1', nameStart, nameEnd), start, end, terminated, oversize })
  } }, maxEvent === undefined ? {} : { maxEvent })
  for (const chunk of chunks) {
    // A copy that is overwritten afterwards, because the reader must not use old chunks.
    const copy = Buffer.from(chunk)
    reader.push(copy)
    copy.fill(0x0a)
  }
  reader.end()
  return events
}

const readText = (text: string, maxEvent?: number): Seen[] => read([Buffer.from(text)], maxEvent)
const dataOf = (events: readonly Seen[]): string[] => events.map(event => event.data)

/** The algorithm of the standard, applied to the whole stream as a string. */
function reference(bytes: Buffer, maxEvent = Infinity): Seen[] {
  const stream = bytes.toString('latin1')
  const events: Seen[] = []
  let at = stream.startsWith('\xef\xbb\xbf') ? 3 : 0
  let start = at
  let data: string[] = []
  let name = ''
  const dispatch = (end: number, terminated: boolean): void => {
    const place = { start, end, terminated }
    if (end - start > maxEvent) events.push({ data: '', name: '', ...place, oversize: true })
    else if (data.length > 0) events.push({ data: data.join('\n'), name, ...place, oversize: false })
    start = end
    data = []
    name = ''
  }
  while (at < stream.length) {
    const [, line = '', lineEnd = ''] = /^([^\r\n]*)(\r\n|\r|\n|$)/.exec(stream.slice(at)) ?? []
    at += line.length + lineEnd.length
    if (line === '' && lineEnd !== '') {
      dispatch(at, true)
      continue
    }
    const [, field = '', value = ''] = /^([^:]*)(?:: ?([^]*))?$/.exec(line) ?? []
    if (field === 'data') data.push(value)
    if (field === 'event') name = value
  }
  if (start < stream.length) dispatch(stream.length, false)
  return events
}

t.test('events of all vendors are read', async t => {
  const chat = 'data: {"id":"1"}\n\ndata: {"id":"2"}\n\ndata: [DONE]\n\n'
  t.strictSame(dataOf(readText(chat)), ['{"id":"1"}', '{"id":"2"}', '[DONE]'])
  const messages = 'event: message_start\ndata: {"type":"message_start"}\n\n'
    + ': ping\n\nevent: ping\ndata: {"type": "ping"}\n\n'
  t.strictSame(readText(messages).map(({ name, data }) => [name, data]), [
    ['message_start', '{"type":"message_start"}'], ['ping', '{"type": "ping"}']
  ])
  t.strictSame(dataOf(readText('data: {"a":1}\r\n\r\ndata: {"a":2}\r\n\r\n')), ['{"a":1}', '{"a":2}'])
})

t.test('the examples of the SSE standard are read as the standard says', async t => {
  const stocks = readText('data: YHOO\ndata: +2\ndata: 10\n\n')
  t.strictSame(dataOf(stocks), ['YHOO\n+2\n10'])
  const test = ': test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n'
  t.strictSame(dataOf(readText(test)), ['first event', 'second event', ' third event'])
  t.strictSame(dataOf(readText('data\n\ndata\ndata\n\ndata:').filter(event => event.terminated)), ['', '\n'])
  t.strictSame(dataOf(readText('data:test\n\ndata: test\n\n')), ['test', 'test'])
})

t.test('comments and unknown fields are ignored', async t => {
  t.strictSame(dataOf(readText('data2: x\ndat: x\nDATA: x\n data: x\n:data: x\nretry: 1\nid: 2\n\n')), [])
  const names = (text: string): string[] => readText(text).map(event => event.name)
  t.strictSame(names('event: a\nevents: b\nevent:c\ndata: x\n\ndata: y\n\n'), ['c', ''])
  t.strictSame(names('event: a\nevent\ndata: x\n\n'), [''])
  t.strictSame(names('event: lost\n\ndata: x\n\n'), [''])
  t.strictSame(dataOf(readText('data: a: b\n\n')), ['a: b'])
})

t.test('an event inside one chunk is reported without a copy', async t => {
  const chunk = Buffer.from('event: x\ndata: {"a":"é"}\n\nda')
  let calls = 0
  const reader = new SseReader({ event: event => {
    calls++
    t.equal(event.buf, chunk)
    t.equal(event.buf.toString('utf8', event.dataStart, event.dataEnd), '{"a":"é"}')
    t.equal(event.buf.toString('utf8', event.nameStart, event.nameEnd), 'x')
  } })
  reader.push(chunk)
  t.equal(calls, 1)
})

t.test('several data lines are joined, before and after the name', async t => {
  const before = 'event: e\ndata: a\ndata:\ndata: b\n\n'
  const between = 'data: a\r\ndata:\r\nevent: e\r\ndata: b\r\n\r\n'
  for (const text of [before, between]) {
    const bytes = Buffer.from(text)
    for (const events of [read([bytes]), read(chunksOfSize(bytes, 1))]) {
      t.match(events, [{ data: 'a\n\nb', name: 'e', start: 0, end: bytes.length }])
    }
  }
})

t.test('an event is reported as soon as its blank line arrives', async t => {
  const seen: number[] = []
  const reader = new SseReader({ event: event => void seen.push(event.end) })
  const push = (text: string): void => reader.push(Buffer.from(text))
  push('data: 1\n')
  t.strictSame(seen, [])
  push('\n')
  t.strictSame(seen, [9])
  push('data: 2\r\n\r')
  t.strictSame(seen, [9], 'an LF can follow the CR')
  push('\n')
  t.strictSame(seen, [9, 20])
  push('data: 3\r\r')
  push('data: 4\r\rd')
  t.strictSame(seen, [9, 20, 29, 38])
})

t.test('blockStart is the offset of the first incomplete event', async t => {
  const reader = new SseReader({ event: () => {} })
  const after = (text: string): number => {
    reader.push(Buffer.from(text))
    return reader.blockStart
  }
  t.equal(after('data: 1\n'), 0)
  t.equal(after('\n'), 9)
  t.equal(after('data: 2\n\ndata'), 18)
  t.equal(after(': 3\n'), 18)
  t.equal(after('\n\n\n: comment\n\n'), 40)
})

t.test('a last event without a blank line is reported as not terminated', async t => {
  const last = (text: string): unknown =>
    readText(text).map(({ data, end, terminated }) => [data, end, terminated])
  t.strictSame(last('data: x'), [['x', 7, false]])
  t.strictSame(last('data: x\n'), [['x', 8, false]])
  t.strictSame(last('data: x\r'), [['x', 8, false]])
  t.strictSame(last('data: x\ndata: y'), [['x\ny', 15, false]])
  t.strictSame(last('data: x\n\n'), [['x', 9, true]])
  t.strictSame(last('data: x\r\n\r'), [['x', 10, true]])
  t.strictSame(last('data: x\n\n: comment'), [['x', 9, true]])
  t.strictSame(last('data: x\n\ndat'), [['x', 9, true]])
  t.strictSame(last(''), [])
  t.strictSame(last('\n\n\n'), [])
})

t.test('a byte order mark is skipped only at the start, for any chunk boundaries', async t => {
  const bytes = Buffer.from('\ufeffdata: 1\n\n\ufeffdata: 2\n\ndata: 3\n\n')
  for (const cut of [0, 1, 2, 3, 4]) {
    const events = read([bytes.subarray(0, cut), bytes.subarray(cut)])
    t.match(events, [{ data: '1', start: 3, end: 12 }, { data: '3' }], `cut at ${cut}`)
  }
  const almosts = ['\xef', '\xef\xbb', '\xef\xbbdata: x\n\n', '\xefdata: x\n\n', '\xef\xbb\xef\xbb\xbf\ndata']
  for (const almost of almosts) {
    const chunk = Buffer.from(`${almost}\ndata: y\n\n`, 'latin1')
    t.strictSame(read(chunksOfSize(chunk, 1)), reference(chunk))
    t.strictSame(read([chunk]), reference(chunk))
  }
})

t.test('an event above the size limit is skipped, and the next event is read', async t => {
  const long = `event: big\ndata: ${'x'.repeat(100)}\n\n`
  const text = `data: a\n\n${long}data: b\n\n`
  for (const size of [1, 7, 64, 1000]) {
    const chunks = chunksOfSize(Buffer.from(text), size)
    t.match(read(chunks, 64), [
      { data: 'a', oversize: false },
      { data: '', name: '', oversize: true, terminated: true, start: 9, end: 9 + long.length },
      { data: 'b', oversize: false, start: 9 + long.length }
    ], `chunks of ${size}`)
    t.match(read(chunks, long.length), [{ data: 'a' }, { name: 'big', data: 'x'.repeat(100) }, { data: 'b' }])
  }
  const cut = readText(`data: ${'x'.repeat(100)}`, 64)
  t.match(cut, [{ data: '', oversize: true, terminated: false, end: 106 }])
})

t.test('a line of many megabytes is read completely', async t => {
  const piece = Buffer.alloc(64 * 1024, 'aGVsbG8=')
  let seen = 0
  const reader = new SseReader({ event: ({ buf, dataStart, dataEnd }) => {
    seen = dataEnd - dataStart
    t.ok(buf.subarray(dataStart, dataStart + piece.length).equals(piece))
    t.ok(buf.subarray(dataEnd - piece.length, dataEnd).equals(piece))
  } })
  reader.push(Buffer.from('data: '))
  for (let n = 0; n < 160; n++) reader.push(piece)
  reader.push(Buffer.from('\n\n'))
  t.equal(seen, 160 * piece.length)
})

t.test('an endless line uses bounded memory', async t => {
  const piece = Buffer.alloc(64 * 1024, 'x')
  const lines = Buffer.from('data:\n'.repeat(10_000))
  for (const chunk of [piece, lines]) {
    let oversize = 0
    const reader = new SseReader({ event: event => { if (event.oversize) oversize++ } }, { maxEvent: 1024 * 1024 })
    reader.push(Buffer.from('data: '))
    const before = process.memoryUsage().arrayBuffers
    for (let n = 0; n < 500; n++) reader.push(chunk)
    t.ok(process.memoryUsage().arrayBuffers - before < 16 * 1024 * 1024)
    reader.push(Buffer.from('\n\n'))
    t.equal(oversize, 1)
  }
})

const line = fc.oneof(
  fc.constantFrom('data: x', 'data:x', 'data', 'data:', 'data:  two', 'data: {"a":"é😀"}', 'data: [DONE]'),
  fc.constantFrom('event: n', 'event:', 'event', ': ping', ':', 'id: 1', 'dataset: 1', 'dat', 'DATA: x'),
  { weight: 3, arbitrary: fc.constant('') },
  fc.string({ unit: fc.constantFrom('d', 'a', 't', ':', ' ', 'é', '\ufeff', '\0'), maxLength: 8 }))

const stream = fc.tuple(
  fc.constantFrom('', '', '\ufeff'),
  fc.array(fc.tuple(line, fc.constantFrom('\n', '\n', '\r\n', '\r')), { maxLength: 20 }),
  fc.oneof(fc.constant(''), line)
).map(([mark, lines, last]) => Buffer.from(mark + lines.flat().join('') + last))

t.test('property: the events do not depend on the chunk boundaries, with any limit', async t => {
  const cases = stream.chain(bytes => fc.tuple(fc.constant(bytes), chunksOf(bytes)))
  fc.assert(fc.property(cases, fc.constantFrom(undefined, 8, 12, 30), ([bytes, chunks], maxEvent) => {
    const due = JSON.stringify(reference(bytes, maxEvent))
    return JSON.stringify(read([bytes], maxEvent)) === due && JSON.stringify(read(chunks, maxEvent)) === due
  }), { numRuns: 5000 })
  t.pass()
})

t.test('property: LF, CRLF and CR give the same events', async t => {
  const block = fc.array(line, { maxLength: 20 })
  fc.assert(fc.property(block, lines => {
    const [lf, crlf, cr] = ['\n', '\r\n', '\r'].map(end =>
      JSON.stringify(readText(lines.map(text => text + end).join('')).map(({ data, name }) => [name, data])))
    return lf === crlf && lf === cr
  }), { numRuns: 1000 })
  t.pass()
})

t.test('property: removing an event from the bytes removes exactly that event', async t => {
  fc.assert(fc.property(stream, fc.nat(), (bytes, pick) => {
    const events = readText(bytes.toString())
    if (events.length === 0) return true
    const n = pick % events.length
    const { start, end } = events[n]!
    const rest = Buffer.concat([bytes.subarray(0, start), bytes.subarray(end)])
    // Without the first event the stream may start with a byte order mark of the next event.
    if (start === 0 && rest.subarray(0, 3).equals(Buffer.from('\ufeff'))) return true
    return JSON.stringify(dataOf(read([rest]))) === JSON.stringify(dataOf(events.toSpliced(n, 1)))
  }), { numRuns: 2000 })
  t.pass()
})
