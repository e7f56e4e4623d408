import fc from 'fast-check'
import t from 'tap'
import { tokens } from '../../../src/console/web/src/pages/configuration/tokens.ts'

t.test('a YAML line is split into key, value and comment', async t => {
  const kinds = (line: string) => tokens(line)
    .filter(({ text }) => text.trim() !== '').map(({ kind, text }) => `${kind} ${text.trim()}`)
  t.strictSame(kinds('  listen: 127.0.0.1:8080   # here'),
    ['key listen:', 'value 127.0.0.1:8080', 'comment # here'])
  t.strictSame(kinds('# all of it'), ['comment # all of it'])
  t.strictSame(kinds('  - path: "/a#b"'), ['mark -', 'key path:', 'value "/a#b"'])
  t.strictSame(kinds('- gpt-*'), ['mark -', 'value gpt-*'])
  t.strictSame(kinds("'gpt-4*': { input: 1 }"), ["key 'gpt-4*':", 'value { input: 1 }'])
})

t.test('the tokens of a line join to the same line', async t => {
  fc.assert(fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[ #:"'a-]*$/)), text => {
    const line = text.replaceAll(/[\r\n\u2028\u2029]/g, '')
    t.equal(tokens(line).map(token => token.text).join(''), line)
  }))
})
