import t from 'tap'
import { ResponseCollector } from '../../../../src/protocols/neutral/translate/collect.ts'

t.test('a response is collected up to 32 MB, in pieces of any size', async t => {
  const part = { type: 'part_start', index: 0, part: { type: 'text' } } as const
  for (const [what, add] of [
    ['text', (collector: ResponseCollector) => { collector.add({ type: 'delta', index: 0, text: 'x'.repeat(64 * 1024) }) }],
    ['parts without text', (collector: ResponseCollector) => { collector.add(part) }],
    ['pictures', (collector: ResponseCollector) => {
      collector.add({ type: 'part_start', index: 0, part: { type: 'image', mediaType: 'image/png', data: 'A'.repeat(64 * 1024) } })
    }],
  ] as const) {
    const collector = new ResponseCollector()
    collector.add(part)
    t.throws(() => { for (let count = 0; count < 70_000; count++) add(collector) }, { code: 'answer_too_large' }, what)
  }
})

t.test('many small deltas are joined to one text', async t => {
  const collector = new ResponseCollector()
  collector.add({ type: 'part_start', index: 0, part: { type: 'text' } })
  for (let count = 0; count < 1000; count++) collector.add({ type: 'delta', index: 0, text: 'ab' })
  t.match(collector.result, { parts: [{ text: 'ab'.repeat(1000) }] })
})
