import { deepStrictEqual } from 'node:assert'
import fc from 'fast-check'
import t from 'tap'
import type { EndpointName } from '../../../src/protocols/endpoint/protocol.ts'
import { readableMeter } from '../../support/readable-meter.ts'
import type { ReadableMeter } from '../../support/readable-meter.ts'
import { endpointNamed } from '../endpoint-named.ts'

/** Values of an event, as vendors write them and in unusual forms. */
interface Values {
  readonly text: string
  readonly other: string
  readonly index: number
  readonly count: number
}

type Shape = (values: Values) => string

const json = JSON.stringify
const delta = (fields: string, rest = '') => ({ other, index }: Values) =>
  `{"id":${json(other)},"created":${index}7,"choices":[{"index":${index},"delta":{${fields}},"finish_reason":null}]${rest}}`
const chat = (write: (values: Values) => string, rest: (values: Values) => string = () => ''): Shape =>
  values => delta(write(values), rest(values))(values)

const CHAT: readonly Shape[] = [
  chat(({ text }) => `"content":${json(text)}`),
  chat(({ text }) => `"content":${json(text)}`, ({ other }) => `,"usage":null,"obfuscation":${json(other)}`),
  chat(({ text, count }) => `"content":${json(text)},"logprobs":${-count}.5`),
  chat(({ text, other }) => `"reasoning_content":${json(text)},"reasoning":${json(other)}`),
  chat(({ text }) => `"reasoning_content":${json(text)},"reasoning":"said under both names"`),
  chat(({ text, other }) => `"content":${json(text)},"refusal":${json(other)}`),
  chat(({ text }) => `"cont\\u0065nt":${json(text)}`),
  chat(({ text }) => `"content":[{"type":"text","text":${json(text)}},{"type":"thinking","thinking":[{"text":${json(text)}}]}]`),
  chat(({ text, index }) => `"tool_calls":[{"index":${index},"function":{"name":"f","arguments":${json(text)}}}]`),
  chat(({ text }) => `"audio":{"transcript":${json(text)}}`),
  chat(({ text }) => `"audio":{"data":${json(text)}}`),
  chat(({ text }) => `"content":${json(text)}`, ({ count }) => `,"usage":{"prompt_tokens":12,"completion_tokens":${count}}`),
  chat(({ text }) => `"content":${json(text)}`, ({ count }) => `,"usa\\u0067e":{"prompt_tokens":${count},"completion_tokens":0}`),
  chat(({ text }) => `"content":${json(text)}`, ({ text }) => `,"usage":${json(text)}`),
  chat(({ text }) => `"content":${json(text)}`, ({ other }) => `,"service_tier":${json(other)}`),
  chat(({ text }) => `"content":${json(text)}`, ({ count }) => `,"error":${count % 2 === 0 ? 'null' : '{"message":"x"}'}`),
  chat(({ text }) => `"content":${json(text)},"content":${json(text)}`),
  chat(({ count }) => `"content":${count}`),
  ({ count }) => `{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":${count},"details":[{"n":${count}}]}}`,
  ({ text }) => `{"choices":[{"index":0,"text":${json(text)},"finish_reason":"stop"}]}`,
]
const typed = (type: string, write: Shape): Shape =>
  values => `{"type":"${type}","sequence_number":${values.count},"item_id":${json(values.other)},"output_index":${values.index},${write(values)}}`
const RESPONSES: readonly Shape[] = [
  typed('response.output_text.delta', ({ text, other }) => `"delta":${json(text)},"logprobs":[],"obfuscation":${json(other)}`),
  typed('response.reasoning_summary_text.delta', ({ text }) => `"delta":${json(text)}`),
  typed('response.function_call_arguments.delta', ({ text }) => `"delta":${json(text)}`),
  typed('response.output_audio.delta', ({ text }) => `"delta":${json(text)}`),
  typed('response.output_text.delta', ({ count }) => `"delta":{"n":${count}}`),
  ({ text, index }) => `{"delta":${json(text)},"output_index":${index},"type":"response.refusal.delta"}`,
  ({ count }) => `{"type":"response.completed","response":{"usage":{"input_tokens":4,"output_tokens":${count}},"service_tier":"flex"}}`,
  ({ text }) => `{"type":${json(text)},"error":null}`,
]
const block = (write: Shape): Shape => values => `{"type":"content_block_delta","index":${values.index},"delta":{${write(values)}}}`
const MESSAGES: readonly Shape[] = [
  block(({ text }) => `"type":"text_delta","text":${json(text)}`),
  block(({ text }) => `"type":"thinking_delta","thinking":${json(text)}`),
  block(({ text }) => `"type":"input_json_delta","partial_json":${json(text)}`),
  block(({ text }) => `"type":"signature_delta","signature":${json(text)}`),
  ({ count }) => `{"type":"message_start","message":{"usage":{"input_tokens":${count},"output_tokens":1}}}`,
  ({ count }) => `{"type":"message_delta","delta":{},"usage":{"output_tokens":${count}}}`,
  ({ index }) => `{"type":"content_block_start","index":${index},"content_block":{"type":"tool_use","name":"f"}}`,
  () => '{"type":"ping"}',
]
const candidate = (parts: Shape, rest: Shape = () => ''): Shape =>
  values => `{"candidates":[{"content":{"parts":[${parts(values)}],"role":"model"},"index":${values.index}${rest(values)}}]`
    + `,"usageMetadata":{"promptTokenCount":${values.count},"candidatesTokenCount":${values.count},"details":[{"modality":"TEXT"}]}}`
