import type { EndpointName } from '../../src/protocols/endpoint/protocol.ts'

/** The events of a streamed response as vendors send it, and the expected usage and texts. */
export interface Recording {
  readonly name: string
  readonly endpoint: EndpointName
  /** The pieces on the wire; cut between any two of them. */
  readonly events: readonly string[]
  /** What each event adds to the text: content, reasoning and tool arguments, in that order. */
  readonly texts: readonly (readonly [string, string, string])[]
  /** What the reading is after the whole stream. */
  readonly usage: Readonly<Record<string, number>>
}

type Texts = [string, string, string]

const NONE: Texts = ['', '', '']
const content = (text: string): Texts => [text, '', '']
const reasoning = (text: string): Texts => ['', text, '']
const tool = (text: string): Texts => ['', '', text]

// Text that would mislead a meter that searches for words.
export const TRAPS = [
  'The end is "data: [DONE]"\n\ndata: [DONE]\n\n and "usage": {"prompt_tokens": 1}',
  '[DONE]',
  'usage',
  '"usage":{"completion_tokens":99}',
  'message_stop',
  '{"type":"message_stop"}',
  'response.completed',
  'event: error',
  '{"error":{"message":"no"}}',
  '"finishReason":"STOP"',
  ']',
  'tricky \\" quotes \\\\',
  'ümläut \u{1f600} 日本語',
  '\r\n\r\n',
  '<|endoftext|>',
] as const

function data(value: unknown): string {
  return `data: ${JSON.stringify(value)}\n\n`
}

function named(value: { type: string }): string {
  return `event: ${value.type}\n${data(value)}`
}

function recording(
  name: string,
  endpoint: EndpointName,
  events: readonly (readonly [string, Texts])[],
  usage: Record<string, number>,
): Recording {
  return {
    name,
    endpoint,
    events: events.map(([wire]) => wire),
    texts: events.map(([, texts]) => texts),
    usage,
  }
}

const CHAT = {
  id: 'chatcmpl-B9',
  object: 'chat.completion.chunk',
  created: 1741569952,
  model: 'gpt-4o-2024-08-06',
}

function chunk(delta: unknown, finish: string | null = null): string {
  return data({
    ...CHAT,
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
    usage: null,
  })
}

export const chat = recording(
  'chat',
  'chat.completions',
  [
    [chunk({ role: 'assistant', content: '', refusal: null }), NONE],
    [': keep-alive\n\n', NONE],
    [chunk({ content: null, reasoning_content: 'Let me see' }), reasoning('Let me see')],
    [chunk({ reasoning: '. Yes.', reasoning_content: '. Yes.' }), reasoning('. Yes.')],
    ...TRAPS.map((text): [string, Texts] => [chunk({ content: text }), content(text)]),
    [
      chunk({
        tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'f', arguments: '' } }],
      }),
      NONE,
    ],
    [chunk({ tool_calls: [{ index: 0, function: { arguments: '{"usage":' } }] }), tool('{"usage":')],
    [chunk({ tool_calls: [{ index: 0, function: { arguments: '"[DONE]"}' } }] }), tool('"[DONE]"}')],
    [chunk({}, 'tool_calls'), NONE],
    [
      data({
        ...CHAT,
        choices: [],
        usage: {
          prompt_tokens: 31,
          completion_tokens: 250,
          total_tokens: 281,
          prompt_tokens_details: { cached_tokens: 16, audio_tokens: 0 },
          completion_tokens_details: { reasoning_tokens: 40, audio_tokens: 0 },
        },
      }),
      NONE,
    ],
    ['data: [DONE]\n\n', NONE],
  ],
  {
    inputTokens: 31,
    cachedInputTokens: 16,
    inputAudioTokens: 0,
    outputTokens: 250,
    reasoningTokens: 40,
    outputAudioTokens: 0,
  },
)

export const completions = recording(
  'completions, CRLF',
  'completions',
  [
    ...TRAPS.map((text): [string, Texts] => [
      data({ id: 'cmpl-1', object: 'text_completion', choices: [{ text, index: 0, finish_reason: null }] }),
      content(text),
    ]),
    [data({ id: 'cmpl-1', choices: [{ text: '', index: 0, finish_reason: 'length' }] }), NONE],
    [
      data({
        id: 'cmpl-1',
        choices: [],
        usage: { prompt_tokens: 4, completion_tokens: 90, total_tokens: 94 },
      }),
      NONE,
    ],
    ['data: [DONE]\n\n', NONE],
  ].map(([wire, texts]): [string, Texts] => [(wire as string).replaceAll('\n', '\r\n'), texts as Texts]),
  { inputTokens: 4, outputTokens: 90 },
)

