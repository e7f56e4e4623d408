import fc from 'fast-check'
import t from 'tap'
import { TranslationStage } from '../../../src/pipeline/respond/translation-stage.ts'
import { classifyPath } from '../../../src/protocols/classify-path.ts'
import { createStreamMeter } from '../../../src/protocols/endpoint/create-stream-meter.ts'
import { findTranslator, responseTranslation, translate } from '../../../src/protocols/translate.ts'
import type { Translator } from '../../../src/protocols/translate.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { SHORT, STREAMS, longContent } from '../../support/upstream-streams.ts'
import { CAPSULES } from '../../support/capsules.ts'

/*
 * The client gets the same bytes, however the network splits the stream of the upstream.
 */

const MESSAGES = [{ role: 'user', content: 'Hi' }]
const CLIENTS = {
  chat: ['/v1/chat/completions', { model: 'm', stream: true, stream_options: { include_usage: true }, messages: MESSAGES }],
  responses: ['/v1/responses', { model: 'm', stream: true, input: 'Hi' }],
  messages: ['/v1/messages', { model: 'm', stream: true, max_tokens: 9, messages: MESSAGES }],
  generate: ['/v1beta/models/m:streamGenerateContent', { contents: [{ parts: [{ text: 'Hi' }] }] }],
} as const

/** Translates streams of an upstream for a client, through the reader and the stage of the gateway. */
function translatorOf(from: keyof typeof CLIENTS, to: string): (chunks: readonly Buffer[]) => string {
  const [path, body] = CLIENTS[from]
  const { endpoint } = classifyPath(path)
  const translator = findTranslator(endpoint, [to]) as Translator
  const attempt = translate(translator, Buffer.from(JSON.stringify(body)), { model: 'm', host: 'up', stream: true, asksForUsage: true, isStrict: false, accepts: {}, capsules: CAPSULES })
  const translation = responseTranslation(attempt, { id: 'r1', model: 'm', startedWall: 0, isEventStream: true })
  return chunks => {
    const onStreamFault = (error: Error): void => {
      throw error
    }
    const stage = new TranslationStage({ translation, format: endpoint.format, clock: new FakeClock(), onStreamFault, continued: null })
    const reader = createStreamMeter(attempt.endpoint, { contentType: 'text/event-stream' }).createReader(stage)
    const out: Buffer[] = []
    for (const chunk of chunks) {
      reader.push(chunk)
      out.push(stage.take())
    }
    reader.end()
    return Buffer.concat([...out, stage.rest()]).toString()
  }
}

/** Line ends of different servers. */
const LINE_ENDS = { LF: (stream: string) => stream, CRLF: (stream: string) => stream.replaceAll('\n', '\r\n') }

for (const from of Object.keys(CLIENTS) as (keyof typeof CLIENTS)[]) {
  for (const [to, streamOf] of Object.entries(STREAMS)) {
    if (from === to) continue
    const run = translatorOf(from, to)
    const expected = run([Buffer.from(streamOf(SHORT))])

    t.test(`${from} -> ${to}: a short stream is translated the same, however its bytes are split`, async t => {
      for (const [name, ended] of Object.entries(LINE_ENDS)) {
        const bytes = Buffer.from(ended(streamOf(SHORT)))
        const differing = Array.from(bytes.keys()).filter(at => run([bytes.subarray(0, at), bytes.subarray(at)]) !== expected)
        t.strictSame(differing, [], `${name}: cut in two`)
        t.equal(run(Array.from(bytes.keys(), at => bytes.subarray(at, at + 1))), expected, `${name}: each byte by itself`)
      }
      t.match(expected, '日本', 'the text is there')
    })

    t.test(`${from} -> ${to}: a long stream is translated the same, however its bytes are split`, async t => {
      const bytes = Buffer.from(streamOf(longContent(150)))
      const whole = run([bytes])
      fc.assert(fc.property(fc.array(fc.nat(bytes.length), { minLength: 1, maxLength: 40 }), cuts => {
        const at = [0, ...cuts.toSorted((a, b) => a - b), bytes.length]
        return run(at.slice(1).map((end, n) => bytes.subarray(at[n], end))) === whole
      }), { seed: 29, numRuns: 50 })
      t.match(whole, /\b149\b/, 'its last word is there')
    })
  }
}
