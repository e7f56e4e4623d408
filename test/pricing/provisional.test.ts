import t from 'tap'
import { provisional, provisionalUsage } from '../../src/pricing/provisional.ts'
import type { ResponseProgress } from '../../src/pricing/provisional.ts'
import { blankUsage } from '../../src/protocols/usage/usage.ts'
import type { EndpointName } from '../../src/protocols/endpoint/protocol.ts'
import { endpointNamed } from '../protocols/endpoint-named.ts'
import { readableMeter } from '../support/readable-meter.ts'

function known(name: EndpointName, progress: Partial<ResponseProgress> = {}) {
  return provisional({
    endpoint: endpointNamed(name), response: null, inputTokens: 9, request: null, inBackground: false, isCompressed: false, ...progress,
  })
}

function streamOf(name: EndpointName, ...events: object[]) {
  const meter = readableMeter(endpointNamed(name))
  for (const event of events) meter.push(Buffer.from(`data: ${JSON.stringify(event)}\n\n`))
  return { kind: 'stream', meter } as const
}

const bodyOf = (text: string) => ({ kind: 'body', body: Buffer.from(text) }) as const
const TEXT = { choices: [{ delta: { content: 'twelve bytes' } }] }
const USAGE = { choices: [], usage: { prompt_tokens: 4, completion_tokens: 7 } }

t.test('before a response the usage is the estimated input and an output of 0', async t => {
  t.match(known('chat.completions'), { usage: { inputTokens: 9, outputTokens: 0 }, unread: false })
  t.strictSame(known('chat.completions', { inputTokens: null }), { usage: blankUsage(), unread: false })
})

t.test('the text of a stream is counted until its usage is reported', async t => {
  t.match(known('chat.completions', { response: streamOf('chat.completions', TEXT) }), { usage: { inputTokens: 9, outputTokens: 3 }, unread: false })
  t.match(known('chat.completions', { response: streamOf('chat.completions', TEXT, USAGE) }), { usage: { inputTokens: 4, outputTokens: 7 } })
})

t.test('the received part of an incomplete body is counted, unless the body is compressed', async t => {
  const response = bodyOf('{"choices":[{"message":{"content":"twelve bytes"}}]}')
  t.ok((known('chat.completions', { response }).usage.outputTokens ?? 0) > 3)
  t.match(known('chat.completions', { response, isCompressed: true }), { usage: { inputTokens: 9, outputTokens: 0 }, unread: false })
  t.match(known('chat.completions', { response: bodyOf('') }), { usage: { outputTokens: 0 } })
})

t.test('the output of a response that was delivered but not read is unknown', async t => {
  t.match(known('chat.completions', { response: { kind: 'none', delivered: true } }), { usage: { inputTokens: 9, outputTokens: null }, unread: true })
  t.match(known('chat.completions', { response: { kind: 'none', delivered: false } }), { usage: { outputTokens: 0 }, unread: false })
})

t.test('the output of a background response is unknown until it completes', async t => {
  const created = { type: 'response.created', response: { status: 'in_progress' } }
  const completed = { type: 'response.completed', response: { status: 'completed', usage: { input_tokens: 4, output_tokens: 7 } } }
  const inBackground = { inBackground: true }
  t.match(known('responses', inBackground), { unread: true })
  t.match(known('responses', { ...inBackground, response: streamOf('responses', created) }), { usage: { outputTokens: null }, unread: true })
  t.match(known('responses', { ...inBackground, response: streamOf('responses', created, completed) }), { usage: { outputTokens: 7 }, unread: false })
  t.match(known('responses', { ...inBackground, response: bodyOf('{"status":"queued"}') }), { unread: true })
  t.match(known('responses', { ...inBackground, response: bodyOf('{"status":"completed","output":[]}') }), { unread: false })
  t.match(known('chat.completions', inBackground), { unread: false }, 'the endpoint has no background')
})

t.test('the usage of speech is the characters of the request, and unknown tokens once audio arrives', async t => {
  const request = Buffer.from('{"model":"tts-1","input":"Hello"}')
  t.match(known('audio.speech', { request }), { usage: { inputTokens: 9, characters: 5 } })
  t.match(known('audio.speech', { request, response: { kind: 'none', delivered: true } }), { usage: { inputTokens: null, characters: 5 }, unread: false })
  t.match(known('audio.speech'), { usage: { characters: null } })
})

t.test('the output of an image is unknown until its usage is reported', async t => {
  t.match(known('images.generations'), { unread: false })
  t.match(known('images.generations', { response: { kind: 'none', delivered: true } }), { usage: { outputTokens: null }, unread: true })
})

t.test('the usage of a transcript is known from its tokens or its seconds', async t => {
  t.match(known('audio.transcriptions', { inputTokens: null, response: { kind: 'none', delivered: true } }), { unread: true })
  t.match(known('audio.transcriptions', { inputTokens: null, response: { kind: 'none', delivered: false } }), { unread: false })
  t.match(known('audio.transcriptions', { response: { kind: 'none', delivered: true } }), { unread: false })
})

t.test('the output is at least the counted output, unless the reported output is final', async t => {
  const messages = (...events: object[]) => provisionalUsage(streamOf('messages', ...events).meter, null).outputTokens
  const start = { type: 'message_start', message: { usage: { input_tokens: 4, output_tokens: 1 } } }
  const delta = { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'sixteen bytes in' } }
  const end = { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 2 } }
  t.equal(messages(start, delta), 4)
  t.equal(messages(start, delta, end), 2)
  t.strictSame(provisionalUsage(null, null, Buffer.from('text')), blankUsage())
})
