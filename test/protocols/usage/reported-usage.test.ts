import fc from 'fast-check'
import t from 'tap'
import type { EndpointName } from '../../../src/protocols/endpoint/protocol.ts'
import { readUsage } from '../../../src/protocols/usage/reported-usage.ts'
import { blankUsage } from '../../../src/protocols/usage/usage.ts'
import { endpointNamed } from '../endpoint-named.ts'
import { doubtful } from '../usage-readings.ts'

t.test('usage is not read for endpoints that have none', async t => {
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

/** A valid usage object of each endpoint, with the places of the figures that decide the main figures. */
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

t.test('an invalid count becomes null, the other count stays, and the reading is suspect', async t => {
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

t.test('a missing required count makes the reading suspect', async t => {
  for (const [endpoint, usage, names] of TABLE) {
    for (const name of names) {
      if (name === 'candidatesTokenCount') continue
      const { [name]: _, ...rest } = usage
      t.equal(readUsage(endpointNamed(endpoint).usage, rest)?.suspect, true, `${endpoint} without ${name}`)
    }
  }
})

t.test('a usage that is not an object makes the reading suspect', async t => {
  for (const value of [5, 'lots', true, [], [{ prompt_tokens: 5 }], NaN]) {
    t.strictSame(readUsage(endpointNamed('chat.completions').usage, value), doubtful({}), JSON.stringify(value))
  }
  t.equal(readUsage(endpointNamed('chat.completions').usage, null), null)
  t.equal(readUsage(endpointNamed('chat.completions').usage, undefined), null)
})

t.test('details above their total are ignored, and make the reading suspect', async t => {
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

t.test('an invalid part of the input leaves the input unknown', async t => {
  const reading = readUsage(endpointNamed('messages').usage, { input_tokens: 5, cache_read_input_tokens: '7', output_tokens: 6 })
  t.strictSame(reading, doubtful({ outputTokens: 6 }))
  const searched = { promptTokenCount: 5, toolUsePromptTokenCount: '7', candidatesTokenCount: 6 }
  t.strictSame(readUsage(endpointNamed('generate.content').usage, searched), doubtful({ outputTokens: 6 }))
})

t.test(
  'property: counts are null or valid, and no part is above its total',
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
