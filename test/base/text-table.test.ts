import t from 'tap'
import { formatNumber, table, escapeControlCharacters } from '../../src/base/text-table.ts'

t.test('a column is as wide as its longest cell, and numbers are aligned right', async t => {
  const columns = [
    { title: 'KEY', text: ({ key }: Item) => key },
    { title: 'TOKENS', text: ({ tokens }: Item) => formatNumber(tokens), right: true },
    { title: 'NOTE', text: ({ note }: Item) => note },
  ]
  type Item = { key: string; tokens: number; note: string }
  t.equal(table(columns, [
    { key: 'a', tokens: 1234567, note: 'x' },
    { key: 'team-b', tokens: 5, note: '' },
  ]), [
    'KEY        TOKENS  NOTE\n',
    'a       1,234,567  x\n',
    'team-b          5\n',
  ].join(''))
  t.equal(table(columns, []), 'KEY  TOKENS  NOTE\n')
})

t.test('columns are aligned for names in any script', async t => {
  const columns = [
    { title: 'KEY', text: (key: string) => key },
    { title: 'N', text: (key: string) => key, right: true },
  ]
  t.equal(table(columns, ['日本ー', 'e\u0301te', '🙂', '한', 'ｱ', 'ab']), [
    'KEY          N\n',
    '日本ー  日本ー\n',
    'e\u0301te        e\u0301te\n',
    '🙂          🙂\n',
    '한          한\n',
    'ｱ            ｱ\n',
    'ab          ab\n',
  ].join(''))
})

t.test('control characters and line breaks in a cell are escaped', async t => {
  t.equal(escapeControlCharacters('red \x1b[31m'), 'red \\u{1b}[31m')
  t.equal(escapeControlCharacters('two\r\nlines\u2028'), 'two\\u{d}\\u{a}lines\\u{2028}')
  t.equal(escapeControlCharacters('\x9b2J\u202egnp.exe'), '\\u{9b}2J\\u{202e}gnp.exe')
  t.equal(escapeControlCharacters('modèle-日本-🙂'), 'modèle-日本-🙂')
  const columns = [{ title: 'A', text: (text: string) => text }]
  t.equal(table(columns, ['\x1b[2J\nfake']), 'A\n\\u{1b}[2J\\u{a}fake\n')
})

t.test('digits of numbers are grouped by thousands, and an unknown number is a dash', async t => {
  t.equal(formatNumber(0), '0')
  t.equal(formatNumber(12_345.678_9), '12,345.679')
  t.equal(formatNumber(2n ** 64n), '18,446,744,073,709,551,616')
  t.equal(formatNumber(null), '-')
})
