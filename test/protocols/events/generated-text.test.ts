import fc from 'fast-check'
import t from 'tap'
import { GeneratedText } from '../../../src/protocols/events/generated-text.ts'
import type { TextKind } from '../../../src/protocols/events/generated-text.ts'

function textOf(kept: GeneratedText) {
  return kept.generated().runs.map(({ kind, escaped, bytes }) => ({
    kind,
    escaped,
    text: Buffer.from(bytes).toString(),
  }))
}

function append(kept: GeneratedText, kind: TextKind, index: number, text: string, escaped = true): void {
  const bytes = Buffer.from(`<${text}>`)
  kept.append(kind, index, escaped, bytes, 1, bytes.length - 1)
}

t.test('interleaved texts of different kinds and indexes are joined separately', async t => {
  const kept = new GeneratedText(10_000)
  append(kept, 'reasoning', 0, 'Let me ')
  append(kept, 'reasoning', 0, 'think.')
  append(kept, 'content', 0, 'He')
  append(kept, 'content', 1, 'Gu')
  append(kept, 'content', 0, 'llo')
  append(kept, 'content', 1, 'ten Tag')
  append(kept, 'tool', 0, '{"a":1}', false)
  append(kept, 'tool', 0, '{\\"b\\"')
  t.strictSame(textOf(kept), [
    { kind: 'reasoning', escaped: true, text: 'Let me think.' },
    { kind: 'content', escaped: true, text: 'Hello' },
    { kind: 'content', escaped: true, text: 'Guten Tag' },
    { kind: 'tool', escaped: false, text: '{"a":1}' },
    { kind: 'tool', escaped: true, text: '{\\"b\\"' },
  ])
  t.strictSame(kept.generatedBytes, { content: 14, reasoning: 13, tool: 13 })
  t.strictSame(kept.generated().keptBytes, kept.generatedBytes)
})

t.test('property: texts within the limit are kept completely', async t => {
  const piece = fc.record({
    kind: fc.constantFrom<TextKind>('content', 'reasoning', 'tool'),
    index: fc.nat(3),
    text: fc.string(),
  })
  fc.assert(
    fc.property(fc.array(piece), pieces => {
      const kept = new GeneratedText(1_000_000)
      const expected = new Map<string, string>()
      for (const { kind, index, text } of pieces) {
        append(kept, kind, index, text)
        if (text !== '') expected.set(`${kind} ${index}`, (expected.get(`${kind} ${index}`) ?? '') + text)
      }
      t.strictSame(
        textOf(kept).map(run => run.text),
        [...expected.values()],
      )
    }),
  )
})

t.test('kept text is cut at the limit between characters and escapes, and later text is still counted', async t => {
  for (const [text, whole] of [
    ['abcdefghij', 'abcdef'],
    ['äöüß', 'äöü'],
    ['xäöüß', 'xäö'],
    ['abcd\\u00e4x', 'abcd'],
    ['abcde\\\\\\\\', 'abcde'],
    ['x日本語', 'x日'],
  ] as const) {
    const kept = new GeneratedText(8 + 6)
    append(kept, 'content', 0, text)
    append(kept, 'content', 0, 'more')
    append(kept, 'tool', 0, 'other')
    t.strictSame(textOf(kept), [{ kind: 'content', escaped: true, text: whole }], text)
    t.strictSame(kept.generatedBytes, { content: Buffer.byteLength(text) + 4, reasoning: 0, tool: 5 })
    t.equal(kept.generated().keptBytes.content, Buffer.byteLength(whole))
  }
})

t.test('kept text never exceeds its limit', async t => {
  const kept = new GeneratedText(1000)
  for (let i = 0; i < 10_000; i++) append(kept, 'content', i % 7, 'text')
  const bytes = kept.generated().runs.reduce((sum, run) => sum + run.bytes.length, 0)
  t.ok(bytes <= 1000 && bytes > 300, `${bytes} bytes`)
  t.equal(kept.generatedBytes.content, 40_000)
})

t.test('the number of kept texts is limited, whatever indexes an upstream sends', async t => {
  const kept = new GeneratedText(1_000_000)
  for (let i = 0; i < 5000; i++) append(kept, 'content', i * 1000, 'x')
  t.ok(kept.generated().runs.length <= 1026)
})
