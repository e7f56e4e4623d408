import fc from 'fast-check'
import t from 'tap'
import type { EndpointName } from '../../../src/protocols/shared/names.ts'
import { readUsage } from '../../../src/protocols/shared/reported-usage.ts'
import type { ReportedUsage } from '../../../src/protocols/shared/reported-usage.ts'
import { blankUsage } from '../../../src/protocols/shared/usage.ts'
import type { Usage } from '../../../src/protocols/shared/usage.ts'
import { endpointNamed } from '../endpoint-named.ts'

function sound(usage: Partial<Usage>): ReportedUsage {
  return { usage: { ...blankUsage(), ...usage }, suspect: false }
}

function doubtful(usage: Partial<Usage>): ReportedUsage {
  return { usage: { ...blankUsage(), ...usage }, suspect: true }
}

t.test(
  'chat: prompt_tokens includes cached, written and audio; completion_tokens includes reasoning',
  async t => {
    const usage = {
      prompt_tokens: 2006,
      completion_tokens: 300,
      total_tokens: 2306,
      prompt_tokens_details: { cached_tokens: 1920, cache_write_tokens: 20, audio_tokens: 10 },
      completion_tokens_details: { reasoning_tokens: 128, audio_tokens: 7, accepted_prediction_tokens: 0 },
    }
    const expected = sound({
      inputTokens: 2006,
      cachedInputTokens: 1920,
      cacheWrite5mTokens: 20,
      inputAudioTokens: 10,
      outputTokens: 300,
      reasoningTokens: 128,
      outputAudioTokens: 7,
    })
    t.strictSame(readUsage(endpointNamed('chat.completions').usage, usage), expected)
    t.strictSame(readUsage(endpointNamed('completions').usage, usage), expected)
  },
)

t.test('chat: absent details are unknown, explicit zeros are zeros', async t => {
  t.strictSame(
    readUsage(endpointNamed('chat.completions').usage, { prompt_tokens: 5, completion_tokens: 0 }),
    sound({ inputTokens: 5, outputTokens: 0 }),
  )
  t.strictSame(
    readUsage(endpointNamed('chat.completions').usage, {
      prompt_tokens: 5,
      completion_tokens: 2,
      total_tokens: 7,
      prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0 },
    }),
    sound({
      inputTokens: 5,
      cachedInputTokens: 0,
      inputAudioTokens: 0,
      outputTokens: 2,
      reasoningTokens: 0,
      outputAudioTokens: 0,
    }),
  )
  t.strictSame(
    readUsage(endpointNamed('chat.completions').usage, {
      prompt_tokens: 5,
      completion_tokens: 2,
      prompt_tokens_details: null,
      completion_tokens_details: null,
    }),
    sound({ inputTokens: 5, outputTokens: 2 }),
  )
})

t.test('chat: cache hits that vendors report at the top', async t => {
  const deepseek = {
    prompt_tokens: 9,
    completion_tokens: 1,
    prompt_cache_hit_tokens: 4,
    prompt_cache_miss_tokens: 5,
  }
  t.equal(readUsage(endpointNamed('chat.completions').usage, deepseek)?.usage.cachedInputTokens, 4)
  const moonshot = { prompt_tokens: 9, completion_tokens: 1, cached_tokens: 3 }
  t.equal(readUsage(endpointNamed('chat.completions').usage, moonshot)?.usage.cachedInputTokens, 3)
})

t.test('chat: what was written to the cache, by the names of other vendors', async t => {
  const read = (details: object) => readUsage(endpointNamed('chat.completions').usage, {
    prompt_tokens: 2000, completion_tokens: 1, total_tokens: 2001, prompt_tokens_details: details,
  })
  const qwen = {
    cached_tokens: 0, cache_creation_input_tokens: 1494, cache_type: 'ephemeral',
    cache_creation: { ephemeral_5m_input_tokens: 1494 },
  }
  t.strictSame(
    read(qwen),
    sound({ inputTokens: 2000, cachedInputTokens: 0, cacheWrite5mTokens: 1494, outputTokens: 1 }),
  )
  const litellm = {
    cached_tokens: 100, cache_creation_tokens: 300,
    cache_creation_token_details: { ephemeral_5m_input_tokens: 100, ephemeral_1h_input_tokens: 200 },
  }
  t.strictSame(read(litellm), sound({
    inputTokens: 2000, cachedInputTokens: 100, cacheWrite5mTokens: 100, cacheWrite1hTokens: 200, outputTokens: 1,
  }))
})

