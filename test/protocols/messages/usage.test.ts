import t from 'tap'
import { readUsage } from '../../../src/protocols/usage/reported-usage.ts'
import { blankUsage } from '../../../src/protocols/usage/usage.ts'
import { endpointNamed } from '../endpoint-named.ts'
import { doubtful, sound } from '../usage-readings.ts'

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

t.test('messages: cache writes without a lifetime count as 5m', async t => {
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

t.test('messages: cache writes by lifetime are summed if there is no total, and are suspect if they exceed the total', async t => {
  const split = { ephemeral_5m_input_tokens: 3, ephemeral_1h_input_tokens: 5 }
  t.strictSame(
    readUsage(endpointNamed('messages').usage, { input_tokens: 1, output_tokens: 1, cache_creation: split }),
    sound({ inputTokens: 9, cacheWrite5mTokens: 3, cacheWrite1hTokens: 5, outputTokens: 1 }),
  )
  const low = { input_tokens: 1, output_tokens: 1, cache_creation_input_tokens: 4, cache_creation: split }
  t.strictSame(readUsage(endpointNamed('messages').usage, low), doubtful({ cacheWrite5mTokens: 4, outputTokens: 1 }))
})

t.test('messages: the usage of a compaction is added to the top-level usage', async t => {
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
    'the output is unknown until it is reported',
  )
  const wrong = { ...usage, iterations: [{ ...compaction, input_tokens: -1 }, message] }
  t.equal(readUsage(endpointNamed('messages').usage, wrong)?.usage.inputTokens, null, 'an incomplete sum counts as unknown')
  t.equal(readUsage(endpointNamed('messages').usage, { ...usage, iterations: 'many' })?.suspect, true)
})

t.test('messages: the usage names further models that served the response', async t => {
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