function block(index: number, delta: Record<string, unknown>): string {
  return named({ type: 'content_block_delta', index, delta } as { type: string })
}

function blockStart(index: number, start: unknown): string {
  return named({ type: 'content_block_start', index, content_block: start } as { type: string })
}

export const messages = recording(
  'messages',
  'messages',
  [
    [
      named({
        type: 'message_start',
        message: {
          id: 'msg_01',
          type: 'message',
          role: 'assistant',
          model: 'claude-sonnet-4-5',
          content: [],
          usage: {
            input_tokens: 25,
            cache_creation_input_tokens: 100,
            cache_read_input_tokens: 2000,
            cache_creation: { ephemeral_5m_input_tokens: 100, ephemeral_1h_input_tokens: 0 },
            output_tokens: 1,
            service_tier: 'standard',
          },
        },
      } as { type: string }),
      NONE,
    ],
    [blockStart(0, { type: 'thinking', thinking: '', signature: '' }), NONE],
    [named({ type: 'ping' }), NONE],
    [block(0, { type: 'thinking_delta', thinking: 'I should say ' }), reasoning('I should say ')],
    [block(0, { type: 'thinking_delta', thinking: 'message_stop.' }), reasoning('message_stop.')],
    [block(0, { type: 'signature_delta', signature: 'EqQBCgIYAhIM1gbcDa9GJwZA2b3h'.repeat(40) }), NONE],
    [named({ type: 'content_block_stop', index: 0 } as { type: string }), NONE],
    [blockStart(1, { type: 'text', text: '' }), NONE],
    ...TRAPS.map((text): [string, Texts] => [block(1, { type: 'text_delta', text }), content(text)]),
    [named({ type: 'content_block_stop', index: 1 } as { type: string }), NONE],
    [blockStart(2, { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} }), NONE],
    [block(2, { type: 'input_json_delta', partial_json: '' }), NONE],
    [
      block(2, { type: 'input_json_delta', partial_json: '{"type": "message_stop"' }),
      tool('{"type": "message_stop"'),
    ],
    [block(2, { type: 'input_json_delta', partial_json: '}' }), tool('}')],
    [named({ type: 'content_block_stop', index: 2 } as { type: string }), NONE],
    [
      named({
        type: 'message_delta',
        delta: { stop_reason: 'tool_use', stop_sequence: null },
        usage: {
          input_tokens: null,
          cache_creation_input_tokens: null,
          cache_read_input_tokens: 2001,
          output_tokens: 333,
        },
      } as { type: string }),
      NONE,
    ],
    [named({ type: 'message_stop' }), NONE],
  ],
  {
    inputTokens: 25 + 100 + 2001,
    cachedInputTokens: 2001,
    cacheWrite5mTokens: 100,
    cacheWrite1hTokens: 0,
    outputTokens: 333,
  },
)

const RESPONSE = { id: 'resp_1', object: 'response', model: 'gpt-5', output: [] }

export const responses = recording(
  'responses',
  'responses',
  [
    [
      named({ type: 'response.created', response: { ...RESPONSE, status: 'in_progress', usage: null } } as {
        type: string
      }),
      NONE,
    ],
    [
      named({ type: 'response.output_item.added', output_index: 0, item: { type: 'reasoning' } } as {
        type: string
      }),
      NONE,
    ],
    [
      named({
        type: 'response.reasoning_summary_text.delta',
        output_index: 0,
        delta: 'Thinking of response.completed',
      } as { type: string }),
      reasoning('Thinking of response.completed'),
    ],
    ...TRAPS.map((text): [string, Texts] => [
      named({
        type: 'response.output_text.delta',
        item_id: 'msg_1',
        output_index: 1,
        content_index: 0,
        delta: text,
        logprobs: [],
      } as { type: string }),
      content(text),
    ]),
    [
      named({ type: 'response.output_text.done', output_index: 1, text: TRAPS.join('') } as { type: string }),
      NONE,
    ],
    [
      named({ type: 'response.function_call_arguments.delta', output_index: 2, delta: '{"a":1}' } as {
        type: string
      }),
      tool('{"a":1}'),
    ],
    [
      named({
        type: 'response.completed',
        response: {
          ...RESPONSE,
          status: 'completed',
          output: [{ type: 'message', content: [{ text: TRAPS.join('') }] }],
          usage: {
            input_tokens: 37,
            input_tokens_details: { cached_tokens: 0 },
            output_tokens: 211,
            output_tokens_details: { reasoning_tokens: 64 },
            total_tokens: 248,
          },
        },
      } as { type: string }),
      NONE,
    ],
  ],
  { inputTokens: 37, cachedInputTokens: 0, outputTokens: 211, reasoningTokens: 64 },
)