t.test('chat: a total that is the sum of all three puts the reasoning beside the completion', async t => {
  const beside = {
    prompt_tokens: 32,
    completion_tokens: 9,
    total_tokens: 135,
    completion_tokens_details: { reasoning_tokens: 94 },
  }
  t.strictSame(
    readUsage(endpointNamed('chat.completions').usage, beside),
    sound({ inputTokens: 32, outputTokens: 103, reasoningTokens: 94 }),
  )
  t.strictSame(
    readUsage(endpointNamed('responses').usage, {
      input_tokens: 32, output_tokens: 9, total_tokens: 135, output_tokens_details: { reasoning_tokens: 94 },
    }),
    sound({ inputTokens: 32, outputTokens: 103, reasoningTokens: 94 }),
  )
})

t.test('chat: reasoning at the top: beside the completion at Perplexity, in it at SGLang', async t => {
  const read = (usage: object) => readUsage(endpointNamed('chat.completions').usage, usage)
  const research = {
    prompt_tokens: 33, completion_tokens: 7163, total_tokens: 7196, search_context_size: 'low',
    citation_tokens: 20016, num_search_queries: 18, reasoning_tokens: 73_997,
    cost: { input_tokens_cost: 0, output_tokens_cost: 0.057, reasoning_tokens_cost: 0.222, total_cost: 0.409 },
  }
  const used = sound({ inputTokens: 33, outputTokens: 81_160, reasoningTokens: 73_997 })
  t.strictSame(read(research), used)
  t.strictSame(read({ ...research, total_tokens: 33 + 7163 + 73_997 }), used)
  t.strictSame(read({ ...research, total_tokens: 33 + 7163 + 20_016 + 73_997 }), used, 'whatever is in the total')
  t.strictSame(
    read({ prompt_tokens: 5, completion_tokens: 9, total_tokens: 20, citation_tokens: 6 }),
    sound({ inputTokens: 5, outputTokens: 9 }),
    'what is besides in the total are the citations',
  )
  t.strictSame(
    read({ prompt_tokens: 5, completion_tokens: 9, total_tokens: 14, reasoning_tokens: 4 }),
    sound({ inputTokens: 5, outputTokens: 9, reasoningTokens: 4 }),
  )
  t.equal(read({ ...research, reasoning_tokens: -1 })?.suspect, true)
})

t.test('chat: thoughts that are in the total alone, as Gemini has them there, are output', async t => {
  const gemini = { prompt_tokens: 20, completion_tokens: 424, total_tokens: 1016 }
  const read = (more: object) => readUsage(endpointNamed('chat.completions').usage, { ...gemini, ...more })?.usage
  t.strictSame(
    readUsage(endpointNamed('chat.completions').usage, gemini),
    sound({ inputTokens: 20, outputTokens: 996, reasoningTokens: 572 }),
  )
  t.match(read({ completion_tokens: 0, total_tokens: 592 }), { outputTokens: 572, reasoningTokens: 572 })
  for (const total of [444, 443, 0, -1, 1016.5, '1016', null, 1e300]) {
    t.match(read({ total_tokens: total }), { outputTokens: 424, reasoningTokens: null }, String(total))
  }
  const other = { outputTokens: 424 }
  t.match(read({ completion_tokens_details: { reasoning_tokens: 24 } }), other, 'they are told')
  t.match(read({ prompt_tokens_details: { cached_tokens: 9 } }), other, 'it may be what was cached')
  t.match(read({ prompt_cache_hit_tokens: 9 }), other)
  t.match(read({ prompt_audio_seconds: 9 }), other, 'it may be sound')
})

