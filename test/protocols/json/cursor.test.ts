import fc from 'fast-check'
import t from 'tap'
import { JsonCursor, closingQuote } from '../../../src/protocols/json/cursor.ts'

/** Rebuilds a value with the cursor, which reads each object and array to its end. */
function walk(cursor: JsonCursor, text: Buffer): unknown {
  if (cursor.beginObject()) {
    const entries: [string, unknown][] = []
    while (cursor.nextMember()) {
      const key = JSON.parse(`"${text.toString('utf8', cursor.keyStart, cursor.keyEnd)}"`) as string
      entries.push([key, walk(cursor, text)])
    }
    return Object.fromEntries(entries)
  }
  if (cursor.beginArray()) {
    const elements: unknown[] = []
    while (cursor.nextElement()) elements.push(walk(cursor, text))
    return elements
  }
  cursor.skip()
  return cursor.parsed()
}

t.test('a cursor reads any JSON to the same value as JSON.parse', async t => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.constantFrom(0, 1, 2), fc.string(), (value, indent, around) => {
      const text = JSON.stringify(value, null, indent)
      const before = Buffer.from(around)
      const bytes = Buffer.concat([before, Buffer.from(text), Buffer.from('"}] ,')])
      const end = before.length + Buffer.byteLength(text)
      const cursor = new JsonCursor(bytes, before.length, end)
      t.strictSame(walk(cursor, bytes), JSON.parse(text))
      t.equal(cursor.broken, false)
      t.equal(cursor.atEnd(), true)
    }),
    { numRuns: 500 },
  )
})

t.test('skip moves past any value in one step', async t => {
  fc.assert(
    fc.property(fc.jsonValue(), value => {
      const text = ` ${JSON.stringify(value, null, 1)}\r\n`
      const cursor = new JsonCursor(Buffer.from(text))
      t.ok(cursor.skip())
      t.strictSame(cursor.parsed(), JSON.parse(text))
      t.ok(cursor.atEnd())
    }),
    { numRuns: 500 },
  )
})

t.test('a cursor on cut text becomes broken, and its methods return false', async t => {
  const text = Buffer.from('{"a": [1, {"b": "c\\"d"}, null], "e": {"f": [true, "g"]}, "h": "i"}')
  for (let end = 0; end < text.length; end++) {
    const cursor = new JsonCursor(text, 0, end)
    walk(cursor, text)
    t.ok(cursor.broken || end === 0, text.toString('utf8', 0, end))
    t.notOk(
      cursor.nextMember() || cursor.nextElement() || cursor.skip() || cursor.string() || cursor.beginObject(),
    )
    t.notOk(new JsonCursor(text, 0, end).skip(), `skip to ${end}`)
  }
})

t.test('property: a cursor comes to an end on any bytes', async () => {
  const pieces = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"',
    '\\',
    'a',
    '1',
    ' ',
    '"a"',
    '"a":',
    'null',
  )
  fc.assert(
    fc.property(fc.array(pieces), list => {
      const text = Buffer.from(list.join(''))
      const cursor = new JsonCursor(text)
      for (let steps = 0; steps <= text.length * 2; steps++) {
        if (cursor.beginObject() || cursor.beginArray()) continue
        const more = cursor.nextMember() || cursor.nextElement()
        if (!cursor.skip() && !more) return
      }
    }),
    { numRuns: 2000 },
  )
})

t.test('closingQuote finds the end of long strings with any quotes and backslashes', async t => {
  const piece = fc.oneof(
    fc.constantFrom('\\', '"', '\\"', '\n', 'é', '\u{1f600}'),
    fc.string({ minLength: 50, maxLength: 200 }),
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), list => {
      const text = Buffer.from(`${JSON.stringify(list.join(''))}"after"`)
      const end = text.length - '"after"'.length
      t.equal(closingQuote(text, 1, text.length), end - 1)
      t.equal(closingQuote(text, 1, end - 1), -1)
    }),
    { numRuns: 1000 },
  )
})

t.test('parsed returns NaN for a value that is not JSON', async t => {
  const cursor = new JsonCursor(Buffer.from('{"a": nonsense}'))
  t.ok(cursor.skip())
  t.ok(Number.isNaN(cursor.parsed()))
})
