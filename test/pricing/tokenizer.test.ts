import { countTokens } from 'gpt-tokenizer/encoding/o200k_base'
import t from 'tap'
import { tokenCount } from '../../src/pricing/tokenizer.ts'
import { TRAPS } from './recordings.ts'

const count = tokenCount()

t.test('countTokens returns the token count of the vocabulary', async t => {
  t.equal(count(''), 0)
  // OpenAI's tokenizer page for GPT-4o.
  t.equal(count('Hello world'), 2)
  t.equal(count('tiktoken is great!'), 6)
  for (const text of TRAPS) t.equal(count(text), countTokens(text, { disallowedSpecial: new Set() }))
})

t.test('control tokens in text count as text', async t => {
  t.ok(count('<|endoftext|>') > 1)
})

t.test('a long run of one kind of character is counted in pieces, in linear time', async t => {
  // 8 letters of `a` are a token of the vocabulary.
  t.equal(count('a'.repeat(1_000_000)), 125_000)
  for (const run of [
    'ab1'.repeat(300_000),
    'aB'.repeat(300_000),
    '你'.repeat(200_000),
    ' '.repeat(500_000),
    '=-'.repeat(300_000),
    '\n'.repeat(500_000),
  ]) {
    t.ok(count(run) > 0)
  }
})

t.test('counting in pieces adds at most one token for each piece', async t => {
  const run = 'x'.repeat(2000)
  const whole = countTokens(run)
  t.ok(count(run) >= whole && count(run) <= whole + 8, `${count(run)} for ${whole}`)
})