t.test('chat: audio that was cached is not counted twice', async t => {
  const usage = {
    prompt_tokens: 100,
    completion_tokens: 1,
    prompt_tokens_details: { cached_tokens: 80, audio_tokens: 50 },
  }
  t.strictSame(
    readUsage(endpointNamed('chat.completions').usage, usage),
    sound({ inputTokens: 100, cachedInputTokens: 80, inputAudioTokens: 20, outputTokens: 1 }),
  )
})

t.test('responses: input_tokens includes cached; cache writes by lifetime', async t => {
  t.strictSame(
    readUsage(endpointNamed('responses').usage, {
      input_tokens: 328,
      input_tokens_details: { cached_tokens: 128, cache_write_tokens: 0 },
      output_tokens: 52,
      output_tokens_details: { reasoning_tokens: 40 },
      total_tokens: 380,
    }),
    sound({
      inputTokens: 328,
      cachedInputTokens: 128,
      cacheWrite5mTokens: 0,
      outputTokens: 52,
      reasoningTokens: 40,
    }),
  )
  t.strictSame(
    readUsage(endpointNamed('responses').usage, {
      input_tokens: 500,
      input_tokens_details: {
        cached_tokens: 100,
        cache_write_tokens: 300,
        cache_write_tokens_details: { ttl_30m_tokens: 250, ttl_12h_tokens: 50 },
      },
      output_tokens: 1,
      output_tokens_details: { reasoning_tokens: 0 },
    }),
    sound({
      inputTokens: 500,
      cachedInputTokens: 100,
      cacheWrite5mTokens: 250,
      cacheWrite1hTokens: 50,
      outputTokens: 1,
      reasoningTokens: 0,
    }),
  )
})

t.test('messages: input_tokens excludes cache reads and writes', async t => {
  t.strictSame(
    readUsage(endpointNamed('messages').usage, {
      input_tokens: 21,
      cache_creation_input_tokens: 188,
      cache_read_input_tokens: 1000,
      cache_creation: { ephemeral_5m_input_tokens: 88, ephemeral_1h_input_tokens: 100 },
      output_tokens: 393,
      service_tier: 'standard',
      output_tokens_details: { thinking_tokens: 300 },
    }),
    sound({
      inputTokens: 1209,
      cachedInputTokens: 1000,
      cacheWrite5mTokens: 88,
      cacheWrite1hTokens: 100,
      outputTokens: 393,
      reasoningTokens: 300,
    }),
  )
})

t.test('messages: writes whose split is null, absent or short count as 5m', async t => {
  const usage = {
    input_tokens: 4,
    cache_creation_input_tokens: 50,
    cache_read_input_tokens: 0,
    output_tokens: 2,
  }
  const expected = sound({ inputTokens: 54, cachedInputTokens: 0, cacheWrite5mTokens: 50, outputTokens: 2 })
  t.strictSame(readUsage(endpointNamed('messages').usage, { ...usage, cache_creation: null }), expected)
  t.strictSame(readUsage(endpointNamed('messages').usage, usage), expected)
  t.strictSame(
    readUsage(endpointNamed('messages').usage, {
      ...usage,
      cache_creation: { ephemeral_5m_input_tokens: null, ephemeral_1h_input_tokens: 20 },
    }),
    sound({
      inputTokens: 54,
      cachedInputTokens: 0,
      cacheWrite5mTokens: 30,
      cacheWrite1hTokens: 20,
      outputTokens: 2,
    }),
  )
})

t.test('messages: a split without a total is the total; one above it is not believed', async t => {
  const split = { ephemeral_5m_input_tokens: 3, ephemeral_1h_input_tokens: 5 }
  t.strictSame(
    readUsage(endpointNamed('messages').usage, { input_tokens: 1, output_tokens: 1, cache_creation: split }),
    sound({ inputTokens: 9, cacheWrite5mTokens: 3, cacheWrite1hTokens: 5, outputTokens: 1 }),
  )
  const low = { input_tokens: 1, output_tokens: 1, cache_creation_input_tokens: 4, cache_creation: split }
  t.strictSame(readUsage(endpointNamed('messages').usage, low), doubtful({ cacheWrite5mTokens: 4, outputTokens: 1 }))
})

