import t from 'tap'
import { TranslationStage } from '../../../src/pipeline/respond/translation-stage.ts'
import { classifyPath } from '../../../src/protocols/classify-path.ts'
import { SseReader } from '../../../src/protocols/events/sse.ts'
import { findTranslator, responseTranslation, translate } from '../../../src/protocols/translate.ts'
import type { Translator } from '../../../src/protocols/translate.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { chatChunks, chatStream } from '../../support/translating-gateway.ts'
import { CAPSULES } from '../../support/capsules.ts'

/** A messages client's stream from a chat upstream. */
function startStage(clock: FakeClock): { take(text: string): string, rest(): string } {
  const { endpoint } = classifyPath('/v1/messages')
  const translator = findTranslator(endpoint, ['chat']) as Translator
  const body = Buffer.from(JSON.stringify({ model: 'm', max_tokens: 9, stream: true, messages: [{ role: 'user', content: 'Hi' }] }))
  const attempt = translate(translator, body, { model: 'm', host: 'up', stream: false, asksForUsage: true, isStrict: false, accepts: {}, capsules: CAPSULES })
  const translation = responseTranslation(attempt, { id: 'r1', model: 'm', startedWall: 0, isEventStream: true })
  const stage = new TranslationStage({ translation, format: endpoint.format, clock, onStreamFault: () => {}, continued: null })
  const reader = new SseReader(stage)
  return {
    take: text => {
      reader.push(Buffer.from(text))
      return stage.take().toString()
    },
    rest: () => stage.rest().toString(),
  }
}

const PING = 'event: ping\ndata: {"type": "ping"}\n\n'

t.test('a client gets pings only while the upstream sends something', async t => {
  const clock = new FakeClock()
  const { take, rest } = startStage(clock)
  t.match(take(chatChunks({ delta: { role: 'assistant', content: 'Hel' } })), 'content_block_delta')
  clock.advance(9_000)
  t.equal(take(': processing\n\n'), '', 'the client got an event less than 10 s ago')
  clock.advance(2_000)
  t.equal(take(': processing\n\n'), PING, 'the upstream sent a comment')
  t.equal(take(': processing\n\n'), '', 'one ping per 10 s')
  clock.advance(60_000)
  t.equal(clock.pending, 0, 'no timer sends pings for a silent upstream')
  t.match(take(chatStream({ delta: { content: 'lo' } }, { delta: {}, finish_reason: 'stop' })) + rest(), 'message_stop')
  clock.advance(60_000)
  t.equal(take(': processing\n\n'), '', 'no ping after the end')
})

t.test('a client also gets pings while the upstream sends an incomplete event', async t => {
  const clock = new FakeClock()
  const { take } = startStage(clock)
  take(chatChunks({ delta: { role: 'assistant', content: 'Hel' } }))
  clock.advance(11_000)
  t.equal(take('data: {"choices": [{"delta": {"content": "'), PING)
})
