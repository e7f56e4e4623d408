import t from 'tap'
import { readUsage } from '../../../src/protocols/usage/reported-usage.ts'
import { endpointNamed } from '../endpoint-named.ts'
import { doubtful, sound } from '../usage-readings.ts'

t.test('generate: thoughts are added to the output, and tool results to the input', async t => {
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

t.test('generate: a missing candidatesTokenCount is computed from the total', async t => {
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
  t.strictSame(readUsage(endpointNamed('generate.stream').usage, { totalTokenCount: 60 }), doubtful({}), 'two counts are missing')
})

t.test('interactions: usage is read from the field names of the Interactions API', async t => {
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
  t.strictSame(readUsage(endpointNamed('interactions').usage, { total_tokens: 197 }), doubtful({}), 'input and output cannot be separated')
})