interface Chunk {
  readonly parts?: readonly unknown[]
  readonly finish?: string
  readonly meta?: unknown
}

function generated({ parts, finish, meta }: Chunk): unknown {
  const candidate = {
    ...(parts ? { content: { parts, role: 'model' } } : {}),
    ...(finish ? { finishReason: finish } : {}),
    index: 0,
  }
  return { candidates: [candidate], usageMetadata: meta, modelVersion: 'gemini-2.5-pro', responseId: 'r1' }
}

const GENERATED: readonly (readonly [unknown, Texts])[] = [
  [
    generated({
      parts: [{ text: '**Considering**', thought: true }],
      meta: { promptTokenCount: 12, totalTokenCount: 12 },
    }),
    reasoning('**Considering**'),
  ],
  ...TRAPS.map((text, n): [unknown, Texts] => [
    generated({
      parts: [{ text }],
      meta: {
        promptTokenCount: 12,
        candidatesTokenCount: 5 * (n + 1),
        thoughtsTokenCount: 20,
        totalTokenCount: 32 + 5 * (n + 1),
      },
    }),
    content(text),
  ]),
  [
    generated({
      parts: [
        { functionCall: { name: 'f', args: { text: '"finishReason": "STOP"' } }, thoughtSignature: 'c2ln' },
      ],
      meta: { promptTokenCount: 12, candidatesTokenCount: 95, thoughtsTokenCount: 20, totalTokenCount: 127 },
    }),
    tool('{"text":"\\"finishReason\\": \\"STOP\\""}'),
  ],
  [
    generated({
      parts: [{ text: '' }],
      finish: 'STOP',
      meta: { promptTokenCount: 11, candidatesTokenCount: 96, thoughtsTokenCount: 20, totalTokenCount: 127 },
    }),
    NONE,
  ],
]

const GENERATE_USAGE = { inputTokens: 11, outputTokens: 116, reasoningTokens: 20 }

export const generate = recording(
  'generate, SSE',
  'generate.stream',
  GENERATED.map(([value, texts]): [string, Texts] => [data(value).replaceAll('\n', '\r\n'), texts]),
  GENERATE_USAGE,
)

export const generateArray = recording(
  'generate, JSON array',
  'generate.stream',
  [
    ...GENERATED.map(([value, texts], n): [string, Texts] => [
      `${n === 0 ? '[' : ',\r\n'}${JSON.stringify(value, null, 2)}`,
      texts,
    ]),
    ['\r\n]\n', NONE],
  ],
  GENERATE_USAGE,
)

export const images = recording(
  'images',
  'images.generations',
  [
    [
      named({
        type: 'image_generation.partial_image',
        b64_json: 'QUJD'.repeat(2000),
        partial_image_index: 0,
      } as { type: string }),
      NONE,
    ],
    [
      named({
        type: 'image_generation.completed',
        b64_json: 'QUJD'.repeat(5000),
        usage: {
          total_tokens: 100,
          input_tokens: 50,
          output_tokens: 50,
          input_tokens_details: { text_tokens: 10, image_tokens: 40 },
        },
      } as { type: string }),
      NONE,
    ],
  ],
  { inputTokens: 50, inputImageTokens: 40, outputTokens: 50, outputImageTokens: 50, images: 1 },
)

export const transcript = recording(
  'transcript',
  'audio.transcriptions',
  [
    ...TRAPS.map((text): [string, Texts] => [
      data({ type: 'transcript.text.delta', delta: text }),
      content(text),
    ]),
    [
      data({
        type: 'transcript.text.done',
        text: TRAPS.join(''),
        usage: {
          type: 'tokens',
          input_tokens: 14,
          input_token_details: { text_tokens: 4, audio_tokens: 10 },
          output_tokens: 31,
          total_tokens: 45,
        },
      }),
      NONE,
    ],
  ],
  { inputTokens: 14, inputAudioTokens: 10, outputTokens: 31 },
)

