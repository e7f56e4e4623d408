import t from 'tap'
import { bodyBetween, dataOf, sse, streamBetween } from '../../../support/translation.ts'

const chunk = (delta: object, finish: string | null = null) => ({ id: 'c', model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })
const textOf = (stream: string): string[] => dataOf(stream).flatMap(({ delta }) => {
  const { text } = (delta ?? {}) as { text?: string }
  return text === undefined || text === '' ? [] : [text]
})

t.test('a character that is split over two deltas is joined', async t => {
  const stream = sse(chunk({ content: 'a\ud83d' }), chunk({ content: '\ude00b' }), chunk({}, 'stop'), '[DONE]')
  t.strictSame(textOf(streamBetween('messages', 'chat', [stream])), ['a', '😀b'])
})

t.test('an unpaired surrogate is replaced, or left out at the end of the text', async t => {
  const stream = sse(chunk({ content: '\ude00a\ud83d' }), chunk({ content: 'b\ud83d' }), chunk({}, 'stop'), '[DONE]')
  t.strictSame(textOf(streamBetween('messages', 'chat', [stream])), ['\ufffda', '\ufffdb'])
})

t.test('names and errors contain no unpaired surrogate', async t => {
  const call = { id: 't\ud83d', type: 'function', function: { name: 'n\ud83d', arguments: '{}' } }
  const body = { id: 'c\ud83d', model: 'm\ud83d', choices: [{ index: 0, finish_reason: 'tool_calls', message: { content: 'a\ud83d', tool_calls: [call] } }] }
  for (const to of ['messages', 'responses', 'generate']) {
    t.notMatch(JSON.stringify(bodyBetween(to, 'chat', body)), /\\ud83d/i, to)
    t.notMatch(JSON.stringify(bodyBetween(to, 'chat', { error: { message: 'x\ud83d', code: 'c\ud83d' } })), /\\ud83d/i, to)
  }
})
