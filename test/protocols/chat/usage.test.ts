import t from 'tap'
import { readUsage } from '../../../src/protocols/usage/reported-usage.ts'
import { endpointNamed } from '../endpoint-named.ts'
import { sound } from '../usage-readings.ts'

t.test(
  'chat: prompt_tokens includes cache reads, cache writes and audio; completion_tokens includes reasoning',
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

t.test('chat: cache hits in top-level fields count', async t => {
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

t.test('chat: cache writes are read from the field names of other vendors', async t => {
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

t.test('chat: reasoning is added to the output if the total is the sum of prompt, completion and reasoning', async t => {
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

t.test('chat: the output excludes top-level reasoning tokens for Perplexity, and includes them for SGLang', async t => {
  const read = (usage: object) => readUsage(endpointNamed('chat.completions').usage, usage)
  const research = {
    prompt_tokens: 33, completion_tokens: 7163, total_tokens: 7196, search_context_size: 'low',
    citation_tokens: 20016, num_search_queries: 18, reasoning_tokens: 73_997,
    cost: { input_tokens_cost: 0, output_tokens_cost: 0.057, reasoning_tokens_cost: 0.222, total_cost: 0.409 },
  }
  const used = sound({ inputTokens: 33, outputTokens: 81_160, reasoningTokens: 73_997 })
  t.strictSame(read(research), used)
  t.strictSame(read({ ...research, total_tokens: 33 + 7163 + 73_997 }), used)
  t.strictSame(read({ ...research, total_tokens: 33 + 7163 + 20_016 + 73_997 }), used, 'the total has no effect')
  t.strictSame(
    read({ prompt_tokens: 5, completion_tokens: 9, total_tokens: 20, citation_tokens: 6 }),
    sound({ inputTokens: 5, outputTokens: 9 }),
    'the rest of the total are citations',
  )
  t.strictSame(
    read({ prompt_tokens: 5, completion_tokens: 9, total_tokens: 14, reasoning_tokens: 4 }),
    sound({ inputTokens: 5, outputTokens: 9, reasoningTokens: 4 }),
  )
  t.equal(read({ ...research, reasoning_tokens: -1 })?.suspect, true)
})

t.test('chat: thoughts that Gemini reports only in the total count as output', async t => {
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
  t.match(read({ completion_tokens_details: { reasoning_tokens: 24 } }), other, 'the reasoning tokens are reported')
  t.match(read({ prompt_tokens_details: { cached_tokens: 9 } }), other, 'the rest can be cached tokens')
  t.match(read({ prompt_cache_hit_tokens: 9 }), other)
  t.match(read({ prompt_audio_seconds: 9 }), other, 'the rest can be audio')
})

t.test('chat: cached audio is not counted twice', async t => {
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

t.test('embeddings: the input is prompt_tokens, or the total if prompt_tokens is missing', async t => {
  t.strictSame(readUsage(endpointNamed('embeddings').usage, { prompt_tokens: 8, total_tokens: 8 }), sound({ inputTokens: 8 }))
  t.strictSame(readUsage(endpointNamed('embeddings').usage, { total_tokens: 9 }), sound({ inputTokens: 9 }))
  t.strictSame(readUsage(endpointNamed('generate.embed').usage, { promptTokenCount: 3 }), sound({ inputTokens: 3 }))
  t.strictSame(readUsage(endpointNamed('generate.embed').usage, { totalTokenCount: 4 }), sound({ inputTokens: 4 }))
})
