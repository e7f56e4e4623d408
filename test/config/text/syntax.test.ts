import t from 'tap'
import { parseDocument } from 'yaml'
import { SourceText } from '../../../src/config/text/source-text.ts'
import { syntaxFaults } from '../../../src/config/text/syntax.ts'

/** Line, column and message of each fault. */
function faultsOf(text: string): string[] {
  const source = new SourceText(text)
  return syntaxFaults(source, parseDocument(text, { prettyErrors: false, uniqueKeys: false, schema: 'core' })).map(({ offset, message }) => {
    const { line, column } = source.position(offset)
    return `${line}:${column} ${message}`
  })
}

const CASES: readonly (readonly [what: string, text: string, expected: readonly RegExp[]])[] = [
  ['valid YAML', 'a: 1\nb:\n  - c\n', []],
  ['a tab', 'a:\n\tb: 1\n', [/^2:1 a tab cannot indent YAML; use spaces$/]],
  ['a tab behind a blank line', 'a:\n\n\tb: 1\n', [/^3:1 a tab cannot indent YAML/]],
  ['a line without a colon', 'a: 1\nbcd\nc: 2\n', [/^2:1 not of the form "name: value"/]],
  ['a wrong indentation', 'a:\n    b: 1\n  c: 2\n', [/^3:3 /]],
  ['an open bracket', 'a: [1, 2\nb: 3\n', [/^1:4 the quote or bracket that opens here is not closed$/]],
  ['an open brace', 'a: 1\nb: { c: 2\n', [/^2:4 the quote or bracket that opens here is not closed$/]],
  ['an open quote', 'a: "x\nb: 1\n', [/^1:4 the quote or bracket that opens here is not closed$/]],
  ['two documents', 'a: 1\n---\nb: 2\n', [/the file must hold one document/]],
  ['an escape', 'a: "\\q"\n', [/^1:5 invalid escape in double quotes/]],
  ['a tag', 'a: !env X\n', [/tags \(!name\) are not used here/]],
  ['a reserved character', 'a: @x\n', [/^1:4 a value cannot start with this character; put quotes round the value$/]],
  ['a reference inside of braces', 'a: { b: ${X} }\n', [/inside \{ \} and \[ \] a \$\{\.\.\.\} needs quotes/]],
  ['a directive', '%FOO bar\n---\na: 1\n', [/directives \(%\) are not used here/]],
]

for (const [what, text, expected] of CASES) {
  t.test(`a YAML error says what to change: ${what}`, async t => {
    const found = faultsOf(text)
    t.equal(found.length, expected.length, found.join('\n'))
    t.match(found, expected)
  })
}

t.test('at most one error is reported for each line', async t => {
  const lines = faultsOf('a: "\\q \\z"\nb: "\\q"\n').map(fault => fault.split(' ')[0])
  t.strictSame(lines, ['1:5', '2:5'])
})

t.test('error messages contain no values of the file', async t => {
  for (const [, text] of CASES) t.notMatch(faultsOf(text.replaceAll(/\b[bcdx]\b/g, 'sk-secret')).join('\n'), 'sk-secret')
})
