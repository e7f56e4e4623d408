import t from 'tap'
import { maskedDiff } from '../../../src/config/text/masked-diff.ts'

const shown = (before: string, after: string) => maskedDiff(before, after)?.map(({ kind, line, text }) => `${kind} ${line} ${text}`.trim())

t.test('the diff shows changed lines with context and line numbers', async t => {
  const before = Array.from({ length: 20 }, (_, n) => `# line ${n + 1}\n`).join('')
  t.same(shown(before, before.replace('# line 10\n', '# a line\n# another\n')), [
    'gap 1', 'same 7 # line 7', 'same 8 # line 8', 'same 9 # line 9', 'removed 10 # line 10', 'added 10 # a line', 'added 11 # another',
    'same 12 # line 11', 'same 13 # line 12', 'same 14 # line 13', 'gap 15',
  ])
  t.same(shown(before, before), ['gap 1'])
})

t.test('a changed secret is shown as a changed line, masked before and after', async t => {
  t.same(shown('keys:\n  - { name: a, key: hunter-hunter-1 }\n', 'keys:\n  - { name: a, key: hunter-hunter-2 }\n'), [
    'same 1 keys:', 'removed 2   - { name: a, key: *** }', 'added 2   - { name: a, key: *** }',
  ])
})

t.test('secrets in text that is not YAML are masked', async t => {
  t.same(shown('keys:\n  - key: hunter-hunter-1\n', 'keys:\n  - key: [hunter-hunter-1\n'), [
    'same 1 keys:', 'removed 2   - key: ***', 'added 2   - key: [***',
  ])
})

t.test('a file that changes completely has no diff; a long diff is cut after 400 lines', async t => {
  const text = (word: string) => Array.from({ length: 3_000 }, (_, n) => `# ${word} ${n}\n`).join('')
  t.equal(maskedDiff(text('a'), text('b')), null)
  t.equal(maskedDiff('', text('b').slice(0, 9_000))?.length, 400, 'a long diff is cut')
})
