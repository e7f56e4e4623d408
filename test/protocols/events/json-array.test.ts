import fc from 'fast-check'
import t from 'tap'
import { JsonArrayReader } from '../../../src/protocols/events/json-array.ts'
import { chunksOf, chunksOfSize } from './chunks.ts'

interface Seen {
  text: string
  start: number
  end: number
  terminated: boolean
  oversize: boolean
}

interface Outcome {
  elements: Seen[]
  closed: boolean
  malformed: boolean
}

function read(chunks: readonly Buffer[], maxEvent?: number): Outcome {
  const elements: Seen[] = []
  const reader = new JsonArrayReader({ event: ({ buf, dataStart, dataEnd, start, end, terminated, oversize }) => {
    elements.push({ text: buf.toString('utf8', dataStart, dataEnd), start, end, terminated, oversize })
  } }, maxEvent === undefined ? {} : { maxEvent })
  for (const chunk of chunks) {
    // A copy that is overwritten afterwards, because the reader must not use old chunks.
    const copy = Buffer.from(chunk)
    reader.push(copy)
    copy.fill(0x5d)
  }
  reader.end()
  return { elements, closed: reader.closed, malformed: reader.malformed }
}

const readText = (text: string, maxEvent?: number): Outcome => read([Buffer.from(text)], maxEvent)
const texts = ({ elements }: Outcome): string[] => elements.map(element => element.text)

t.test('a stream of the generate protocol is read', async t => {
  const parts = '[ { "text": "a ] } \\" [ {" } ]'
  const first = `{\n  "candidates": [\n    { "content": { "parts": ${parts} } }\n  ]\n}`
  const second = '{\n  "usageMetadata": { "promptTokenCount": 4 }\n}'
  const text = `[${first}\n,\r\n${second}\n]\n`
  const outcome = readText(text)
  t.match(outcome, { closed: true, malformed: false })
  t.strictSame(texts(outcome), [first, second])
  for (const { text: element, start, end } of outcome.elements) t.equal(text.slice(start, end), element)
})

t.test('an element is reported as soon as it is complete, without a copy', async t => {
  const seen: string[] = []
  let buffer: Buffer | null = null
  const reader = new JsonArrayReader({ event: ({ buf, dataStart, dataEnd }) => {
    buffer = buf
    seen.push(buf.toString('utf8', dataStart, dataEnd))
  } })
  const push = (text: string): Buffer => {
    const chunk = Buffer.from(text)
    reader.push(chunk)
    return chunk
  }
  const chunk = push('[{"a":1}')
  t.equal(buffer, chunk)
  t.strictSame(seen, ['{"a":1}'])
  push(',{"a"')
  push(':2}')
  t.strictSame(seen, ['{"a":1}', '{"a":2}'])
  t.equal(reader.closed, false)
  push('\n]')
  t.equal(reader.closed, true)
  push(' \n')
  t.equal(reader.closed, true)
  push(']')
  t.strictSame([reader.closed, reader.malformed], [false, true])
})

t.test('elements may be of any type', async t => {
  const outcome = readText(' [ 1,"a,]\\\\" ,true , [ 1, [] ],null,-1.5e3\n, {} ] ')
  t.strictSame(texts(outcome), ['1', '"a,]\\\\"', 'true', '[ 1, [] ]', 'null', '-1.5e3', '{}'])
  t.match(outcome, { closed: true, malformed: false })
  t.match(readText('[]'), { elements: { length: 0 }, closed: true })
  t.match(readText(' [ \n] '), { elements: { length: 0 }, closed: true })
})

t.test('a last incomplete element is reported as not terminated', async t => {
  t.match(readText('[{"a":1},{"b":'), {
    elements: [
      { text: '{"a":1}', terminated: true },
      { text: '{"b":', start: 9, end: 14, terminated: false }
    ],
    closed: false, malformed: false
  })
  t.match(readText('["a\\'), { elements: [{ text: '"a\\', terminated: false }], closed: false })
  t.match(readText('[12'), { elements: [{ text: '12', terminated: false }], closed: false })
  for (const text of ['', ' ', '[', '[ ', '[1,', '[1 ']) t.equal(readText(text).closed, false, text)
  t.strictSame(texts(readText('[{},')), ['{}'])
})

