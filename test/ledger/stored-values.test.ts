import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { StoredValues, allRows, parseAttempts, parseStoredJson } from '../../src/ledger/stored-values.ts'
import type { StoredRow } from '../../src/ledger/stored-values.ts'

const ATTEMPT = { upstream: 'u', model: null, outcome: 'ok', ms: 1 }
const WORDS = { one: 1, two: 2 }

type Read = (values: StoredValues) => unknown
const CASES: readonly (readonly [what: string, stored: StoredRow[string] | undefined, read: Read, expected: unknown, isReadable: boolean])[] = [
  ['text', 'a', v => v.text('c'), 'a', true],
  ['null for a text', null, v => v.text('c'), null, true],
  ['an absent column', undefined, v => v.text('c'), null, true],
  ['a number for a text', 5, v => v.text('c'), null, false],
  ['a large whole number', '-123456789012345678901', v => v.bigint('c'), -123456789012345678901n, true],
  ['a decimal for a whole number', '1.5', v => v.bigint('c'), null, false],
  ['an empty text for a whole number', '', v => v.bigint('c'), null, false],
  ['a number', 1.5, v => v.number('c'), 1.5, true],
  ['the largest safe integer', Number.MAX_SAFE_INTEGER, v => v.number('c'), Number.MAX_SAFE_INTEGER, true],
  ['a number above the largest safe integer', Number.MAX_SAFE_INTEGER + 1, v => v.number('c'), null, false],
  ['a text for a number', '5', v => v.number('c'), null, false],
  ['the last time of a date', 8.64e15, v => v.time('c'), 8.64e15, true],
  ['a time after the last time of a date', 8.64e15 + 1, v => v.time('c'), 0, false],
  ['null for a time', null, v => v.time('c'), 0, false],
  ['a known word', 'two', v => v.word('c', WORDS, 'one'), 'two', true],
  ['an unknown word', 'three', v => v.word('c', WORDS, 'one'), 'one', false],
  ['an inherited name for a word', 'constructor', v => v.word('c', WORDS, 'one'), 'one', false],
  ['null for attempts', null, v => v.attempts('c'), [], true],
  ['an attempt', JSON.stringify([ATTEMPT]), v => v.attempts('c'), [ATTEMPT], true],
  ['an attempt without a result', '[{"upstream":"u","model":null,"ms":1}]', v => v.attempts('c'), [], false],
  ['null for a price', null, v => v.price('c'), null, true],
  ['a price', '{"input":"1.5","tiers":[{"above":9,"price":{"input":"2"}}]}', v => v.price('c'), { input: '1.5', tiers: [{ above: 9, price: { input: '2' } }] }, true],
  ['a price that is a number', '{"input":1.5}', v => v.price('c'), null, false],
  ['a price that is not a decimal', '{"input":"free"}', v => v.price('c'), null, false],
  ['a tier without a bound', '{"tiers":[{"price":{}}]}', v => v.price('c'), null, false],
  ['a tier whose price is not a decimal', '{"tiers":[{"above":9,"price":{"input":"x"}}]}', v => v.price('c'), null, false],
  ['a price that is a list', '[]', v => v.price('c'), null, false],
]

for (const [what, stored, read, expected, isReadable] of CASES) {
  t.test(`a stored value is ${isReadable ? 'readable' : 'unreadable'}: ${what}`, async t => {
    const values = new StoredValues(stored === undefined ? {} : { c: stored })
    t.strictSame(read(values), expected)
    t.strictSame(values.unreadable, isReadable ? [] : ['c'])
  })
}

t.test('an unreadable column is reported once', async t => {
  const values = new StoredValues({ a: 1, b: 'x' })
  values.text('a')
  values.text('a')
  values.number('b')
  t.strictSame(values.unreadable, ['a', 'b'])
})

for (const [what, more, isAttempt] of [
  ['every member', { translated: 't', dropped: ['d'], atMs: 1, status: 200, said: 's', errorText: 'e', inputTokens: 1, outputTokens: 2, costUsd: '0.1' }, true],
  ['a member of a later version', { later: 1 }, true], ['a model', { model: 'm' }, true], ['a model that is a number', { model: 1 }, false],
  ['a status that is text', { status: '200' }, false], ['a dropped field that is not text', { dropped: [1] }, false], ['a cost that is a number', { costUsd: 1 }, false],
] as const) {
  t.test(`an attempt with ${what} is ${isAttempt ? 'valid' : 'invalid'}`, async t => {
    t.equal(parseAttempts(JSON.stringify([{ ...ATTEMPT, ...more }])) !== null, isAttempt)
  })
}

t.test('text that is not JSON gives undefined, not null', async t => {
  t.equal(parseStoredJson('null'), null)
  t.equal(parseStoredJson(null), null)
  t.equal(parseStoredJson('{'), undefined)
  t.equal(parseStoredJson(5), undefined)
  t.equal(parseAttempts('{}'), null)
})

t.test('a number that is too large for JavaScript is rounded, and other rows stay exact', async t => {
  const db = new DatabaseSync(':memory:')
  t.teardown(() => db.close())
  const statement = db.prepare('SELECT value FROM (SELECT 1 AS value UNION ALL SELECT ? UNION ALL SELECT 2)')
  t.strictSame(allRows(statement, 9_007_199_254_740_993n).map(({ value }) => value), [1, 9_007_199_254_740_992, 2])
  t.strictSame(allRows(statement, 5).map(({ value }) => value), [1, 5, 2])
})
