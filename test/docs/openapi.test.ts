import { readFileSync } from 'node:fs'
import t from 'tap'
import { KEY, startTestGateway } from '../support/gateway.ts'

interface Answer {
  readonly headers: Readonly<Record<string, unknown>>
  readonly content: Readonly<Record<string, unknown>>
}

type Responses = Readonly<Record<string, Answer>>

const { paths } = JSON.parse(readFileSync(new URL('../../docs/public/openapi.json', import.meta.url), 'utf8')) as {
  readonly paths: Readonly<Record<string, { readonly post: { readonly responses: Responses } }>>
}

const FILE = new File(['RIFF'], 'a.wav')

function form(format: string): FormData {
  const form = new FormData()
  for (const [name, value] of Object.entries({ model: 'sim', response_format: format, file: FILE })) {
    form.append(name, value)
  }
  return form
}

/** Headers that only translated responses have. */
const OF_TRANSLATION = new Set(['x-gateway-translated', 'x-gateway-dropped', 'x-gateway-estimated'])

t.test('responses have the content type and headers that openapi.json describes', async t => {
  const { url } = await startTestGateway(t, 'upstreams: { a: { simulator: true } }\nroutes: [{ to: a }]\n')
  const json = (body: object) => JSON.stringify({ model: 'sim', ...body })
  for (const [path, body, type] of [
    ['/v1/chat/completions', json({ messages: [] }), 'application/json'],
    ['/v1/chat/completions', json({ messages: [], stream: true }), 'text/event-stream'],
    ['/v1/audio/speech', json({ input: 'a', voice: 'b' }), 'audio/*'],
    ['/v1/audio/speech', json({ input: 'a', voice: 'b', stream_format: 'sse' }), 'text/event-stream'],
    ['/v1/audio/transcriptions', form('text'), 'text/plain'],
    ['/v1/audio/transcriptions', form('json'), 'application/json'],
    ['/v1/audio/translations', form('srt'), 'text/plain'],
  ] as const) {
    const answer = await fetch(url + path, {
      method: 'POST', body,
      headers: {
        authorization: `Bearer ${KEY}`,
        ...typeof body === 'string' && { 'content-type': 'application/json' },
      },
    })
    await answer.bytes()
    const told = paths[path]?.post.responses['200'] as Answer
    const found = (answer.headers.get('content-type') ?? '').split(';', 1)[0] ?? ''
    t.equal(found.replace(/^audio\/.*/, 'audio/*'), type, path)
    t.ok(Object.hasOwn(told.content, type), `${path} is documented to respond with ${type}`)
    for (const name of Object.keys(told.headers).filter(each => !OF_TRANSLATION.has(each))) t.ok(answer.headers.has(name), `${path}: ${name}`)
  }
})
