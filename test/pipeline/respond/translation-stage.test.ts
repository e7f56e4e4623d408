import t from 'tap'
import type { Endpoint } from '../../../src/protocols/shared/protocol.ts'
import { TranslationStage } from '../../../src/pipeline/respond/translation-stage.ts'
import { classifyPath } from '../../../src/protocols/endpoint.ts'
import { SseReader } from '../../../src/protocols/shared/sse.ts'
import { findTranslator, responseTranslation, translate } from '../../../src/protocols/translate.ts'
import type { Translator } from '../../../src/protocols/translate.ts'
import { FakeClock } from '../../support/fake-clock.ts'

/** A stage between a messages client and a chat upstream; bytes of the upstream give bytes of the client's. */
function stage(clock: FakeClock): { push: (text: string) => string, end: () => string } {
  const endpoint: Endpoint = classifyPath('/v1/messages').endpoint
  const body = Buffer.from(JSON.stringify({ model: 'm', stream: true, max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] }))
  const translator = findTranslator(endpoint, ['chat']) as Translator
  const attempt = translate(translator, body, { model: 'm', host: 'h', stream: true, asksForUsage: true, isStrict: false })
  const translation = responseTranslation(attempt, { id: 'r', model: 'm', startedWall: 0, isEventStream: true })
  const stage = new TranslationStage({ translation, format: endpoint.format, clock, continued: null })
  const reader = new SseReader(stage)
  return {
    push: text => {
      reader.push(Buffer.from(text))
      return stage.take().toString()
    },
    end: () => {
      reader.end()
      return stage.rest().toString()
    },
  }
}

const CHUNK = `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta: { content: 'Hi' }, finish_reason: null }] })}\n\n`

t.test('pings only while the upstream is provably alive: for its comments, 10 s after the last event', async t => {
  const clock = new FakeClock()
  const { push, end } = stage(clock)
  t.match(push(CHUNK), /message_start/)
  clock.advance(9_000)
  t.equal(push(': alive\n\n'), '')
  clock.advance(1_000)
  t.match(push(': alive\n\n'), /^event: ping\n/)
  t.equal(push(': alive\n\n'), '', 'the ping counts as an event')
  clock.advance(60_000)
  t.equal(clock.pending, 0, 'no timer makes pings for an upstream that says nothing')
  t.equal(end(), '')
})
