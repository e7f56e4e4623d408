import t from 'tap'
import { MessagesStreamProtocol } from '../../../src/protocols/messages/continuation.ts'

t.test('an event without a type is written without an event line', async t => {
  const { translate, render } = new MessagesStreamProtocol().createTranslation(() => ({
    inputTokens: 0, cachedInputTokens: 0, cacheWrite5mTokens: 0, cacheWrite1hTokens: 0, outputTokens: 0,
  }))
  t.strictSame(translate({ message: 'x' }, text => text).map(render), ['data: {"message":"x"}\n\n'])
})