/** Mistral's transcript has its text in another member, and the seconds of audio in addition to tokens. */
export const mistralTranscript = recording(
  "Mistral's transcript",
  'audio.transcriptions',
  [
    [named({ type: 'transcription.language', audio_language: 'en' } as { type: string }), NONE],
    ...TRAPS.map((text): [string, Texts] => [
      named({ type: 'transcription.text.delta', text } as { type: string }),
      content(text),
    ]),
    [
      named({
        type: 'transcription.done',
        text: TRAPS.join(''),
        usage: { prompt_audio_seconds: 203, prompt_tokens: 4, completion_tokens: 635, total_tokens: 3264 },
      } as { type: string }),
      NONE,
    ],
  ],
  { inputTokens: 2629, inputAudioTokens: 2625, outputTokens: 635, seconds: 203 },
)

/** vLLM's transcript consists of chat chunks. */
export const chunkedTranscript = recording(
  "vLLM's transcript",
  'audio.translations',
  [
    ...TRAPS.map((text): [string, Texts] => [
      data({ object: 'transcription.chunk', choices: [{ delta: { content: text }, finish_reason: null }] }),
      content(text),
    ]),
    [
      data({ object: 'transcription.chunk', choices: [{ delta: { content: '' }, finish_reason: 'stop' }] }),
      NONE,
    ],
    [
      data({
        object: 'transcription.chunk',
        choices: [],
        usage: { prompt_tokens: 2542, completion_tokens: 31, total_tokens: 2573 },
      }),
      NONE,
    ],
    ['data: [DONE]\n\n', NONE],
  ],
  { inputTokens: 2542, outputTokens: 31 },
)

export const speech = recording(
  'speech',
  'audio.speech',
  [
    [data({ type: 'speech.audio.delta', audio: 'UklGRg'.repeat(500) }), NONE],
    [
      data({ type: 'speech.audio.done', usage: { input_tokens: 14, output_tokens: 101, total_tokens: 115 } }),
      NONE,
    ],
  ],
  { inputTokens: 14, outputTokens: 101, outputAudioTokens: 101 },
)

const step = (event_type: string, rest: object) => `event: ${event_type}\n${data({ ...rest, event_type })}`

export const interaction = recording(
  'interaction',
  'interactions',
  [
    [step('interaction.created', { interaction: { id: 'v1_1', status: 'in_progress', model: 'gemini-3.8-flash' } }), NONE],
    [
      step('step.start', {
        index: 0, step: { type: 'thought', signature: '', summary: [{ type: 'text', text: 'Thinking of ' }] },
      }),
      reasoning('Thinking of '),
    ],
    [
      step('step.delta', {
        index: 0, delta: { content: { text: 'interaction.completed', type: 'text' }, type: 'thought_summary' },
      }),
      reasoning('interaction.completed'),
    ],
    [step('step.delta', { index: 0, delta: { signature: 'EvEFCu4F', type: 'thought_signature' } }), NONE],
    [step('step.stop', { index: 0 }), NONE],
    [
      step('step.start', { index: 1, step: { content: [{ text: 'Said: ', type: 'text' }], type: 'model_output' } }),
      content('Said: '),
    ],
    ...TRAPS.map((text): [string, Texts] => [
      step('step.delta', { index: 1, delta: { text, type: 'text' }, metadata: { total_usage: { total_input_tokens: 9 } } }),
      content(text),
    ]),
    [step('step.start', { index: 2, step: { type: 'function_call', id: 'c', name: 'f', arguments: {} } }), NONE],
    [step('step.delta', { index: 2, delta: { type: 'arguments_delta', arguments: '{"a":1}' } }), tool('{"a":1}')],
    [
      step('step.delta', { index: 3, delta: { type: 'code_execution_call', arguments: { code: '1 + 1' } } }),
      tool('{"code":"1 + 1"}'),
    ],
    [step('step.stop', { index: 3 }), NONE],
    [
      step('interaction.completed', {
        interaction: {
          id: 'v1_1', status: 'completed', service_tier: 'standard',
          usage: {
            total_tokens: 530, total_input_tokens: 62, total_output_tokens: 171, total_thought_tokens: 297,
            total_cached_tokens: 0, total_tool_use_tokens: 0,
          },
        },
      }),
      NONE,
    ],
  ],
  { inputTokens: 62, cachedInputTokens: 0, outputTokens: 468, reasoningTokens: 297 },
)

export const RECORDINGS: readonly Recording[] = [
  chat,
  completions,
  messages,
  responses,
  generate,
  generateArray,
  interaction,
  images,
  transcript,
  mistralTranscript,
  chunkedTranscript,
  speech,
]
