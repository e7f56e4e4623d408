import t from 'tap'
import { missingEndOf } from '../../../src/protocols/endpoint/missing-end.ts'
import type { EndpointName } from '../../../src/protocols/endpoint/protocol.ts'
import { endpointNamed } from '../endpoint-named.ts'

type Json = Record<string, unknown>

const data = (value: Json) => `data: ${JSON.stringify(value)}\n\n`
const event = (type: string, more: Json = {}) => `event: ${type}\n${data({ type, ...more })}`
const delta = (value: Json, finish: string | null = null, index = 0) =>
  data({ choices: [{ index, delta: value, finish_reason: finish }] })

const CHAT = {
  endpoint: 'chat.completions', body: { messages: [] },
  /** Events that a complete stream needs. */
  needed: [delta({ role: 'assistant' }), delta({ content: 'Schön 😀' }), delta({}, 'stop')],
  more: [data({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 2 } })],
  end: 'data: [DONE]\n\n',
} as const
const CHAT_USAGE = {
  ...CHAT, body: { messages: [], stream_options: { include_usage: true } },
  needed: [...CHAT.needed, ...CHAT.more], more: [],
} as const
const TOOL = {
  ...CHAT,
  needed: [delta({ tool_calls: [{ index: 0, function: { arguments: '{}' } }] }), delta({}, 'tool_calls')],
} as const
const MESSAGES = {
  endpoint: 'messages', body: { messages: [], thinking: { type: 'enabled', budget_tokens: 1024 } },
  needed: [
    event('message_start', { message: { usage: { input_tokens: 1 } } }),
    event('content_block_start', { index: 0, content_block: { type: 'thinking', thinking: '' } }),
    event('content_block_delta', { index: 0, delta: { type: 'thinking_delta', thinking: 'Hm' } }),
    event('content_block_stop', { index: 0 }),
    event('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 2 } }),
  ],
  more: [event('ping')],
  end: event('message_stop'),
} as const
const GENERATE = {
  endpoint: 'generate.stream',
  body: { contents: [], generationConfig: { responseMimeType: 'application/json' } },
  needed: [
    data({ candidates: [{ content: { parts: [{ text: '{}' }] } }] }),
    data({ candidates: [{ content: { parts: [] }, finishReason: 'STOP' }] }),
  ],
  more: [], end: '',
} as const

function ended(endpoint: EndpointName, body: Json, stream: Buffer): Buffer | null {
  const ending = missingEndOf(endpointNamed(endpoint), Buffer.from(JSON.stringify(body)), stream)
  return ending && Buffer.concat([stream.subarray(0, ending.completeBytes), ending.suffix])
}

for (const crlf of [false, true]) {
  for (const protocol of [CHAT, CHAT_USAGE, TOOL, MESSAGES, GENERATE]) {
    const { endpoint, body, needed, more, end } = protocol
    const bytes = (events: readonly string[]) =>
      Buffer.from(crlf ? events.join('').replaceAll('\n', '\r\n') : events.join(''))

    t.test(`${endpoint}: a stream of ${needed.length} events gets its missing end, cut at any byte${crlf ? ', CRLF' : ''}`, t => {
      const all = bytes([...needed, ...more, end])
      const least = bytes(needed)
      const blank = crlf ? 4 : 2
      // The possible ends: with none or all of the optional events before the end.
      const right = [[], more].map(some => bytes([...needed, ...some]).toString() + end)
      for (let cut = 0; cut <= all.length; cut++) {
        const whole = ended(endpoint, body, all.subarray(0, cut))
        // The line ends of the last needed event may be missing; they are added.
        if (cut < least.length - blank) t.equal(whole, null, `at ${cut}`)
        else if (cut <= least.length) t.ok(isSame(right[0] as string, String(whole)), `at ${cut}: ${whole}`)
        else if (whole !== null) t.ok(right.some(each => isSame(each, whole.toString())), `at ${cut}: ${whole}`)
      }
      for (const some of [[], more]) t.not(ended(endpoint, body, bytes([...needed, ...some])), null)
      t.end()
    })
  }
}

function isSame(a: string, b: string): boolean {
  const [one, other] = [a, b].map(each => each.replaceAll(/\r\n?/g, '\n').trim())
  return one === other
}

t.test('a missing end is not added to a stream that may be incomplete', async t => {
  const said = CHAT.needed.join('')
  for (const [endpoint, body, stream] of [
    ['chat.completions', { n: 2 }, said],
    ['chat.completions', {}, said + delta({ content: 'x' }, null, 1)],
    ['chat.completions', {}, `data: 1\n\n${said}`],
    ['chat.completions', [], said],
    ['generate.stream', { generationConfig: { candidateCount: 2 } }, GENERATE.needed.join('')],
    ['generate.stream', { generation_config: { candidate_count: 2 } }, GENERATE.needed.join('')],
    ['completions', {}, data({ choices: [{ text: 'x', finish_reason: 'stop' }] })],
    ['responses', {}, event('response.output_text.done')],
  ] as const) {
    t.equal(ended(endpoint, body as Json, Buffer.from(stream)), null, `${endpoint}: ${stream}`)
  }
})
