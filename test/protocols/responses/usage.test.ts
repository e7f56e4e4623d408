import t from 'tap'
import { readUsage } from '../../../src/protocols/usage/reported-usage.ts'
import { endpointNamed } from '../endpoint-named.ts'
import { sound } from '../usage-readings.ts'

t.test('responses: input_tokens includes cached tokens, and cache writes are read by lifetime', async t => {
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