t.test('messages: what a compaction used stands beside the figures at the top', async t => {
  const compaction = {
    type: 'compaction', input_tokens: 180_000, output_tokens: 3_500,
    cache_read_input_tokens: 500, cache_creation_input_tokens: 40,
    cache_creation: { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 30 },
  }
  const message = { type: 'message', input_tokens: 23_000, output_tokens: 1_000 }
  const usage = { input_tokens: 23_000, output_tokens: 1_000, iterations: [compaction, message] }
  t.strictSame(readUsage(endpointNamed('messages').usage, usage), sound({
    inputTokens: 203_540,
    cachedInputTokens: 500,
    cacheWrite5mTokens: 10,
    cacheWrite1hTokens: 30,
    outputTokens: 4_500,
  }))
  t.strictSame(
    readUsage(endpointNamed('messages').usage, { ...usage, iterations: null }),
    sound({ inputTokens: 23_000, outputTokens: 1_000 }),
    'there may be none',
  )
  t.strictSame(
    readUsage(endpointNamed('messages').usage, { ...usage, output_tokens: undefined }, false),
    sound({
      inputTokens: 203_540, cachedInputTokens: 500, cacheWrite5mTokens: 10, cacheWrite1hTokens: 30,
    }),
    'an output that is not told yet is not that of the compaction',
  )
  const wrong = { ...usage, iterations: [{ ...compaction, input_tokens: -1 }, message] }
  t.equal(readUsage(endpointNamed('messages').usage, wrong)?.usage.inputTokens, null, 'half a sum is none')
  t.equal(readUsage(endpointNamed('messages').usage, { ...usage, iterations: 'many' })?.suspect, true)
})

t.test('messages: the models that made an answer beside the one that was asked', async t => {
  const used = { input_tokens: 5, output_tokens: 1 }
  const read = (...iterations: object[]) => readUsage(endpointNamed('messages').usage, { ...used, iterations })
  t.equal(read({ type: 'message', model: 'm', ...used })?.servingModels, undefined)
  t.strictSame(read({ type: 'advisor_message', model: 'wise', ...used })?.servingModels, {
    servedBy: null, others: [{ model: 'wise', usage: { ...blankUsage(), inputTokens: 5, outputTokens: 1 } }],
  })
  const declined = { type: 'message', model: 'm', ...used }
  const served = { type: 'fallback_message', model: 'n', ...used }
  t.match(read(declined, served)?.servingModels, { servedBy: 'n', others: [{ model: 'm' }] })
  t.strictSame(read({ ...declined, output_tokens: 0 }, served)?.servingModels, { servedBy: 'n', others: [] })
  t.equal(read({ type: 'advisor_message', model: 5, ...used })?.servingModels?.others[0]?.model, null)
  t.match(read({ type: 'advisor_message', model: 'wise', ...used, input_tokens: -1 }), {
    suspect: true, servingModels: { others: [{ usage: { inputTokens: null } }] },
  })
})

t.test('generate: thoughts stand beside the candidates, tool results are further input', async t => {
  t.strictSame(
    readUsage(endpointNamed('generate.content').usage, {
      promptTokenCount: 100,
      cachedContentTokenCount: 62,
      candidatesTokenCount: 20,
      thoughtsTokenCount: 30,
      toolUsePromptTokenCount: 7,
      totalTokenCount: 157,
      promptTokensDetails: [
        { modality: 'TEXT', tokenCount: 55 },
        { modality: 'AUDIO', tokenCount: 40 },
        { modality: 'IMAGE', tokenCount: 5 },
      ],
      cacheTokensDetails: [
        { modality: 'AUDIO', tokenCount: 30 },
        { modality: 'IMAGE', tokenCount: 2 },
        { modality: 'TEXT', tokenCount: 30 },
      ],
      candidatesTokensDetails: [
        { modality: 'IMAGE', tokenCount: 12 },
        { modality: 'TEXT', tokenCount: 8 },
      ],
    }),
    sound({
      inputTokens: 107,
      cachedInputTokens: 62,
      inputAudioTokens: 10,
      inputImageTokens: 3,
      outputTokens: 50,
      reasoningTokens: 30,
      outputImageTokens: 12,
    }),
  )
})

