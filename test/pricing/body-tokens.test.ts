import t from 'tap'
import { responseTokens, promptTokens } from '../../src/pricing/body-tokens.ts'
import { tokenCount } from '../../src/pricing/tokenizer.ts'
import type { EndpointName } from '../../src/protocols/endpoint/protocol.ts'
import { MEDIA_TOKENS } from '../../src/protocols/request/request-estimate.ts'
import { endpointNamed } from '../protocols/endpoint-named.ts'

const count = tokenCount()
/** Counts one token for each word, so that the sum shows which texts are counted. */
const words = (text: string) => text.split(/\s+/).filter(Boolean).length

t.test('chat: the example of the OpenAI cookbook has the count that the cookbook gives', async t => {
  // OpenAI's cookbook, "How to count tokens with tiktoken": 124 tokens for gpt-4o.
  const example = [
    {
      role: 'system',
      content:
        'You are a helpful, pattern-following assistant that translates corporate jargon into plain English.',
    },
    { role: 'system', name: 'example_user', content: 'New synergies will help drive top-line growth.' },
    {
      role: 'system',
      name: 'example_assistant',
      content: 'Things working well together will increase revenue.',
    },
    {
      role: 'system',
      name: 'example_user',
      content:
        "Let's circle back when we have more bandwidth to touch base on " +
          "opportunities for increased leverage.",
    },
    {
      role: 'system',
      name: 'example_assistant',
      content: "Let's talk later when we're less busy about how to do better.",
    },
    {
      role: 'user',
      content: "This late pivot means we don't have time to boil the ocean for the client deliverable.",
    },
  ]
  const tokens = promptTokens(endpointNamed('chat.completions').prompt, { model: 'gpt-4o', messages: example }, count) ?? 0
  // In the example of OpenAI each of the four names has one more token.
  t.equal(tokens + 4, 124)
})

t.test('the text that the model reads is counted for each endpoint', async t => {
  const message = { role: 'user', content: 'three short words' }
  const cases: [EndpointName, unknown, number][] = [
    ['chat.completions', { model: 'a b c', messages: [message, message], user: 'x y' }, 3 + 2 * (4 + 3)],
    [
      'chat.completions',
      { messages: [{ role: 'user', content: [{ type: 'text', text: 'two words' }] }] },
      3 + 4 + 2,
    ],
    [
      'chat.completions',
      {
        messages: [
          {
            role: 'assistant',
            content: null,
            tool_calls: [{ id: 'a b', type: 'function', function: { name: 'f', arguments: '{"a": 1}' } }],
          },
        ],
      },
      3 + 4 + 3,
    ],
    ['completions', { prompt: 'one two', suffix: 'three' }, 3],
    ['completions', { prompt: ['one', 'two three'] }, 3],
    ['completions', { prompt: [5, 6, 7, 8] }, 4],
    ['embeddings', { input: ['a b', 'c'] }, 3],
    ['embeddings', { input: [[1, 2, 3], [4]] }, 4],
    ['responses', { instructions: 'be brief', input: 'hello there' }, 3 + 4],
    [
      'responses',
      {
        input: [
          { role: 'user', content: [{ type: 'input_text', text: 'a b' }] },
          { type: 'function_call_output', call_id: 'x', output: 'c d e' },
        ],
      },
      3 + 4 + 5,
    ],
    [
      'messages',
      { system: [{ type: 'text', text: 'a b', cache_control: { type: 'ephemeral' } }], messages: [message] },
      3 + 2 + 4 + 3,
    ],
    [
      'messages',
      {
        messages: [
          {
            role: 'assistant',
            content: [
              { type: 'thinking', thinking: 'x y', signature: 's t u' },
              { type: 'tool_use', id: 't', name: 'f', input: { a: 'b c' } },
            ],
          },
        ],
      },
      3 + 4 + 2 + 1 + 2,
    ],
    [
      'messages',
      {
        messages: [
          {
            role: 'user',
            content: [{ type: 'tool_result', tool_use_id: 't', content: [{ type: 'text', text: 'a' }] }],
          },
        ],
      },
      3 + 4 + 1,
    ],
    [
      'generate.content',
      {
        systemInstruction: { parts: [{ text: 'a b' }] },
        contents: [
          {
            role: 'user',
            parts: [{ text: 'c' }, { functionResponse: { name: 'f', response: { a: 'b c' } } }],
          },
        ],
      },
      3 + 2 + 4 + 1 + 1 + 2,
    ],
    ['generate.embed', { content: { parts: [{ text: 'a b' }] } }, 2],
    ['interactions', { system_instruction: 'a b', input: [{ type: 'text', text: 'c d' }], store: false }, 4],
    [
      'generate.batch_embed',
      { requests: [{ model: 'models/x y', content: { parts: [{ text: 'a b' }] } }] },
      2,
    ],
    ['images.generations', { prompt: 'a red apple', n: 2 }, 3],
    ['audio.speech', { input: 'say it', voice: 'alloy', instructions: 'slowly' }, 3],
  ]
  for (const [endpoint, body, expected] of cases) {
    t.equal(promptTokens(endpointNamed(endpoint).prompt, body, words), expected, `${endpoint} ${JSON.stringify(body)}`)
  }
})

