import fc from 'fast-check'
import t from 'tap'
import { planOutput, reasoningOf, textOf, reasoningWords, words } from '../../src/simulator/plan.ts'

const ASKED = { limit: null, reasons: false, prefill: null }

t.test('a response consists of the words w1, w2 and so on', async t => {
  t.equal(textOf(planOutput({ tokens: 4 }, ASKED)), 'w1 w2 w3 w4')
  t.equal(planOutput({}, ASKED).words, 16)
})

t.test('a response continues after the last word of the prefill', async t => {
  const say = (prefill: string) => textOf(planOutput({ tokens: 5 }, { ...ASKED, prefill }))
  t.equal(say('w1 w2 w3'), ' w4 w5')
  t.equal(say('w1 w2 w3 '), 'w4 w5')
  t.equal(say('w1 w2\n\n'), 'w3 w4 w5')
  t.equal(say('w5'), '')
  t.equal(say('w9'), '')
  t.equal(say('Sure:'), ' w1 w2 w3 w4 w5')
  t.equal(say('raw1'), ' w1 w2 w3 w4 w5')
})

t.test('textOf returns the joined words', async t => {
  fc.assert(fc.property(
    fc.nat(2_500), fc.nat(3_000), fc.boolean(), fc.constantFrom(0, 0, 7), (from, count, spaced, chunk) => {
      const prefill = from === 0 ? '' : `w${from}${spaced ? ' ' : ''}`
      const plan = planOutput({ tokens: from + count, chunk }, { ...ASKED, prefill })
      return textOf(plan) === [...words(plan)].join('')
    },
  ))
  const plan = planOutput({ reasoning: 2_001 }, ASKED)
  t.equal(reasoningOf(plan), [...reasoningWords(plan)].join(''))
})

t.test('a text that is longer than the longest string is refused', async t => {
  const plan = planOutput({ tokens: 10_000_000, chunk: 64 * 1024 * 1024 }, ASKED)
  t.throws(() => textOf(plan), RangeError)
})

t.test('the token limit counts reasoning first, and then words', async t => {
  t.match(planOutput({ reasoning: 4 }, { ...ASKED, limit: 6 }), { reasoning: 4, words: 2, clipped: true })
  t.match(planOutput({ reasoning: 9 }, { ...ASKED, limit: 6 }), { reasoning: 6, words: 0, clipped: true })
  t.match(planOutput({}, { ...ASKED, limit: 16 }), { words: 16, clipped: false })
})

t.test('a reasoning request has eight words of reasoning, unless a behaviour sets another number', async t => {
  t.equal(planOutput({}, { ...ASKED, reasons: true }).reasoning, 8)
  t.equal(planOutput({ reasoning: 0 }, { ...ASKED, reasons: true }).reasoning, 0)
  t.equal(reasoningOf(planOutput({ reasoning: 3 }, ASKED)), 'r1 r2 r3')
})

t.test('chunk sets the length of each word in bytes; huge makes one word of the given size', async t => {
  t.same([...words(planOutput({ tokens: 3, chunk: 6 }, ASKED))], ['w1....', ' w2...', ' w3...'])
  const huge = planOutput({ huge: 1000 }, ASKED)
  t.equal(textOf(huge).length, 1000)
  t.equal(huge.tokens, 250)
})

t.test('a cut response and its continuation together equal the complete response', async t => {
  fc.assert(
    fc.property(fc.nat(40), fc.nat(40), fc.nat(8), (tokens, cut, chunk) => {
      const behaviour = { tokens, chunk }
      const full = [...words(planOutput(behaviour, ASKED))]
      const head = full.slice(0, cut).join('')
      const rest = textOf(planOutput(behaviour, { ...ASKED, prefill: head }))
      return head + rest === full.join('')
    }),
  )
  t.pass('held')
})