t.test('generate: the total speaks for candidates that are absent', async t => {
  const start = { promptTokenCount: 8, totalTokenCount: 8 }
  t.strictSame(readUsage(endpointNamed('generate.stream').usage, start, false), sound({ inputTokens: 8 }), 'not counted yet')
  t.strictSame(
    readUsage(endpointNamed('generate.stream').usage, start, true),
    sound({ inputTokens: 8, outputTokens: 0 }),
    'zero at the end',
  )
  const thinking = { promptTokenCount: 8, thoughtsTokenCount: 40, totalTokenCount: 48 }
  t.strictSame(
    readUsage(endpointNamed('generate.stream').usage, thinking, true),
    sound({ inputTokens: 8, outputTokens: 40, reasoningTokens: 40 }),
  )
  const rest = { promptTokenCount: 8, thoughtsTokenCount: 40, totalTokenCount: 60 }
  t.equal(readUsage(endpointNamed('generate.stream').usage, rest, false)?.usage.outputTokens, 52)
  const impossible = { promptTokenCount: 8, totalTokenCount: 5 }
  t.strictSame(readUsage(endpointNamed('generate.stream').usage, impossible, true), doubtful({ inputTokens: 8 }))
  t.strictSame(readUsage(endpointNamed('generate.stream').usage, { totalTokenCount: 60 }), doubtful({}), 'but not for both')
})

t.test('interactions: as generate, under other names', async t => {
  const usage = {
    total_input_tokens: 62,
    input_tokens_by_modality: [{ modality: 'text', tokens: 50 }, { modality: 'audio', tokens: 12 }],
    total_cached_tokens: 20,
    cached_tokens_by_modality: [{ modality: 'audio', tokens: 2 }],
    total_tool_use_tokens: 5,
    total_output_tokens: 171,
    output_tokens_by_modality: [{ modality: 'text', tokens: 100 }, { modality: 'image', tokens: 71 }],
    total_thought_tokens: 297,
    total_tokens: 535,
  }
  t.strictSame(readUsage(endpointNamed('interactions').usage, usage), sound({
    inputTokens: 67, cachedInputTokens: 20, inputAudioTokens: 10,
    outputTokens: 468, reasoningTokens: 297, outputImageTokens: 71,
  }))
  const { total_output_tokens: _, ...thoughtsAlone } = { ...usage, total_tokens: 364 }
  t.equal(readUsage(endpointNamed('interactions').usage, thoughtsAlone)?.usage.outputTokens, 297)
  t.strictSame(readUsage(endpointNamed('interactions').usage, { total_tokens: 197 }), doubtful({}), 'nobody can tell them apart')
})

t.test('embeddings: prompt_tokens, or the total where it stands alone', async t => {
  t.strictSame(readUsage(endpointNamed('embeddings').usage, { prompt_tokens: 8, total_tokens: 8 }), sound({ inputTokens: 8 }))
  t.strictSame(readUsage(endpointNamed('embeddings').usage, { total_tokens: 9 }), sound({ inputTokens: 9 }))
  t.strictSame(readUsage(endpointNamed('generate.embed').usage, { promptTokenCount: 3 }), sound({ inputTokens: 3 }))
  t.strictSame(readUsage(endpointNamed('generate.embed').usage, { totalTokenCount: 4 }), sound({ inputTokens: 4 }))
})

t.test('images: output is pictures unless the details say text', async t => {
  const usage = {
    input_tokens: 50,
    output_tokens: 1056,
    total_tokens: 1106,
    input_tokens_details: { text_tokens: 10, image_tokens: 40 },
  }
  const expected = { inputTokens: 50, inputImageTokens: 40, outputTokens: 1056 }
  t.strictSame(readUsage(endpointNamed('images.generations').usage, usage), sound({ ...expected, outputImageTokens: 1056 }))
  t.strictSame(
    readUsage(endpointNamed('images.edits').usage, { ...usage, output_tokens_details: { image_tokens: 1000, text_tokens: 56 } }),
    sound({ ...expected, outputImageTokens: 1000 }),
  )
  t.strictSame(
    readUsage(endpointNamed('images.edits').usage, { ...usage, output_tokens_details: { text_tokens: 56 } }),
    sound({ ...expected, outputImageTokens: 1000 }),
  )
})