t.test('tools and schemas count as JSON', async t => {
  const tools = [{ type: 'function', function: { name: 'f', description: 'does it' } }]
  t.equal(
    promptTokens(endpointNamed('chat.completions').prompt, { messages: [], tools }, text => text.length),
    3 + JSON.stringify(tools).length,
  )
})

t.test('images, audio and files count as a fixed number of tokens, at any place in the body', async t => {
  const data = 'AAAA'.repeat(1000)
  const parts: [EndpointName, string, unknown][] = [
    [
      'chat.completions',
      'messages',
      { type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } },
    ],
    ['chat.completions', 'messages', { type: 'input_audio', input_audio: { data, format: 'mp3' } }],
    ['chat.completions', 'messages', { type: 'file', file: { file_data: data } }],
    ['messages', 'messages', { type: 'image', source: { type: 'base64', media_type: 'image/png', data } }],
    [
      'messages',
      'messages',
      { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data } },
    ],
    ['responses', 'input', { type: 'input_image', image_url: data }],
    ['generate.content', 'contents', { inlineData: { mimeType: 'image/png', data } }],
    ['generate.content', 'contents', { fileData: { fileUri: 'gs://x' } }],
  ]
  for (const [endpoint, member, part] of parts) {
    t.equal(
      promptTokens(endpointNamed(endpoint).prompt, { [member]: [{ content: [part] }] }, words),
      3 + MEDIA_TOKENS,
      JSON.stringify(part).slice(0, 60),
    )
  }
})

t.test('`data` counts as text or as media, depending on its content', async t => {
  const audio = { audio: { id: 'a', data: 'AAAA'.repeat(1000), transcript: 'two words' } }
  t.equal(responseTokens(endpointNamed('chat.completions').responseMembers, { choices: [{ message: audio }] }, words), MEDIA_TOKENS + 2)
  const source = { type: 'text', media_type: 'text/plain', data: 'three more words' }
  t.equal(promptTokens(endpointNamed('messages').prompt, { messages: [{ content: [{ type: 'document', source }] }] }, words), 3 + 3)
})

t.test('responses: text, reasoning and tool calls count, without overhead', async t => {
  const cases: [EndpointName, unknown, number][] = [
    [
      'chat.completions',
      {
        choices: [
          {
            index: 0,
            message: {
              role: 'assistant',
              content: 'a b',
              reasoning_content: 'c',
              tool_calls: [{ id: 'x', function: { name: 'f', arguments: '{"a": 1}' } }],
            },
            finish_reason: 'stop',
          },
        ],
      },
      5,
    ],
    ['completions', { choices: [{ text: 'a b', logprobs: { tokens: ['a', 'b'] } }] }, 2],
    [
      'responses',
      {
        output: [
          { type: 'reasoning', summary: [{ text: 'a' }], encrypted_content: 'x y' },
          {
            type: 'message',
            role: 'assistant',
            content: [{ type: 'output_text', text: 'b c', annotations: [{ title: 'x' }] }],
          },
        ],
      },
      3,
    ],
    [
      'messages',
      {
        content: [
          { type: 'thinking', thinking: 'a', signature: 'x' },
          { type: 'redacted_thinking', data: 'x' },
          { type: 'text', text: 'b c' },
          { type: 'tool_use', name: 'f', input: { a: 1 } },
        ],
      },
      MEDIA_TOKENS + 4,
    ],
    [
      'generate.content',
      {
        candidates: [
          {
            content: {
              role: 'model',
              parts: [{ text: 'a b' }, { functionCall: { name: 'f', args: { a: 1 } } }],
            },
          },
        ],
      },
      3,
    ],
  ]
  for (const [endpoint, body, expected] of cases) {
    t.equal(responseTokens(endpointNamed(endpoint).responseMembers, body, words), expected, `${endpoint} ${JSON.stringify(body)}`)
  }
  t.equal(responseTokens(endpointNamed('embeddings').responseMembers, { data: [] }, words), null)
})

t.test('a malformed body is counted or gives null, and never throws', async t => {
  for (const body of [null, 5, 'x', [], NaN]) t.equal(promptTokens(endpointNamed('chat.completions').prompt, body, words), null)
  t.equal(promptTokens(endpointNamed('audio.transcriptions').prompt, { model: 'x' }, words), null)
  t.equal(promptTokens(endpointNamed('chat.completions').prompt, { messages: 'just text' }, words), 3 + 2)
  t.equal(
    promptTokens(endpointNamed('chat.completions').prompt, { messages: [null, 5, [[['a']]], { role: 'user' }] }, words),
    3 + 1 + 4,
  )
  let deep: unknown = 'text'
  for (let i = 0; i < 5000; i++) deep = { content: deep }
  t.equal(promptTokens(endpointNamed('chat.completions').prompt, { messages: [deep] }, words), 3)
})
