import t from 'tap'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { splitInput, splitOutput, unexplainedTokens } from '../../../src/protocols/usage/openai-usage.ts'
import { Figures, MAX_COUNT } from '../../../src/protocols/usage/usage-figures.ts'

for (const [total, input, output, expected] of [
  [10, 4, 3, 3], [7, 4, 3, null], [6, 4, 3, null], [10, null, 3, null], [10, 4, null, null], ['10', 4, 3, null], [undefined, 4, 3, null], [10.5, 4, 3, null], [MAX_COUNT + 8, 4, 3, null], [MAX_COUNT + 7, 4, 3, MAX_COUNT],
] as const) {
  t.test(`a total of ${total} with ${input} input and ${output} output tokens leaves ${expected} unexplained tokens`, async t => t.equal(unexplainedTokens(total, input, output), expected))
}

const INPUTS: readonly (readonly [what: string, input: number | null, cached: unknown, details: JsonObject, expected: object, suspect: boolean])[] = [
  ['no details', 100, undefined, {}, { inputTokens: 100, cachedInputTokens: null, cacheWrite5mTokens: null, cacheWrite1hTokens: null, inputAudioTokens: null, inputImageTokens: null }, false],
  ['cached input', 100, 40, {}, { cachedInputTokens: 40 }, false],
  ['more cached input than input', 100, 140, {}, { cachedInputTokens: null }, true],
  ['cache writes in fields of OpenAI', 100, 40, { cache_write_tokens: 20 }, { cacheWrite5mTokens: 20, cacheWrite1hTokens: null }, false],
  ['cache writes in fields of LiteLLM', 100, 40, { cache_creation_tokens: 20 }, { cacheWrite5mTokens: 20 }, false],
  ['cache writes in fields of Qwen', 100, 40, { cache_creation_input_tokens: 20 }, { cacheWrite5mTokens: 20 }, false],
  ['more cache writes than the rest of the input', 100, 90, { cache_write_tokens: 20 }, { cacheWrite5mTokens: null }, true],
  ['writes with a longer lifetime', 100, 40, { cache_write_tokens: 20, cache_write_tokens_details: { ttl_12h_tokens: 5 } }, { cacheWrite5mTokens: 15, cacheWrite1hTokens: 5 }, false],
  ['cache writes with a longer lifetime in other fields', 100, 40, { cache_write_tokens: 20, cache_creation_token_details: { ephemeral_1h_input_tokens: 20 } }, { cacheWrite5mTokens: 0, cacheWrite1hTokens: 20 }, false],
  ['a split of null', 100, 40, { cache_write_tokens: 20, cache_write_tokens_details: null }, { cacheWrite5mTokens: 20, cacheWrite1hTokens: null }, false],
  ['audio and images', 100, 40, { audio_tokens: 10, image_tokens: 5 }, { inputAudioTokens: 10, inputImageTokens: 5 }, false],
  ['cached audio', 100, 95, { audio_tokens: 10 }, { inputAudioTokens: 5 }, false],
  ['images beside audio', 100, 90, { audio_tokens: 8, image_tokens: 8 }, { inputAudioTokens: 8, inputImageTokens: 2 }, false],
  ['more audio than input', 100, 0, { audio_tokens: 101 }, { inputAudioTokens: null }, true],
]

for (const [what, input, cached, details, expected, suspect] of INPUTS) {
  t.test(`an input is split: ${what}`, async t => {
    const figures = new Figures()
    t.match(splitInput(figures, input, cached, details), expected)
    t.equal(figures.suspect, suspect)
  })
}

const OUTPUTS: readonly (readonly [what: string, output: number | null, details: JsonObject, unexplained: number | null, expected: object, suspect: boolean])[] = [
  ['no details', 50, {}, null, { outputTokens: 50, reasoningTokens: null, outputAudioTokens: null, outputImageTokens: null }, false],
  ['reasoning that is part of the output', 50, { reasoning_tokens: 20 }, null, { outputTokens: 50, reasoningTokens: 20 }, false],
  ['reasoning in addition to the output', 50, { reasoning_tokens: 20 }, 20, { outputTokens: 70, reasoningTokens: 20 }, false],
  ['unexplained tokens other than reasoning', 50, { reasoning_tokens: 20 }, 5, { outputTokens: 50, reasoningTokens: 20 }, false],
  ['reasoning in addition to an unknown output', null, { reasoning_tokens: 20 }, 20, { outputTokens: null, reasoningTokens: 20 }, false],
  ['more reasoning than output', 50, { reasoning_tokens: 51 }, null, { outputTokens: 50, reasoningTokens: null }, true],
  ['audio and images', 50, { reasoning_tokens: 20, audio_tokens: 10, image_tokens: 20 }, null, { outputAudioTokens: 10, outputImageTokens: 20 }, false],
  ['more audio than output without reasoning', 50, { reasoning_tokens: 45, audio_tokens: 10 }, null, { outputAudioTokens: null }, true],
  ['more images than output without audio', 50, { audio_tokens: 40, image_tokens: 11 }, null, { outputImageTokens: null }, true],
]

for (const [what, output, details, unexplained, expected, suspect] of OUTPUTS) {
  t.test(`an output is split: ${what}`, async t => {
    const figures = new Figures()
    t.match(splitOutput(figures, output, details, unexplained), expected)
    t.equal(figures.suspect, suspect)
  })
}