t.test('transcriptions: tokens or a duration', async t => {
  t.strictSame(
    readUsage(endpointNamed('audio.transcriptions').usage, {
      type: 'tokens',
      input_tokens: 14,
      input_token_details: { text_tokens: 0, audio_tokens: 14 },
      output_tokens: 101,
      total_tokens: 115,
    }),
    sound({ inputTokens: 14, inputAudioTokens: 14, outputTokens: 101 }),
  )
  t.strictSame(readUsage(endpointNamed('audio.transcriptions').usage, { type: 'duration', seconds: 9.5 }), sound({ seconds: 9.5 }))
  t.strictSame(readUsage(endpointNamed('audio.translations').usage, { type: 'duration', seconds: 0 }), sound({ seconds: 0 }))
  for (const [told, seconds] of [[8.470000267028809, 8.47], [1e-100, 0], [5e-324, 0], [0.0005, 0.001]] as const) {
    t.strictSame(readUsage(endpointNamed('audio.translations').usage, { type: 'duration', seconds: told }), sound({ seconds }))
  }
  for (const seconds of [-1, '9', null, undefined, 1e300, NaN]) {
    t.strictSame(
      readUsage(endpointNamed('audio.transcriptions').usage, { type: 'duration', seconds }),
      doubtful({}),
      String(seconds),
    )
  }
})

t.test("transcriptions: Mistral's have seconds and tokens, and vLLM's are a chat's", async t => {
  const heard = { prompt_audio_seconds: 203, prompt_tokens: 4, completion_tokens: 635, total_tokens: 3264 }
  t.strictSame(
    readUsage(endpointNamed('audio.transcriptions').usage, heard),
    sound({ inputTokens: 2629, inputAudioTokens: 2625, outputTokens: 635, seconds: 203 }),
  )
  t.strictSame(
    readUsage(endpointNamed('audio.transcriptions').usage, { ...heard, total_tokens: 3 }),
    doubtful({ inputTokens: 0, inputAudioTokens: 0, outputTokens: 635, seconds: 203 }),
  )
  t.strictSame(
    readUsage(endpointNamed('audio.translations').usage, { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 }),
    sound({ inputTokens: 7, outputTokens: 5 }),
  )
})

t.test('speech as events: its output is sound', async t => {
  t.strictSame(
    readUsage(endpointNamed('audio.speech').usage, { input_tokens: 14, output_tokens: 101, total_tokens: 115 }),
    sound({ inputTokens: 14, outputTokens: 101, outputAudioTokens: 101 }),
  )
})

t.test('endpoints without usage have none, whatever is there', async t => {
  const none: EndpointName[] = [
    'messages.count_tokens',
    'generate.count_tokens',
    'models.list',
    'models.get',
    'status',
    'other',
  ]
  for (const endpoint of none)
    t.equal(readUsage(endpointNamed(endpoint).usage, { input_tokens: 3, totalTokens: 3 }), null, endpoint)
})

/** Each endpoint's usage object, sound, with the place of each figure that decides the main ones. */
const TABLE: readonly [EndpointName, Record<string, unknown>, readonly string[]][] = [
  ['chat.completions', { prompt_tokens: 5, completion_tokens: 6 }, ['prompt_tokens', 'completion_tokens']],
  ['completions', { prompt_tokens: 5, completion_tokens: 6 }, ['prompt_tokens', 'completion_tokens']],
  ['responses', { input_tokens: 5, output_tokens: 6 }, ['input_tokens', 'output_tokens']],
  ['messages', { input_tokens: 5, output_tokens: 6 }, ['input_tokens', 'output_tokens']],
  [
    'generate.content',
    { promptTokenCount: 5, candidatesTokenCount: 6 },
    ['promptTokenCount', 'candidatesTokenCount'],
  ],
  ['embeddings', { prompt_tokens: 5 }, ['prompt_tokens']],
  ['images.generations', { input_tokens: 5, output_tokens: 6 }, ['input_tokens', 'output_tokens']],
  ['audio.transcriptions', { input_tokens: 5, output_tokens: 6 }, ['input_tokens', 'output_tokens']],
]

