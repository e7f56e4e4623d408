import fc from 'fast-check'
import t from 'tap'
import { UsageChunkFilter } from '../../../src/protocols/chat/usage-chunk-filter.ts'
import { SseReader } from '../../../src/protocols/events/sse.ts'
import { chat } from '../../pricing/recordings.ts'
import { chunksOf, chunksOfSize } from '../events/chunks.ts'

const USAGE = '{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}'
const HIDDEN = `data: {"id":"c1","object":"chat.completion.chunk","choices":[],"usage":${USAGE}}\n\n`
const CONTENT = 'data: {"id":"c1","object":"chat.completion.chunk",'
  + '"choices":[{"index":0,"delta":{"content":"Hi"}}],"usage":null}\n\n'
const DONE = 'data: [DONE]\n\n'

/** A filter, and the reader that passes events to the filter. */
class Filter {
  readonly #reader: SseReader = new SseReader({ event: event => void this.#filter.event(event) })
  readonly #filter = new UsageChunkFilter(this.#reader)

  push(chunk: Buffer): Buffer {
    this.#reader.push(chunk)
    return this.#filter.take(chunk)
  }

  end(): Buffer {
    this.#reader.end()
    return this.#filter.rest()
  }

  get holding(): boolean {
    return this.#filter.holding
  }
}

function filter(chunks: readonly (Buffer | string)[]): string {
  const filter = new Filter()
  const out = chunks.map(chunk => {
    const copy = Buffer.from(chunk as string)
    const passed = Buffer.from(filter.push(copy))
    copy.fill(0x22)
    return passed
  })
  return Buffer.concat([...out, filter.end()]).toString()
}

t.test('only the usage chunk is removed, for any chunk boundaries', async t => {
  const events = chat.events.filter((_, n) => n !== chat.events.length - 2)
  const bytes = Buffer.from(chat.events.join(''))
  for (const ends of ['\n', '\r\n', '\r']) {
    const wire = Buffer.from(bytes.toString().replaceAll('\n', ends))
    const expected = events.join('').replaceAll('\n', ends)
    t.equal(filter([wire]), expected)
    for (const size of [1, 2, 3, 5, 17, 64, 300]) t.equal(filter(chunksOfSize(wire, size)), expected)
    fc.assert(
      fc.property(chunksOf(wire), chunks => void t.equal(filter(chunks), expected)),
      { numRuns: 50 },
    )
  }
})

t.test('a usage chunk is removed in any order of members and spacing', async t => {
  const forms = [
    `data: {"choices": [ ], "usage": ${USAGE}}\n\n`,
    `data:{"usage":${USAGE},"choices":[]}\n\n`,
    `data: {"usage":${USAGE},"x":{"choices":[1]},"choices":[],"y":"choices"}\n\n`,
    `id: 7\ndata: {"choices":[],"usage":${USAGE}}\n\n`,
    `event: chunk\ndata: {"choices":[],"usage":${USAGE}}\n\n`,
    `data: {"choices":[],\ndata: "usage":${USAGE}}\n\n`,
  ]
  for (const form of forms) {
    const wire = Buffer.from(CONTENT + form + DONE)
    for (const size of [1, 4, 1000]) t.equal(filter(chunksOfSize(wire, size)), CONTENT + DONE, form)
  }
})

