import fc from 'fast-check'
import t from 'tap'
import { SourceText, overlapping } from '../../../src/config/text/source-text.ts'

t.test('lines and columns start at 1', async t => {
  const source = new SourceText('ab\n\ncd\r\nef')
  t.strictSame(source.position(0), { line: 1, column: 1 })
  t.strictSame(source.position(2), { line: 1, column: 3 })
  t.strictSame(source.position(3), { line: 2, column: 1 })
  t.strictSame(source.position(5), { line: 3, column: 2 })
  t.strictSame(source.position(10), { line: 4, column: 3 }, 'the end of the text has a position')
  t.strictSame([1, 2, 3, 4].map(line => source.line(line)), ['ab', '', 'cd', 'ef'])
})

t.test('property: the position of an offset leads back to the same offset', async () => {
  fc.assert(fc.property(fc.string({ unit: fc.constantFrom('a', '\n', '\r') }), fc.nat(), (text, at) => {
    const offset = at % (text.length + 1)
    const source = new SourceText(text)
    const { line, column } = source.position(offset)
    return source.lineRange(line).start + column - 1 === offset
  }))
})

t.test('the caret is below its character', async t => {
  t.equal(new SourceText('a: b').excerpt(3, []), '    1 | a: b\n      |    ^')
  t.equal(new SourceText('a: b').excerpt(4, []), '    1 | a: b\n      |     ^', 'the caret can be after the last character')
  t.equal(new SourceText('\ta: b').excerpt(1, []), '    1 | \ta: b\n      | \t^', 'tabs before the caret are kept')
  t.equal(new SourceText('').excerpt(0, []), '    1 | \n      | ^')
})

t.test('a long line is cut around the caret', async t => {
  const source = new SourceText(`${'a'.repeat(500)}!${'b'.repeat(500)}`)
  const [line = '', caret = ''] = source.excerpt(500, []).split('\n')
  t.ok(line.length < 120)
  t.equal(line[caret.indexOf('^')], '!')
  t.match(line, /… *|a+!b+…$/)
  const [first = '', at = ''] = source.excerpt(2, []).split('\n')
  t.equal(at.indexOf('^'), '    1 | '.length + 2)
  t.notMatch(first, /\| …/)
})

t.test('secrets are masked; names of variables are shown', async t => {
  const shown = (text: string, secret: string, caretAt: string): string => {
    const start = text.indexOf(secret)
    const source = new SourceText(text)
    return source.excerpt(text.indexOf(caretAt), [{ start, end: start + secret.length }])
  }
  t.equal(shown('key: abc # x', 'abc', 'abc'), '    1 | key: *** # x\n      |      ^')
  t.equal(shown('key: abc # x', 'abc', '#'), '    1 | key: *** # x\n      |          ^')
  t.equal(shown('key: abc # x', 'abc', 'key'), '    1 | key: *** # x\n      | ^')
  t.equal(shown('key: "abc"', '"abc"', 'abc'), '    1 | key: "***"\n      |       ^')
  t.equal(shown('key: ab${X}cd', 'ab${X}cd', '${X}'), '    1 | key: ***${X}***\n      |         ^')
  t.equal(shown('key: ${X:-abc}', '${X:-abc}', '${X'), '    1 | key: ${X:-***}\n      |      ^')
  t.equal(shown('key: |\n  abc\n  def\n', 'abc\n  def', 'abc'), '    2 |   ***\n      |   ^')
})

t.test('property: no character of a secret is visible, wherever the line is cut', async () => {
  const part = fc.string({ unit: fc.constantFrom('x', ' ', '"', '\n'), maxLength: 80 })
  // No letters, because letters between ${ and } are the name of a variable, which is shown.
  const sign = fc.constantFrom('§', '\n', '"', '$', '{', '}')
  const secret = fc.string({ unit: sign, minLength: 1, maxLength: 80 })
  fc.assert(fc.property(part, secret, part, fc.nat(), (before, secret, after, at) => {
    const text = before + secret + after
    const ranges = [{ start: before.length, end: before.length + secret.length }]
    return !new SourceText(text).excerpt(at % (text.length + 1), ranges).includes('§')
  }))
})

t.test('control characters are replaced', async t => {
  const source = new SourceText('a\u001b[31m\u009b\u2028b')
  t.equal(source.excerpt(0, []), '    1 | a\ufffd[31m\ufffd\ufffdb\n      | ^')
})

t.test('the ranges that overlap an interval are found in logarithmic time', async t => {
  const ranges = Array.from({ length: 10_000 }, (_, n) => ({ start: n * 10, end: n * 10 + 5 }))
  let looks = 0
  const watched = new Proxy(ranges, {
    get: (target, name, receiver) => {
      looks++
      return Reflect.get(target, name, receiver) as unknown
    },
  })
  const stretches = [[0, 1], [4, 11], [5, 10], [99_990, 99_991], [99_995, 100_000], [50_003, 50_024]]
  for (const [start, end] of stretches) {
    const stretch = { start: start!, end: end! }
    const expected = ranges.filter(range => range.start < stretch.end && range.end > stretch.start)
    t.strictSame(overlapping(watched, stretch), expected, `${start} to ${end}`)
  }
  t.ok(looks < 500, `${looks} looks`)
})