const NONSENSE: readonly unknown[] = [
  -1,
  0.5,
  1e9 + 1,
  2 ** 53,
  1e308,
  NaN,
  Infinity,
  '12',
  '',
  true,
  [],
  [5],
  {},
  { value: 5 },
]

t.test('nonsense: the figure becomes null, the other stays, and the reading is suspect', async t => {
  for (const [endpoint, usage, names] of TABLE) {
    for (const name of names) {
      for (const value of NONSENSE) {
        const what = `${endpoint} ${name}: ${JSON.stringify(value)}`
        const reading = readUsage(endpointNamed(endpoint).usage, { ...usage, [name]: value })
        t.equal(reading?.suspect, true, what)
        const { inputTokens, outputTokens } = reading?.usage ?? blankUsage()
        const isInput = name === names[0]
        t.equal(isInput ? inputTokens : outputTokens, null, what)
        if (names.length > 1) t.equal(isInput ? outputTokens : inputTokens, isInput ? 6 : 5, what)
      }
    }
  }
})

t.test('nonsense: a promised figure that is missing', async t => {
  for (const [endpoint, usage, names] of TABLE) {
    for (const name of names) {
      if (name === 'candidatesTokenCount') continue
      const { [name]: _, ...rest } = usage
      t.equal(readUsage(endpointNamed(endpoint).usage, rest)?.suspect, true, `${endpoint} without ${name}`)
    }
  }
})

t.test('nonsense: in the place of the usage object', async t => {
  for (const value of [5, 'lots', true, [], [{ prompt_tokens: 5 }], NaN]) {
    t.strictSame(readUsage(endpointNamed('chat.completions').usage, value), doubtful({}), JSON.stringify(value))
  }
  t.equal(readUsage(endpointNamed('chat.completions').usage, null), null)
  t.equal(readUsage(endpointNamed('chat.completions').usage, undefined), null)
})

t.test('nonsense: details that contradict the whole', async t => {
  const usage = { prompt_tokens: 10, completion_tokens: 10 }
  t.strictSame(
    readUsage(endpointNamed('chat.completions').usage, { ...usage, prompt_tokens_details: { cached_tokens: 11 } }),
    doubtful({ inputTokens: 10, outputTokens: 10 }),
  )
  t.strictSame(
    readUsage(endpointNamed('chat.completions').usage, { ...usage, completion_tokens_details: { reasoning_tokens: 11 } }),
    doubtful({ inputTokens: 10, outputTokens: 10 }),
  )
  t.strictSame(
    readUsage(endpointNamed('chat.completions').usage, {
      ...usage,
      prompt_tokens_details: { cached_tokens: 8, cache_write_tokens: 3 },
    }),
    doubtful({ inputTokens: 10, cachedInputTokens: 8, outputTokens: 10 }),
  )
  t.strictSame(
    readUsage(endpointNamed('chat.completions').usage, { ...usage, completion_tokens_details: { audio_tokens: 6, image_tokens: 6 } }),
    doubtful({ inputTokens: 10, outputTokens: 10, outputAudioTokens: 6 }),
  )
  t.strictSame(
    readUsage(endpointNamed('chat.completions').usage, {
      ...usage,
      prompt_tokens_details: 'none',
      completion_tokens_details: [1],
    }),
    doubtful({ inputTokens: 10, outputTokens: 10 }),
  )
  t.strictSame(
    readUsage(endpointNamed('generate.content').usage, {
      promptTokenCount: 4,
      candidatesTokenCount: 1,
      cachedContentTokenCount: 5,
    }),
    doubtful({ inputTokens: 4, outputTokens: 1 }),
  )
  t.strictSame(
    readUsage(endpointNamed('generate.content').usage, {
      promptTokenCount: 4,
      candidatesTokenCount: 1,
      promptTokensDetails: { a: 1 },
    }),
    doubtful({ inputTokens: 4, outputTokens: 1 }),
  )
})

