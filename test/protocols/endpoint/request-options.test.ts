import fc from 'fast-check'
import t from 'tap'
import { createResumableStream } from '../../../src/protocols/endpoint/create-resumable-stream.ts'
import { readRequestOptions } from '../../../src/protocols/endpoint/request-options.ts'
import { endpointNamed } from '../endpoint-named.ts'

const read = (text: string) => readRequestOptions(Buffer.from(text))

t.test('the options of a request are read, and its content is skipped', async t => {
  t.strictSame(read(JSON.stringify({
    model: 'm', n: 2, logprobs: true, tools: [{ name: 'n' }], stream_options: { include_usage: true },
    messages: [{ role: 'system', content: 'S' }, { content: [{ role: 'x' }], role: 'user' }],
    contents: [], thinking: null,
  })), {
    n: 2, logprobs: true, stream_options: { include_usage: true },
    messages: [{ role: 'user' }], contents: [], thinking: null,
  })
  t.strictSame(read('{"\\u006e":3,"messages":[{"role":"user"},7]}'), { n: 3, messages: [] })
  t.strictSame(read('{"n":1,"n":2,"messages":{}}'), { n: 2, messages: null })
  t.strictSame(read('{ "messages" : [ { "role" : { "a" : [1] } } ] }'), { messages: [{ role: { a: [1] } }] })
  for (const other of ['[]', '"n"', '7', 'null']) t.equal(read(other), 'the request is not a JSON object')
})

t.test('an option that is too long, and too many turns, are reported', async t => {
  t.match(read(`{"audio":"${'x'.repeat(300_000)}"}`), /'audio' is too long/)
  t.match(read(`{"messages":[${'{},'.repeat(100_000)}{}]}`), /too many turns/)
})

t.test('property: options are read as JSON.parse reads them', async t => {
  const name = fc.constantFrom('n', 'audio', 'thinking', 'messages', 'model', 'generationConfig')
  fc.assert(fc.property(fc.dictionary(name, fc.jsonValue()), fc.boolean(), (request, isWide) => {
    const found = read(JSON.stringify(request, null, isWide ? 2 : 0))
    for (const [key, value] of Object.entries(request)) {
      if (key === 'model' || key === 'messages') continue
      t.strictSame((found as Record<string, unknown>)[key], JSON.parse(JSON.stringify(value)))
    }
  }), { numRuns: 200 })
})

t.test('reading a prompt of many small parts creates no objects', async t => {
  const pieces = '{},'.repeat(4_000_000)
  const body = Buffer.from(`{"messages":[{"role":"user","content":[${pieces}{}]}]}`)
  const heap = process.memoryUsage().heapUsed
  const answer = createResumableStream(endpointNamed('chat.completions'), body)
  t.not(typeof answer, 'string')
  t.ok(process.memoryUsage().heapUsed - heap < 32 * 1024 * 1024, 'no objects are created for the prompt')
})