t.test('chunks that only resemble a usage chunk stay', async t => {
  const shown = [
    // Azure's first chunk has no choices either.
    'data: {"choices":[],"prompt_filter_results":[{"prompt_index":0}]}\n\n',
    'data: {"choices":[],"usage":null}\n\n',
    'data: {"choices":[],"usage":[]}\n\n',
    // usage and choices at once, as some vendors finish
    `data: {"choices":[{"delta":{},"finish_reason":"stop"}],"usage":${USAGE}}\n\n`,
    `data: {"usage":${USAGE}}\n\n`,
    `data: {"choices":{},"usage":${USAGE}}\n\n`,
    `data: {"choices":[{"delta":{"content":"{\\"choices\\":[],\\"usage\\":{}}"}}]}\n\n`,
    `data: {"x":{"choices":[],"usage":${USAGE}}}\n\n`,
    `data: {"choices":[],"usage":${USAGE}\n\n`,
    `: {"choices":[],"usage":${USAGE}}\n\n`,
    `event: x\n\n`,
    '\n',
    '\n\n',
    'data\n\n',
    `data: {"error":{"message":"no"}}\n\n`,
    `data: {"choices":[],"usage":${USAGE.replace('5', '5'.repeat(20_000))}}\n\n`,
  ]
  for (const event of shown) {
    const wire = CONTENT + event + DONE
    for (const size of [1, 3, 1000, 100_000])
      t.equal(filter(chunksOfSize(Buffer.from(wire), size)), wire, event.slice(0, 80))
  }
})

t.test('a chunk of complete events passes without a copy', async t => {
  const filter = new Filter()
  for (const text of [CONTENT, CONTENT + CONTENT, ': ping\n\n', DONE]) {
    const chunk = Buffer.from(text)
    t.equal(filter.push(chunk), chunk, text)
  }
})

t.test('bytes that cannot be a usage chunk are not held back', async t => {
  const passed = (text: string) => new Filter().push(Buffer.from(text)).toString()
  const now = [
    CONTENT,
    `${CONTENT}data: {"id":"c1","choices":[{`,
    'data: {"choices":[1',
    'data: [D',
    'data: {"usage":null',
    ': ping\n',
    ': ping\r\n',
    'data: x',
  ]
  for (const text of now) t.equal(passed(text), text, text)
  const later: [string, string][] = [
    [`${CONTENT}d`, CONTENT],
    [`${CONTENT}data: {"id":"c1","choices":[`, CONTENT],
    ['data: {"choices":[]', ''],
    ['data: {"choices":[],"usage":{', ''],
    [HIDDEN.slice(0, -1), ''],
    [': ping\ndata: {"choices":[', ': ping\n'],
    [`data: {"usage":${USAGE}`, ''],
    ['data: ', ''],
    ['id: 5\ndata: {', ''],
  ]
  for (const [text, expected] of later) t.equal(passed(text), expected, text)
})

t.test('holding is true while bytes are held back', async t => {
  const filter = new Filter()
  t.equal(filter.holding, false)
  filter.push(Buffer.from(`${CONTENT}data: {"id"`))
  t.equal(filter.holding, true)
  filter.push(Buffer.from(':"c1","choices":[{'))
  t.equal(filter.holding, false)
})

t.test('after the first part of an event has passed, the rest passes at once', async t => {
  const filter = new Filter()
  t.equal(filter.push(Buffer.from('data: {"choices":[{"delta":{"con')).length, 32)
  t.equal(filter.push(Buffer.from('tent":"x')).toString(), 'tent":"x')
  t.equal(filter.push(Buffer.from('"}}],"usage":{}}\n')).toString(), '"}}],"usage":{}}\n')
  t.equal(filter.push(Buffer.from(`\n${HIDDEN}`)).toString(), '\n')
})

t.test('an event that has passed in part is not removed', async t => {
  const odd = `data: \ndata: {"choices":[],"usage":${USAGE}}\n\n`
  t.equal(filter([odd]), '')
  t.equal(filter([odd.slice(0, 30), odd.slice(30)]), odd)
})

t.test('at the end of the stream held bytes are released, except a usage chunk', async t => {
  t.equal(filter([CONTENT, 'data: {"choices":[]']), `${CONTENT}data: {"choices":[]`)
  t.equal(filter([CONTENT, HIDDEN.trimEnd()]), CONTENT)
  t.equal(filter([]), '')
})

t.test('the filter holds a bounded number of bytes', async t => {
  const filter = new Filter()
  let passed = 0
  filter.push(Buffer.from('data: {"choices":[],"usage":{"x":"'))
  for (let i = 0; i < 40; i++) passed += filter.push(Buffer.alloc(1000, 'y')).length
  t.ok(passed > 39_000, `${passed} bytes`)
})