t.test('nonsense: an addend of the input that is not believed leaves the sum unknown', async t => {
  const reading = readUsage(endpointNamed('messages').usage, { input_tokens: 5, cache_read_input_tokens: '7', output_tokens: 6 })
  t.strictSame(reading, doubtful({ outputTokens: 6 }))
  const searched = { promptTokenCount: 5, toolUsePromptTokenCount: '7', candidatesTokenCount: 6 }
  t.strictSame(readUsage(endpointNamed('generate.content').usage, searched), doubtful({ outputTokens: 6 }))
})

t.test(
  'whatever the upstream sends, the figures are null or counts, and the parts fit the whole',
  async () => {
    const figure = fc.oneof(fc.nat(2000), fc.constantFrom(...NONSENSE, null, undefined), fc.jsonValue())
    const names = [
      'prompt_tokens',
      'completion_tokens',
      'total_tokens',
      'input_tokens',
      'output_tokens',
      'cached_tokens',
      'cache_read_input_tokens',
      'cache_creation_input_tokens',
      'promptTokenCount',
      'candidatesTokenCount',
      'thoughtsTokenCount',
      'cachedContentTokenCount',
      'toolUsePromptTokenCount',
      'totalTokenCount',
      'seconds',
      'type',
    ]
    const details = fc.oneof(
      fc.record(
        {
          cached_tokens: figure,
          cache_write_tokens: figure,
          audio_tokens: figure,
          image_tokens: figure,
          reasoning_tokens: figure,
          ephemeral_5m_input_tokens: figure,
          ephemeral_1h_input_tokens: figure,
        },
        { requiredKeys: [] },
      ),
      figure,
    )
    const modalities = fc.oneof(
      fc.array(fc.record({ modality: fc.constantFrom('TEXT', 'AUDIO', 'IMAGE'), tokenCount: figure })),
      figure,
    )
    const object = fc.record(
      {
        ...Object.fromEntries(names.map(name => [name, figure])),
        prompt_tokens_details: details,
        completion_tokens_details: details,
        input_tokens_details: details,
        output_tokens_details: details,
        cache_creation: details,
        promptTokensDetails: modalities,
        cacheTokensDetails: modalities,
        candidatesTokensDetails: modalities,
      },
      { requiredKeys: [] },
    )
    const endpoints = fc.constantFrom(...TABLE.map(([endpoint]) => endpoint), 'audio.speech' as const)
    fc.assert(
      fc.property(endpoints, object, fc.boolean(), (endpoint, usage, final) => {
        const reading = readUsage(endpointNamed(endpoint).usage, usage, final)
        if (!reading) return false
        const { seconds, ...counts } = reading.usage
        const all = Object.values(counts).every(
          count => count === null || (Number.isSafeInteger(count) && count >= 0),
        )
        const { inputTokens: input, outputTokens: output } = counts
        const read =
          (counts.cachedInputTokens ?? 0) + (counts.inputAudioTokens ?? 0) + (counts.inputImageTokens ?? 0)
        const written = (counts.cacheWrite5mTokens ?? 0) + (counts.cacheWrite1hTokens ?? 0)
        const made = (counts.reasoningTokens ?? 0) + (counts.outputAudioTokens ?? 0)
        return (
          all &&
          (seconds === null || seconds >= 0) &&
          (input === null || read + written <= input) &&
          (output === null || made <= output)
        )
      }),
      { numRuns: 2000 },
    )
  },
)

t.test('realtime: what came from the cache is no sound and no picture beside it', async t => {
  const usage = {
    input_tokens: 100, output_tokens: 20,
    input_token_details: {
      audio_tokens: 50, image_tokens: 14, cached_tokens: 34,
      cached_tokens_details: { audio_tokens: 20, text_tokens: 10, image_tokens: 4 },
    },
    output_token_details: { audio_tokens: 15, text_tokens: 5 },
  }
  t.match(readUsage(endpointNamed('realtime').usage, usage), {
    suspect: false,
    usage: {
      inputTokens: 100, cachedInputTokens: 34, inputAudioTokens: 30, inputImageTokens: 10,
      outputTokens: 20, outputAudioTokens: 15,
    },
  })
})