t.test('text that is not one array is malformed, and reading stops', async t => {
  const texts = [
    '{"error":{}}', 'x', '"[1]"', '[,1]', '[1,,2]', '[1,]', '[{} {}]', '[}', '[]]', '[] []', '\ufeff[1]'
  ]
  for (const text of texts) {
    t.match(readText(text), { malformed: true, closed: false }, JSON.stringify(text))
  }
  t.match(readText('[{"a":1}}{"b":2}]').elements, [{ text: '{"a":1}' }])
})

t.test('an element above the size limit is skipped, and the next element is read', async t => {
  const long = `{"a":"${'x'.repeat(100)}"}`
  const bytes = Buffer.from(`[{"a":1},${long},{"a":2}]`)
  for (const size of [1, 7, 64, 1000]) {
    const chunks = chunksOfSize(bytes, size)
    t.match(read(chunks, 64), {
      elements: [
        { text: '{"a":1}', oversize: false }, { text: '', oversize: true, start: 9, end: 9 + long.length },
        { text: '{"a":2}', oversize: false }
      ],
      closed: true
    }, `chunks of ${size}`)
    t.strictSame(texts(read(chunks, long.length)), ['{"a":1}', long, '{"a":2}'])
  }
})

t.test('an endless element uses bounded memory', async t => {
  const piece = Buffer.alloc(64 * 1024, 'x')
  let oversize = 0
  const count = ({ oversize: over }: { oversize: boolean }): void => { if (over) oversize++ }
  const reader = new JsonArrayReader({ event: count }, { maxEvent: 1024 * 1024 })
  reader.push(Buffer.from('[{"a":"'))
  const before = process.memoryUsage().arrayBuffers
  for (let n = 0; n < 1000; n++) reader.push(piece)
  t.ok(process.memoryUsage().arrayBuffers - before < 16 * 1024 * 1024)
  reader.push(Buffer.from('"}]'))
  t.equal(oversize, 1)
  t.equal(reader.closed, true)
})

const space = fc.constantFrom('', '', ' ', '\n', '\r\n', '\t ')
const compact = fc.json({ maxDepth: 3 })
const element = fc.oneof(compact, compact.map(text => JSON.stringify(JSON.parse(text), null, 2)))
const array = fc.tuple(space, fc.array(fc.tuple(space, element, space), { maxLength: 6 }), space)
  .map(([before, elements, after]) => {
    const inside = elements.map(parts => parts.join('')).join(',')
    return { text: `${before}[${inside}]${after}`, due: elements.map(parts => parts[1]) }
  })

t.test('property: the elements do not depend on the chunk boundaries', async t => {
  const cases = array.chain(({ text, due }) =>
    fc.tuple(fc.constant(due), fc.constant(Buffer.from(text)), chunksOf(Buffer.from(text))))
  fc.assert(fc.property(cases, ([due, bytes, chunks]) => {
    const outcome = read(chunks)
    return outcome.closed && JSON.stringify(texts(outcome)) === JSON.stringify(due)
      && outcome.elements.every(({ text, start, end }) => bytes.toString('utf8', start, end) === text)
  }), { numRuns: 2000 })
  t.pass()
})

t.test('property: the result does not depend on the chunk boundaries, for any bytes and limit', async t => {
  const piece = fc.constantFrom('[', ']', '{', '}', ',', '"', '\\', ' ', '1', 'true', '"a":', '{"a":1}', 'é')
  const cases = fc.array(piece, { maxLength: 25 }).map(all => Buffer.from(`[${all.join('')}`))
    .chain(bytes => fc.tuple(fc.constant(bytes), chunksOf(bytes)))
  fc.assert(fc.property(cases, fc.constantFrom(undefined, 3, 8), ([bytes, chunks], maxEvent) =>
    JSON.stringify(read(chunks, maxEvent)) === JSON.stringify(read([bytes], maxEvent))), { numRuns: 3000 })
  t.pass()
})