const GENERATE: readonly Shape[] = [
  candidate(({ text }) => `{"text":${json(text)}}`),
  candidate(({ text, other }) => `{"text":${json(text)}},{"thought":true,"text":${json(other)}}`),
  candidate(({ text }) => `{"functionCall":{"name":"f","args":{"a":${json(text)}}}}`),
  candidate(({ text }) => `{"executableCode":{"code":${json(text)}}}`),
  candidate(({ text }) => `{"inlineData":{"data":${json(text)}}}`),
  candidate(({ text }) => `{"text":${json(text)}}`, () => ',"finishReason":"STOP"'),
  ({ text }) => `{"candidates":[{"content":{"parts":[{"text":${json(text)}}]}}]}`,
  ({ count }) => `{"usageMetadata":{"promptTokenCount":${count}}}`,
  ({ other }) => `{"promptFeedback":{"blockReason":${json(other)}}}`,
]

const TRANSCRIPT_TYPES = ['transcript.text.delta', 'transcription.text.delta', 'transcript.text.done']

const STREAMS: readonly { readonly name: string, readonly endpoint: EndpointName, readonly shapes: readonly Shape[], readonly isArray?: true }[] = [
  { name: 'chat', endpoint: 'chat.completions', shapes: CHAT },
  { name: 'completions', endpoint: 'completions', shapes: CHAT },
  { name: 'responses', endpoint: 'responses', shapes: RESPONSES },
  { name: 'messages', endpoint: 'messages', shapes: MESSAGES },
  { name: 'generate', endpoint: 'generate.stream', shapes: GENERATE },
  { name: 'generate, as an array', endpoint: 'generate.stream', shapes: GENERATE, isArray: true },
  { name: 'transcripts', endpoint: 'transcriptions', shapes: [
    ({ text }) => `{"type":"transcript.text.delta","delta":${json(text)}}`,
    ({ text, index }) => `{"type":"${TRANSCRIPT_TYPES[index] ?? ''}","delta":${json(text)}}`,
  ] },
]

/** Texts that end with a backslash, contain quotes, look like JSON, or are empty. */
const text = fc.oneof(
  fc.constantFrom('', 'word', ' a', '\\', '\\\\"', '"usage":{"completion_tokens":9}', '"}', '\u00e9\u20ac', 'finish_reason', 'x'.repeat(300)),
  fc.string({ maxLength: 8 }),
)
const values = fc.record({
  text, other: fc.oneof(fc.constantFrom('', 'a', 'bb', 'default', 'delta', 'SAFETY'), text),
  index: fc.nat({ max: 2 }), count: fc.nat({ max: 120 }),
})

/** All results of a meter. */
function told(meter: ReadableMeter): unknown {
  const { sawContent, sawError, terminated, isOutputReported, uncountable, serviceTier, generatedBytes } = meter
  const { runs, keptBytes } = meter.partial()
  const texts = runs.map(({ kind, escaped, bytes }) => [kind, escaped, Buffer.from(bytes).toString()])
  return {
    sawContent, sawError, terminated, isOutputReported, uncountable, serviceTier, generatedBytes, texts, keptBytes,
    reading: meter.reading(), errorEvent: meter.errorEvent?.replace(/^\{ */, '{'),
  }
}

for (const { name, endpoint, shapes, isArray = false } of STREAMS) {
  t.test(`${name}: an event with a remembered shape gives the same result as an event that is parsed`, async t => {
    // Few shapes, often in a row, as in a stream.
    const events = fc.array(fc.tuple(fc.nat({ max: shapes.length - 1 }), fc.array(values, { minLength: 1, maxLength: 6 })), { maxLength: 8 })
    const property = fc.property(events, events => {
      const [remembering, walking] = [readableMeter(endpointNamed(endpoint)), readableMeter(endpointNamed(endpoint))]
      const all = events.flatMap(([shape, values]) => values.map(value => (shapes[shape] as Shape)(value)))
      for (const [n, event] of all.entries()) {
        const frame = (data: string) => Buffer.from(isArray ? `${n === 0 ? '[' : ','}${data}` : `data: ${data}\n\n`)
        remembering.push(frame(event))
        // Each event has different white space, so that no event equals an earlier one.
        walking.push(frame(event.replace('{', `{${' '.repeat(n)}`)))
        deepStrictEqual(told(remembering), told(walking), event)
      }
    })
    t.doesNotThrow(() => fc.assert(property, { numRuns: 500 }))
  })
}
